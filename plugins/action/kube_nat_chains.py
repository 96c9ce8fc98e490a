# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of ``kube_nat_chains``: sends the node what the module reads of the cluster file."""

from __future__ import annotations

import gzip
import json
import os
import tempfile
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible_collections.metal.nodenet.plugins.module_utils.kube.cluster_file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.kube.reduce import reduce_items
from ansible_collections.metal.nodenet.plugins.plugin_utils.cluster_source import load_items


class ActionModule(ActionBase):
    """Runs the module, with ``cluster`` replaced by a path on the node."""

    TRANSFERS_FILES = True
    _requires_connection = True

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send the cluster, run the module, remove the cluster."""
        super().run(tmp, task_vars)
        arguments = dict(self._task.args)
        try:
            if arguments.get("cluster") and not _true(arguments.get("remote_src", False)):
                arguments["cluster"] = self._send(str(arguments["cluster"]))
                arguments["remote_src"] = True
            result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        return result

    def _send(self, name: str) -> str:
        """Reduce the file, put it into the task's directory on the node and return its path there."""
        path = self._find(name)
        try:
            items = reduce_items(load_items(path))
        except ClusterFileError as error:
            raise AnsibleActionFail(str(error)) from error
        document = {"apiVersion": "v1", "kind": "List", "items": items}
        if self._connection._shell.tmpdir is None:
            self._make_tmp_path()
        remote = str(self._connection._shell.join_path(self._connection._shell.tmpdir, "cluster.json.gz"))
        handle, local = tempfile.mkstemp(suffix=".json.gz")
        try:
            with os.fdopen(handle, "wb") as file:
                # Without a time stamp, equal content is equal bytes.
                file.write(gzip.compress(json.dumps(document, separators=(",", ":")).encode(), mtime=0))
            self._transfer_file(local, remote)
        finally:
            os.unlink(local)
        self._fixup_perms2((self._connection._shell.tmpdir, remote))
        return remote

    def _find(self, name: str) -> str:
        try:
            return str(self._find_needle("files", name))
        except AnsibleError as error:
            raise AnsibleActionFail(f"cluster: {name} was not found on the controller: {error}") from error


def _true(value: Any) -> bool:
    return value if isinstance(value, bool) else str(value).lower() in ("1", "true", "yes", "on", "y", "t")
