# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a guard is armed on this node, and whether a run may write then."""

from __future__ import annotations

import re
import time
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import GUARD, StateDir, StateError

ARMED = (GUARD, "armed.json")
CONFIRMED = (GUARD, "confirmed.json")
LAST = (GUARD, "last.json")
RETURNING = (GUARD, "returning.json")
SNAPSHOT = (GUARD, "snapshot.json")
#: Which modules have written under the guard.
WRITTEN = (GUARD, "written.json")

CONFIRMATION = "confirmed"
ROLLED_BACK = "rolled_back"

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
_FIELDS: dict[str, Any] = {"run_id": str, "since": (int, float), "deadline": (int, float), "timer": str, "agent": str,
                           "controller": str}


class Armed(NamedTuple):
    """A guard that is armed. Times are seconds since the epoch."""

    run_id: str
    since: float
    deadline: float
    #: ``systemd`` or ``process``: who waits for the deadline.
    timer: str
    #: The path of the agent that carries out the roll-back.
    agent: str
    #: Who armed it, as far as the node can tell.
    controller: str = ""

    @property
    def expired(self) -> bool:
        """Whether the roll-back is due."""
        return now() >= self.deadline

    def describe(self) -> str:
        """Who, since when, until when."""
        who = f" from {self.controller}" if self.controller else ""
        return f"run {self.run_id}{who}, since {clock(self.since)}, until {clock(self.deadline)}"


def now() -> float:
    """Seconds since the epoch."""
    return time.time()


def clock(seconds: float) -> str:
    """A time as people read it: ``2026-11-29 23:04:05 UTC``."""
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(seconds))


def check_run_id(run_id: str) -> str:
    """A run id that can be part of the name of a unit. Raises ``ValueError``."""
    if not _RUN_ID.fullmatch(run_id):
        raise ValueError(f"run id {run_id!r}: up to 64 letters, digits, '_', '.' and '-', the first a letter or digit")
    return run_id


def read_armed(state: StateDir) -> Armed | None:
    """The guard that is armed, None where there is none. Raises ``StateError`` for a file that cannot be read."""
    found = state.read_json(*ARMED)
    if found is None:
        return None
    for field, kind in _FIELDS.items():
        if not isinstance(found.get(field), kind):
            raise StateError(f"{state.file(*ARMED)} is damaged: {field} is {found.get(field)!r}")
    return Armed(**{field: found[field] for field in _FIELDS})


def enter(state: StateDir, run_id: str | None, module: str) -> None:
    """Called under the lock before the first write of a module. Raises ``StateError`` where it must not write."""
    armed = read_armed(state)
    if state.there(*RETURNING):
        raise StateError(f"a roll-back to the state before the last apply was interrupted on this node "
                         f"({state.file(*RETURNING)}). Run commit_guard with state rolled_back again, or the agent's "
                         "restore, and then this run")
    if armed is None:
        if run_id is not None:
            raise StateError(f"guard: {not_armed(state, run_id)}")
        return
    if armed.run_id != run_id:
        raise StateError(f"guard: this node is guarded by {armed.describe()}. Wait for that run to be confirmed or "
                         "rolled back, or roll it back with commit_guard, state rolled_back and its run_id")
    if armed.expired:
        raise StateError(f"guard: the time of run {run_id} was over at {clock(armed.deadline)}; its roll-back is due")
    known = modules(state, *WRITTEN) if state.there(*WRITTEN) else []
    if module not in known:
        state.write_json({"modules": [*known, module]}, *WRITTEN)


def modules(state: StateDir, *where: str) -> list[str]:
    """The modules that a file such as ``WRITTEN`` names. Raises ``StateError`` where it is not there or damaged."""
    found = state.read_json(*where)
    if found is None:
        raise StateError(f"{state.file(*where)} is gone, so whose rules were written is not known")
    names = found.get("modules")
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise StateError(f"{state.file(*where)} is damaged: modules is {names!r}")
    return names


def not_armed(state: StateDir, run_id: str) -> str:
    """Why a run has no guard: what became of it, as far as the node remembers."""
    outcome, at, reason = last(state, run_id)
    if outcome == ROLLED_BACK:
        return f"the guard of run {run_id} fired at {at} ({reason}); the node has its old state"
    if outcome == CONFIRMATION:
        return f"run {run_id} was confirmed at {at} and has no guard any more"
    return f"run {run_id} has no guard armed on this node; arm one with commit_guard first"


def last(state: StateDir, run_id: str) -> tuple[str, str, str]:
    """How a run ended: outcome, time, reason; an empty outcome where the node does not know."""
    found = state.read_json(*LAST)
    if found is None or found.get("run_id") != run_id:
        return "", "", ""
    return str(found.get("outcome")), str(found.get("at")), str(found.get("reason"))


def ended(state: StateDir, run_id: str, outcome: str, reason: str) -> None:
    """Remember how a run ended."""
    state.write_json({"run_id": run_id, "outcome": outcome, "at": clock(now()), "reason": reason}, *LAST)
