# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sends a file to a node by its content: only where the node does not have it yet."""

from __future__ import annotations

from typing import Any

from ansible.errors import AnsibleActionFail
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import (
    DEFAULT_PATH,
    StateDir,
    StateError,
)


def state_dir_of(arguments: dict[str, Any]) -> StateDir:
    """The task's ``state_dir``. Raises ``AnsibleActionFail`` for a path that can be none."""
    try:
        return StateDir(str(arguments.get("state_dir") or DEFAULT_PATH), elsewhere=True)
    except StateError as error:
        raise AnsibleActionFail(str(error)) from error


def ensure_on_node(action: Any, local_path: str, sha256: str, remote_dir: str, remote_name: str) -> tuple[str, bool]:
    """Where the node has the file with this content, and whether it had it already.

    One command, as the user that the task becomes, looks for ``remote_dir/remote_name``; a file there with another hash
    does not count. Otherwise the file is put into the task's temporary directory, which any user can do, and the
    module moves it to its place. Works in check mode. Raises what the connection raises.
    """
    shell = action._connection._shell
    wanted = str(shell.join_path(remote_dir, remote_name))
    seen = action._low_level_execute_command(f"sha256sum {shell.quote(wanted)}")
    # A backslash stands before the hash where the name has characters to be escaped.
    if seen["rc"] == 0 and str(seen["stdout"]).lstrip().lstrip("\\").startswith(sha256 + " "):
        return wanted, True
    if shell.tmpdir is None:
        action._make_tmp_path()
    sent = str(shell.join_path(shell.tmpdir, remote_name))
    action._transfer_file(local_path, sent)
    action._fixup_perms2((shell.tmpdir, sent))
    return sent, False
