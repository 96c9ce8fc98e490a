# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Repeats the runs of the modules from the documents of a node: after a reboot, and after somebody flushed a table."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.apply import Target
from ansible_collections.metal.nodenet.plugins.module_utils.managers import MANAGERS
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.node import documents
from ansible_collections.metal.nodenet.plugins.module_utils.node.documents import Document
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import APPLIED, StateDir, StateError
from ansible_collections.metal.nodenet.plugins.module_utils.node.witnesses import witnesses
from ansible_collections.metal.nodenet.plugins.module_utils.states import Escort, run

Log = Callable[[str], None]


def rebuild(state: StateDir, found: Iterable[Document], log: Log) -> bool:
    """Bring the node to what these documents say, each as far as it goes; whether all went. Needs the lock."""
    # All of them, even after one that failed.
    results = [_rebuild(state, document, log) for document in found if document.params is not None]
    return all(results)


def _rebuild(state: StateDir, document: Document, log: Log) -> bool:
    name = document.module
    try:
        _check_input(state, document)
        seen: list[Target] = []
        result = run(_params(document), False, MANAGERS[name].tables, MANAGERS[name].build,
                     lambda warning: log(f"{name}: warning: {warning}"), Escort(planned=seen.extend))
    except (NetfilterError, ValueError) as error:
        log(f"{name}: NOT rebuilt: {error}")
        return False
    except KeyError as error:
        log(f"{name}: NOT rebuilt: {state.file(APPLIED, name + '.json')} has no option {error}: another release wrote "
            "it. Run the module again with remember")
        return False
    log(f"{name}: " + (_summary(result) if result["changed"] else "all there, nothing written"))
    return _keep_witnesses(state, document, witnesses(seen), log)


def _keep_witnesses(state: StateDir, document: Document, shown: dict[str, Any], log: Log) -> bool:
    """The node's own addresses and tools have a part in them, so they may be others than before."""
    if shown == document.witnesses:
        return True
    try:
        documents.store(state, document._replace(witnesses=shown), armed=False)
    except StateError as error:
        log(f"{document.module}: its document cannot be brought up to date: {error}")
        return False
    return True


def _params(document: Document) -> dict[str, Any]:
    # Nobody reads the difference; as a summary it costs nothing.
    return {**(document.params or {}), "state": "present", "diff_limit": 1}


def _check_input(state: StateDir, document: Document) -> None:
    if document.input is None:
        return
    path = documents.cached(state, document.input)
    try:
        with open(path, "rb") as file:
            found = hashlib.sha256(file.read()).hexdigest()
    except OSError as error:
        raise StateError(f"its input {path} cannot be read: {error.strerror}") from None
    if found != document.input:
        raise StateError(f"its input {path} is damaged: its sha256 is {found}")


def _summary(result: dict[str, Any]) -> str:
    parts = [f"{count} {what.replace('_', ' ')} {how}" for what, counts in result["plan"].items()
             for how, count in counts.items() if count]
    return "rebuilt: " + ", ".join(parts)
