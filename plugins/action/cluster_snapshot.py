# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``cluster_snapshot``: reads a cluster from one source, checks it, and keeps what the modules read of it.

All of it happens on the controller; the task's host is not connected to.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

from ansible.errors import AnsibleActionFail, AnsibleError
from ansible.plugins.action import ActionBase
from ansible.utils.display import Display
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.reduce import reduce_items
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.shapes import SHAPES
from ansible_collections.metal.nodenet.plugins.module_utils.objects import is_name
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown
from ansible_collections.metal.nodenet.plugins.plugin_utils.api_source import DEFAULT_KINDS, KINDS, read_api
from ansible_collections.metal.nodenet.plugins.plugin_utils.cluster_source import load_items, no_garbage_collection
from ansible_collections.metal.nodenet.plugins.plugin_utils.overlaps import overlaps, ranges_of
from ansible_collections.metal.nodenet.plugins.plugin_utils.reduction import pack
from ansible_collections.metal.nodenet.plugins.plugin_utils.selection import select, title
from ansible_collections.metal.nodenet.plugins.plugin_utils.snapshot import Folder, check_loss

_SECRET = {"type": "str", "no_log": True}
_API = {
    "kubeconfig": {"type": "raw", "no_log": True},
    "context": {"type": "str"},
    "host": {"type": "str"},
    "api_key": _SECRET,
    "username": {"type": "str"},
    "password": _SECRET,
    "ca_cert": {"type": "path"},
    "client_cert": {"type": "path"},
    "client_key": {"type": "path"},
    "validate_certs": {"type": "bool"},
    "proxy": {"type": "str"},
    "no_proxy": {"type": "str"},
    "impersonate_user": {"type": "str"},
    "impersonate_groups": {"type": "list", "elements": "str"},
    "kinds": {"type": "list", "elements": "str", "choices": list(KINDS), "default": list(DEFAULT_KINDS)},
    "page_size": {"type": "int", "default": 500},
    "timeout": {"type": "int", "default": 60},
}
_ARGUMENTS = {
    "file": {"type": "str"},
    "objects": {"type": "list", "elements": "dict"},
    "api": {"type": "dict", "options": _API},
    "select": {"type": "dict", "default": {}},
    "dest": {"type": "path", "required": True},
    "allow_empty": {"type": "bool", "default": False},
    "max_service_loss_percent": {"type": "int", "default": 20},
    "service_cidrs": {"type": "list", "elements": "str", "default": []},
    "node_networks": {"type": "list", "elements": "str", "default": []},
    "overlaps": {"type": "str", "choices": ["fail", "warn", "ignore"], "default": "fail"},
}
_SOURCES = ("file", "objects", "api")

display = Display()


class ActionModule(ActionBase):
    """One snapshot; nothing is accepted unless all of it is in order."""

    TRANSFERS_FILES = False
    _requires_connection = False
    _supports_check_mode = True

    def run(self, tmp: None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """Read, check, write; what is wrong ends the task."""
        super().run(tmp, task_vars)
        _result, arguments = self.validate_argument_spec(
            argument_spec=_ARGUMENTS, mutually_exclusive=[_SOURCES], required_one_of=[_SOURCES])
        # Plain values of Python, as jmespath and the client of Kubernetes want them.
        options = json.loads(json.dumps(arguments, default=str))
        try:
            with no_garbage_collection():
                return self._snapshot(options)
        except ClusterFileError as error:
            # The error before has nothing to add, and may say what nobody should read in a log.
            raise AnsibleActionFail(str(error)) from None

    def _snapshot(self, options: dict[str, Any]) -> dict[str, Any]:
        if not 0 <= options["max_service_loss_percent"] <= 100:
            raise ClusterFileError(f"max_service_loss_percent: {options['max_service_loss_percent']} is not a number "
                                   "from 0 to 100")
        folder = Folder(options["dest"])
        source, items = self._read(options)
        _check_objects(source, items)
        items = select(items, options["select"])
        services = _services(source, items, options["allow_empty"])
        found = self._overlaps(items, options)
        lost = check_loss(folder.last_services(), services, options["max_service_loss_percent"])
        reduced = reduce_items(items)
        written = folder.write(pack(source, reduced))
        if not self._task.check_mode:
            folder.accept(services, written.sha256)
        return {"changed": written.new, "source": source, "path": written.path, "sha256": written.sha256,
                "counts": dict(Counter(item["kind"] for item in reduced)), "services": len(services),
                "lost_services": {"count": len(lost), "names": lost[:10]}, "overlaps": found}

    def _read(self, options: dict[str, Any]) -> tuple[str, list[Any]]:
        if options.get("api") is not None:
            if options["api"]["page_size"] < 1 or options["api"]["timeout"] < 1:
                raise ClusterFileError("api: page_size and timeout are numbers from 1 on")
            return read_api(options["api"])
        if options.get("objects") is not None:
            return "objects", options["objects"]
        try:
            path = str(self._find_needle("files", options["file"]))
        except AnsibleError as error:
            raise ClusterFileError(f"file: {options['file']} was not found on the controller: {error}") from None
        return path, load_items(path)

    def _overlaps(self, items: list[Any], options: dict[str, Any]) -> list[str]:
        if options["overlaps"] == "ignore":
            return []
        found = overlaps(ranges_of(items, options["service_cidrs"], options["node_networks"]))
        if found and options["overlaps"] == "fail":
            raise ClusterFileError(f"{'; '.join(found)}. Set overlaps to warn or ignore to go on all the same")
        for text in found:
            display.warning(text)
        return found


def _check_objects(source: str, items: list[Any]) -> None:
    for index, item in enumerate(items):
        if not isinstance(item, dict) or not isinstance(item.get("kind"), str):
            raise ClusterFileError(f"{source}: items[{index}] is not an object with a kind")
        if item["kind"] not in SHAPES:
            continue
        meta = item.get("metadata")
        if not isinstance(meta, dict) or not isinstance(meta.get("name"), str):
            raise ClusterFileError(f"{source}: items[{index}]: {title(item)} has no metadata.name")
        for key in ("name", "namespace"):
            if meta.get(key) and not is_name(meta[key]):
                raise ClusterFileError(f"{source}: items[{index}]: {title(item)}: metadata.{key}: {shown(meta[key])} "
                                       f"is not the {key} of an object")


def _services(source: str, items: list[Any], allow_empty: bool) -> list[str]:
    found = [f"{item['metadata'].get('namespace') or 'default'}/{item['metadata']['name']}" for item in items
             if item["kind"] == "Service"]
    if not found and not allow_empty:
        raise ClusterFileError(f"{source} holds no Service at all, or select leaves none; an empty read would remove "
                               "every service from the nodes. Set allow_empty to true if that is what you want")
    return found
