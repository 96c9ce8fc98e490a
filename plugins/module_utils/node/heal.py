# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the node does by itself: rebuild its state after a reboot, and look after it from then on.

Nothing here loads what a run needs until there is something to rebuild: the healer looks every half minute.
"""

from __future__ import annotations

from collections.abc import Callable

from ansible_collections.metal.nodenet.plugins.module_utils.node import documents, guard
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import APPLIED, StateDir
from ansible_collections.metal.nodenet.plugins.module_utils.node.lock import LockedError, locked
from ansible_collections.metal.nodenet.plugins.module_utils.node.look import Look

Log = Callable[[str], None]

#: Seconds after its deadline from which on a guard whose timer has not come is rolled back by the healer.
_GRACE = 15.0


def restore(state: StateDir, log: Log) -> bool:
    """Bring the node to its last confirmed state, as after a reboot; whether all of it is there."""
    with locked(state, "restore"):
        if _unfinished(state):
            from ansible_collections.metal.nodenet.plugins.module_utils.node.rollback import finish

            finish(state, log, "the node or its agent has been restarted")
        return _rebuild(state, log)


def heal(state: StateDir, log: Log) -> bool:
    """Rebuild what is missing; whether all is there. Leaves a node alone on which somebody is at work."""
    if not state.there(APPLIED) and not _unfinished(state):
        return True
    try:
        with locked(state, "the healer", wait=0):
            armed = guard.read_armed(state)
            if armed is not None and not _overdue(armed):
                return True
            if _unfinished(state):
                from ansible_collections.metal.nodenet.plugins.module_utils.node.rollback import finish

                finish(state, log, "its time is over and its timer did not come")
            return _heal(state, log)
    except LockedError:
        return True


def _overdue(armed: guard.Armed) -> bool:
    return guard.now() >= armed.deadline + _GRACE


def _unfinished(state: StateDir) -> bool:
    """Whether a guard is armed, or a confirmation or a roll-back stopped half-way."""
    return any(state.there(*name) for name in (guard.ARMED, guard.CONFIRMED, guard.RETURNING))


def _heal(state: StateDir, log: Log) -> bool:
    look, found = Look(), False
    for document in documents.read_all(state, APPLIED):
        where = state.file(APPLIED, document.module + ".json")
        for text in look.missing(document.witnesses or {}, where):
            log(f"{document.module}: found: {text}")
            found = True
    return _rebuild(state, log) if found else True


def _rebuild(state: StateDir, log: Log) -> bool:
    from ansible_collections.metal.nodenet.plugins.module_utils.node.rebuild import rebuild

    return rebuild(state, documents.read_all(state, APPLIED), log)
