# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of every module that brings a node to a state: the cluster file goes by content."""

from __future__ import annotations

from typing import Any

import ansible.constants as C
from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import SUFFIX
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import CACHE
from ansible_collections.metal.nodenet.plugins.plugin_utils.reduction import reduced
from ansible_collections.metal.nodenet.plugins.plugin_utils.results import Recorder
from ansible_collections.metal.nodenet.plugins.plugin_utils.transfer import ensure_on_node, state_dir_of

#: The states whose modules read a cluster file.
_READING = ("present", "rendered")

display = Display()


class ClusterAction(ActionBase):
    """Runs the module of the same name, with ``cluster`` replaced by a path on the node."""

    TRANSFERS_FILES = True
    _requires_connection = True

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Send the cluster where it is missing, run the module, keep its result if that is wanted."""
        super().run(tmp, task_vars)
        recorder = self._recorder(task_vars or {})
        arguments = dict(self._task.args)
        try:
            if arguments.get("cluster") and not is_true(arguments.get("remote_src")):
                self._send(arguments)
            result: dict[str, Any] = self._execute_module(module_args=arguments, task_vars=task_vars)
        finally:
            self._remove_tmp_path(self._connection._shell.tmpdir)
        if recorder:
            recorder.write(result)
            if is_true(self._variable(task_vars or {}, "nodenet_results_hide_diff")):
                result.pop("diff", None)
        return result

    def _send(self, arguments: dict[str, Any]) -> None:
        """Put the node's path and the hash of the cluster file into the arguments."""
        state = arguments.get("state") or "present"
        if state not in _READING:
            return
        try:
            source = reduced(self._find(str(arguments["cluster"])), C.DEFAULT_LOCAL_TMP, self._say)
        except ClusterFileError as error:
            raise AnsibleActionFail(str(error)) from error
        cache = state_dir_of(arguments).file(CACHE)
        path, there = ensure_on_node(self, source.path, source.sha256, cache, source.sha256 + SUFFIX)
        self._say(f"nodenet: {source.sha256}{SUFFIX} {'is there' if there else 'was sent'}")
        arguments.update(cluster=path, remote_src=True, cluster_sha256=source.sha256)

    def _find(self, name: str) -> str:
        try:
            return str(self._find_needle("files", name))
        except AnsibleError as error:
            raise AnsibleActionFail(f"cluster: {name} was not found on the controller: {error}") from error

    def _say(self, text: str) -> None:
        display.vv(text)

    # --- results ---

    def _recorder(self, task_vars: dict[str, Any]) -> Recorder | None:
        folder = self._variable(task_vars, "nodenet_results_dir")
        if not folder:
            return None
        return Recorder(str(folder), str(task_vars["inventory_hostname"]), self._task.action.rpartition(".")[2])

    def _variable(self, task_vars: dict[str, Any], name: str) -> Any:
        return self._templar.template(task_vars[name]) if name in task_vars else None


def is_true(value: Any) -> bool:
    """A boolean as a user may write it in a task."""
    return value if isinstance(value, bool) else str(value).lower() in ("1", "true", "yes", "on", "y", "t")
