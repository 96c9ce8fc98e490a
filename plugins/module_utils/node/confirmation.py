# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A confirmation, and what is left of a guard: the part that every run may have to bring to its end."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.node import documents, guard, timer
from ansible_collections.metal.nodenet.plugins.module_utils.node.guard import Armed
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import (
    APPLIED,
    GUARD,
    PENDING,
    PREVIOUS,
    StateDir,
    StateError,
)

#: The state before the last confirmed run that wrote something.
BEFORE = (PREVIOUS, "snapshot.json")
#: The modules that wrote in that run: what they own goes back.
BEFORE_WHOM = (PREVIOUS, "written.json")


def confirm(state: StateDir, armed: Armed) -> None:
    """Keep the new state. Raises ``StateError`` where the time is over."""
    if armed.expired:
        raise StateError(f"the time of run {armed.run_id} was over at {guard.clock(armed.deadline)}, and the node gets "
                         "its old state back; arm and apply again")
    state.move(guard.ARMED, guard.CONFIRMED)
    finish_confirmation(state)


def finish_confirmation(state: StateDir) -> None:
    """What follows from a confirmation. Harmless where all or some of it has been done."""
    found = state.read_json(*guard.CONFIRMED)
    if found is None:
        return
    for name in state.names(PENDING):
        module = name.rpartition(".")[0]
        document = documents.read(state, PENDING, module)
        if document is not None and document.params is None:
            state.remove(APPLIED, name)
            state.remove(PENDING, name)
        else:
            state.move((PENDING, name), (APPLIED, name))
    if state.there(*guard.WRITTEN):
        if state.there(*guard.SNAPSHOT):
            state.move(guard.SNAPSHOT, BEFORE)
        state.move(guard.WRITTEN, BEFORE_WHOM)
    timer.stop(state, str(found.get("timer")), str(found.get("run_id")))
    guard.ended(state, str(found.get("run_id")), guard.CONFIRMATION, "confirmed")
    state.remove(*guard.CONFIRMED)
    tidy(state)


def tidy(state: StateDir) -> None:
    """Remove what a guard leaves behind that was never armed, or is no more."""
    if state.there(*guard.ARMED) or state.there(*guard.CONFIRMED):
        return
    for folder in (APPLIED, PENDING, GUARD, PREVIOUS):
        state.remove_unfinished(folder)
    for name in state.names(PENDING):
        state.remove(PENDING, name)
    state.remove(*guard.WRITTEN)
    state.remove(*guard.SNAPSHOT)
