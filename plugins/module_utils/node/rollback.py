# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The life of a guard: armed, then confirmed or rolled back; and what stopped half-way is brought to its end.

Every step is one rename or one removal, in an order in which each beginning of it means the old state or the new one:

- *arm*: snapshot, ``armed.json``, timer. Without ``armed.json`` there is no guard, and the snapshot means nothing.
- *confirm*: ``armed.json`` becomes ``confirmed.json``; from there on the new state is the one to keep, and the rest
  (documents, the way back, timer) is finished by whoever comes next.
- *roll back*: the kernel, then ``armed.json`` goes, then what else there is of the guard. Until ``armed.json`` goes, it
  is done again from the start.

All of it happens under the lock; ``fire`` takes it, the others need it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.tools import survive
from ansible_collections.metal.nodenet.plugins.module_utils.node import documents, guard, snapshot, timer
from ansible_collections.metal.nodenet.plugins.module_utils.node.confirmation import (
    BEFORE,
    BEFORE_WHOM,
    finish_confirmation,
    tidy,
)
from ansible_collections.metal.nodenet.plugins.module_utils.node.guard import Armed
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import APPLIED, StateDir, StateError
from ansible_collections.metal.nodenet.plugins.module_utils.node.lock import locked
from ansible_collections.metal.nodenet.plugins.module_utils.node.snapshot import Step

Log = Callable[[str], None]

#: Tries of a roll-back that nobody watches, and the seconds between them.
_TRIES = 20
_PAUSE = 5.0
#: Seconds that it waits for a run that is still at work.
_PATIENCE = 600.0
#: How often a waiting process looks whether it is still needed.
_LOOK = 0.5


def arm(state: StateDir, run_id: str, timeout: int, agent: str, controller: str, lock_timeout: int) -> Armed:
    """Take the snapshot and start the timer. Nothing may be armed. Raises ``NetfilterError``."""
    tidy(state)
    picture = {**snapshot.take(lock_timeout), "documents": _documents(state)}
    state.write_json(picture, *guard.SNAPSHOT)
    since = guard.now()
    armed = Armed(run_id, since, since + timeout, timer.kind(), agent, controller)
    if guard.last(state, run_id)[0]:
        state.remove(*guard.LAST)
    state.write_json(armed._asdict(), *guard.ARMED)
    try:
        timer.start(state, armed.timer, run_id, timeout, agent)
    except NetfilterError:
        state.remove(*guard.ARMED)
        timer.stop(state, armed.timer, run_id)
        tidy(state)
        raise
    return armed


def roll_back(state: StateDir, armed: Armed, reason: str, log: Log, lock_timeout: int = snapshot.LOCK_TIMEOUT,
              restarted: bool = False) -> list[str]:
    """Give the node its old state; what was written. Raises ``NetfilterError``, and the guard stays armed then."""
    log(f"rolling back run {armed.run_id}: {reason}")
    written = snapshot.carry_out(steps_back(state, lock_timeout, restarted), log)
    guard.ended(state, armed.run_id, guard.ROLLED_BACK, reason)
    state.remove(*guard.ARMED)
    timer.stop(state, armed.timer, armed.run_id)
    tidy(state)
    log(f"run {armed.run_id} is rolled back; restored: {', '.join(written) or 'nothing, all was as before'}")
    return written


def steps_back(state: StateDir, lock_timeout: int, restarted: bool = False) -> list[Step]:
    """What it takes to undo the run that is armed: nothing where no module has written. Raises ``NetfilterError``.

    ``restarted``: see ``snapshot.steps_to``.
    """
    where, picture = state.file(*guard.SNAPSHOT), state.read_json(*guard.SNAPSHOT)
    if picture is None:
        raise StateError(f"{where} is gone, so the old state is not known")
    modules = guard.modules(state, *guard.WRITTEN) if state.there(*guard.WRITTEN) else []
    return snapshot.steps_to(picture, where, modules, lock_timeout, restarted) if modules or restarted else []


def steps_before(state: StateDir, picture: Mapping[str, Any], lock_timeout: int) -> list[Step]:
    """What it takes to undo the last confirmed run; ``picture``: that of :func:`before`. Raises ``NetfilterError``."""
    return snapshot.steps_to(picture, state.file(*BEFORE), guard.modules(state, *BEFORE_WHOM), lock_timeout)


def documents_before(state: StateDir, picture: Mapping[str, Any]) -> list[documents.Document]:
    """The documents that differ from what they were before the last confirmed run, as they were then."""
    wanted = remembered(picture, state.file(*BEFORE))
    known = guard.modules(state, *BEFORE_WHOM)
    return [wanted.get(module, documents.Document(module, None)) for module in documents.ORDER
            if module in known and documents.read(state, APPLIED, module) != wanted.get(module)]


def go_back(state: StateDir, log: Log, lock_timeout: int = snapshot.LOCK_TIMEOUT) -> list[str]:
    """Give the node the state that it had before the last confirmed run; what was written. Raises as ``roll_back``."""
    picture = before(state)
    steps = steps_before(state, picture, lock_timeout)
    state.write_json({"since": guard.now()}, *guard.RETURNING)
    written = snapshot.carry_out(steps, log)
    for document in documents_before(state, picture):
        documents.store(state, document, armed=False)
        written.append(f"document of {document.module}")
    state.remove(*guard.RETURNING)
    log(f"the state before the last confirmed run is back; restored: {', '.join(written) or 'nothing'}")
    return written


def before(state: StateDir) -> dict[str, Any]:
    """The snapshot from before the last confirmed run. Raises ``StateError`` where there is none."""
    picture = state.read_json(*BEFORE)
    if picture is None:
        raise StateError(f"there is nothing to go back to: no run that changed this node has been confirmed "
                         f"({state.file(*BEFORE)} is not there)")
    return picture


def remembered(picture: Mapping[str, Any], where: str) -> dict[str, documents.Document]:
    """The documents in a snapshot."""
    found = picture.get("documents")
    if not isinstance(found, dict):
        raise StateError(f"{where} is damaged: it has no documents")
    return {module: documents.parse(content, where, module) for module, content in found.items()}


def finish(state: StateDir, log: Log, reason: str) -> None:
    """Bring to its end whatever stopped half-way, a guard that is armed included.

    That is after a restart, or where a timer did not come, which may be due to one.
    """
    if state.there(*guard.CONFIRMED):
        log("found: a confirmation that was not finished")
        finish_confirmation(state)
    armed = guard.read_armed(state)
    if armed is not None:
        roll_back(state, armed, reason, log, restarted=True)
    if state.there(*guard.RETURNING):
        log("found: a roll-back to the state before the last confirmed run that was not finished")
        go_back(state, log)
    tidy(state)


def fire(state: StateDir, run_id: str, log: Log, wait: bool) -> bool:
    """Roll back a run if it is still armed, on its deadline with ``wait``; whether the node is as it should be."""
    since = None
    if wait:
        waited = _wait(state, run_id)
        if waited is None:
            return True
        since = waited.since
    return survive(lambda tell: _fire(state, run_id, since, tell), log)


def _fire(state: StateDir, run_id: str, since: float | None, log: Log) -> bool:
    for left in reversed(range(_TRIES)):
        try:
            with locked(state, f"roll-back of run {run_id}", _PATIENCE):
                finish_confirmation(state)
                armed = guard.read_armed(state)
                if armed is None or armed.run_id != run_id or since not in (None, armed.since):
                    log(f"run {run_id} has no guard armed; nothing to do")
                    return True
                roll_back(state, armed, _reason(armed), log)
                return True
        except NetfilterError as error:
            log(f"roll-back of run {run_id} FAILED: {error}" + ("; trying again" if left else ""))
        if left:
            time.sleep(_PAUSE)
    return False


def _reason(armed: Armed) -> str:
    if armed.expired:
        return f"not confirmed until {guard.clock(armed.deadline)}"
    return "asked for by hand"


def _wait(state: StateDir, run_id: str) -> Armed | None:
    """Sleep until the deadline; the guard if it is still armed then. A clock that is set does not matter."""
    first = armed = guard.read_armed(state)
    end = time.monotonic() + (armed.deadline - guard.now() if armed else 0)
    # A run that was confirmed and armed again meanwhile has a timer of its own.
    while armed is not None and armed == first and armed.run_id == run_id:
        left = end - time.monotonic()
        if left <= 0:
            return armed
        time.sleep(min(left, _LOOK))
        armed = guard.read_armed(state)
    return None


def _documents(state: StateDir) -> dict[str, Any]:
    return {document.module: document.as_json() for document in documents.read_all(state, APPLIED)}
