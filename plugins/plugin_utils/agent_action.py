# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of the modules that bring the agent along."""

from __future__ import annotations

import getpass
import os
import platform
import tempfile
from typing import Any

from ansible.plugins.action import ActionBase
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import AGENT
from ansible_collections.metal.nodenet.plugins.plugin_utils.agent_archive import agent_archive
from ansible_collections.metal.nodenet.plugins.plugin_utils.transfer import ensure_on_node, state_dir_of


class AgentAction(ActionBase):  # type: ignore[misc]
    """Runs the module after the agent is on the node, where the state that is asked for needs it."""

    TRANSFERS_FILES = True
    _requires_connection = True

    #: The value of ``state`` that needs the agent, and the one that is the default.
    needs_agent = ""
    default_state = ""

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send the agent unless it is there, run the module, clean up."""
        super().run(tmp, task_vars)
        arguments = self.arguments()
        state = str(arguments.get("state") or self.default_state)
        try:
            self.before(state)
            if state == self.needs_agent:
                arguments["agent"], arguments["agent_sha256"] = self._send(arguments)
            result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def arguments(self) -> dict[str, Any]:
        """The arguments for the module."""
        return dict(self._task.args)

    def before(self, state: str) -> None:
        """What a state needs before anything is sent."""

    def _send(self, arguments: dict[str, Any]) -> tuple[str, str]:
        """Path on the node and hash of the agent."""
        data, sha256 = agent_archive()
        folder = state_dir_of(arguments).file(AGENT)
        handle, local = tempfile.mkstemp(suffix=".pyz")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data)
            path, _there = ensure_on_node(self, local, sha256, folder, sha256 + ".pyz")
        finally:
            os.unlink(local)
        return path, sha256


def controller() -> str:
    """Who runs this: user and host."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):
        user = str(os.getuid())
    return f"{user}@{platform.node()}"
