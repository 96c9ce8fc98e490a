# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A module's run on a node that remembers: under the lock, under a guard if one is armed, with its document kept."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils import states
from ansible_collections.metal.nodenet.plugins.module_utils.apply import ReconcileError, Target
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.node import documents, guard
from ansible_collections.metal.nodenet.plugins.module_utils.node.confirmation import finish_confirmation
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import StateDir
from ansible_collections.metal.nodenet.plugins.module_utils.node.lock import locked
from ansible_collections.metal.nodenet.plugins.module_utils.node.settled import Settled, can_settle
from ansible_collections.metal.nodenet.plugins.module_utils.node.witnesses import witnesses


def run(name: str, params: dict[str, Any], check_mode: bool, tables: Sequence[str],
        build: Callable[[dict[str, Any]], states.Manager], warn: Callable[[str], None],
        facts: Callable[[dict[str, Any]], object] | None = None) -> dict[str, Any]:
    """Carry out the module ``name``; its result. Raises as ``states.run``, and ``StateError``.

    ``facts``: gives what decides about the outcome besides the options and the rules, where that can be said.
    """
    if params["state"] not in ("present", "absent"):
        return states.run(params, check_mode, tables, build, warn)
    state = StateDir(params["state_dir"])
    if params["guard"] is not None:
        guard.check_run_id(params["guard"])
    uses = params["remember"] or params["guard"] is not None
    seen: list[Target] = []
    escort = states.Escort(lambda: guard.enter(state, params["guard"], name), seen.extend)
    # A node without the directory has no guard, and nobody else to wait for.
    alone = locked(state, f"module {name}") if not check_mode and (uses or state.there()) else contextlib.nullcontext()
    with alone:
        if not check_mode:
            finish_confirmation(state)
        if facts and can_settle(state, params):
            settled = Settled(state, name, params, facts(params))
            # A document that is not there yet needs what only a whole run sees.
            known = not params["remember"] or _is_remembered(state, name, params)
            escort = escort._replace(recall=settled.recall() if known else None,
                                     settled=lambda warnings: settled.keep(seen, warnings))
        result = states.run(params, check_mode, tables, build, warn, escort)
        if params["remember"]:
            result["remembered"] = _remembered(state, name, params, check_mode, seen, result["changed"])
            result["changed"] = result["changed"] or result["remembered"]
    return result


def _remembered(state: StateDir, name: str, params: dict[str, Any], check_mode: bool, seen: Sequence[Target],
                changed: bool) -> bool:
    """As :func:`_remember`; a failure after rules were written says so. Raises ``NetfilterError``."""
    try:
        return _remember(state, name, params, check_mode, seen)
    except NetfilterError as error:
        if not changed or check_mode:
            raise
        raise ReconcileError(f"the rules are in place and stay, but they are not remembered: {error}",
                             {"changed": True, "rolled_back": False}) from None


def _remember(state: StateDir, name: str, params: dict[str, Any], check_mode: bool, seen: Sequence[Target]) -> bool:
    """Keep the document of the run; whether that is news."""
    armed = params["guard"] is not None
    document, source = documents.compose(state, name, params, witnesses(seen))
    news = _is_news(state, document, armed)
    if news and not check_mode:
        guard.enter(state, params["guard"], name)
        documents.keep(state, source)
        documents.store(state, document, armed)
    return news


def _is_remembered(state: StateDir, name: str, params: dict[str, Any]) -> bool:
    document, _source = documents.compose(state, name, params, {})
    return not _is_news(state, document, params["guard"] is not None)


def _is_news(state: StateDir, document: documents.Document, armed: bool) -> bool:
    stored = documents.current(state, document.module, armed)
    return stored is not None if document.params is None else not document.same(stored)
