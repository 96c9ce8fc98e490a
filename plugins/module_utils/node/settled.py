# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node looked like when nothing was left to do, so that the same question is answered without working it out.

What a run changes follows from its options, the cluster, the node's facts, the kernel's rules and this code, and from
nothing else. Where a run found nothing to do, a digest of all of them is kept in the cache; as long as they are the
same, there is nothing to do again, and neither the cluster nor the dump has to be taken apart.
"""

from __future__ import annotations

import hashlib
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.apply import Target
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.backend import Handle
from ansible_collections.metal.nodenet.plugins.module_utils.node.documents import cached
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import CACHE, StateDir, StateError
from ansible_collections.metal.nodenet.plugins.module_utils.states import Recall

#: Options that decide neither what should be nor what is said about it.
_IRRELEVANT = ("verify", "remember", "guard", "expect_plan", "diff_limit", "state_dir", "lock_timeout")


class Settled:
    """The memory of one module on one node. ``facts``: what decides besides the options and the rules."""

    def __init__(self, state: StateDir, module: str, params: Mapping[str, Any], facts: object) -> None:
        self._state = state
        self._file = (CACHE, f"settled-{module}.json")
        options = {name: value for name, value in params.items() if name not in _IRRELEVANT}
        self._key = _digest([options, facts, _code()])

    def recall(self) -> Recall | None:
        """What is remembered of the same question. What cannot be read is forgotten."""
        with suppress(StateError):
            found = self._state.read_json(*self._file) or {}
            if found.get("key") == self._key and found.get("rules"):
                return Recall(lambda handles: _rules(handles) == found["rules"], list(found.get("warnings", ())))
        return None

    def keep(self, targets: Sequence[Target], warnings: Sequence[str]) -> None:
        """Remember that nothing was to be done. Not where sets are in play, which have no digest."""
        if any(target.set_names for target in targets) or not self._state.there(CACHE):
            return
        with suppress(StateError):
            self._state.write_json({"key": self._key, "rules": _rules([target.handle for target in targets]),
                                    "warnings": list(warnings)}, *self._file)


def can_settle(state: StateDir, params: Mapping[str, Any]) -> bool:
    """Whether the options say all: the cluster is given as such, or by the hash of a file that the cache has."""
    if params["state"] != "present":
        return False
    if not params.get("cluster"):
        return True
    sha256 = params.get("cluster_sha256")
    return bool(sha256) and params["cluster"] == cached(state, str(sha256)) and os.path.exists(params["cluster"])


def _rules(handles: Sequence[Handle]) -> dict[str, str]:
    return {handle.label: " ".join([handle.tool.backend, ".".join(map(str, handle.tool.version)), handle.dump.digest])
            for handle in handles}


def _code() -> object:
    """What tells this code from any other: the files that are loaded, from an archive or a folder."""
    archive = getattr(globals().get("__loader__"), "archive", None)
    if archive:
        with zipfile.ZipFile(archive) as file:
            return sorted((entry.filename, entry.CRC) for entry in file.infolist())
    top = os.path.dirname(os.path.dirname(__file__))
    return sorted((entry.path, entry.stat().st_mtime_ns, entry.stat().st_size)
                  for folder, _folders, _files in os.walk(top) for entry in os.scandir(folder)
                  if entry.name.endswith(".py"))


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True, default=str).encode("utf-8", "surrogateescape")).hexdigest()
