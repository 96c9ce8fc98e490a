# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of the module ``commit_guard``: (parameters, check mode, warn) to the module's result."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.apply import ReconcileError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.tools import survive
from ansible_collections.metal.nodenet.plugins.module_utils.node import (
    guard,
    install,
    rollback,
    snapshot,
)
from ansible_collections.metal.nodenet.plugins.module_utils.node.confirmation import confirm, finish_confirmation
from ansible_collections.metal.nodenet.plugins.module_utils.node.guard import Armed
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import StateDir, StateError
from ansible_collections.metal.nodenet.plugins.module_utils.node.lock import locked
from ansible_collections.metal.nodenet.plugins.module_utils.node.status import described, status
from ansible_collections.metal.nodenet.plugins.module_utils.states import check_numbers

Params = dict[str, Any]
Result = dict[str, Any]
Warn = Callable[[str], None]

#: Seconds: less is over before a module has read the node, more is nobody's change window.
_SHORTEST, _LONGEST = 5, 86400


def armed(params: Params, check_mode: bool, warn: Warn) -> Result:
    """Arm the guard of a run."""
    run_id, timeout = guard.check_run_id(params["run_id"]), params["timeout"]
    if not _SHORTEST <= timeout <= _LONGEST:
        raise StateError(f"timeout: {timeout} is not a number of seconds from {_SHORTEST} to {_LONGEST}")
    check_numbers(params)
    state = StateDir(params["state_dir"])
    with _alone(state, check_mode, create=True):
        found = guard.read_armed(state)
        if found is not None and not found.expired:
            if found.run_id == run_id:
                return {"changed": False, "guard": described(found)}
            raise StateError(f"this node is guarded by {found.describe()}. Wait for that run to be confirmed or rolled "
                             "back, or roll it back with commit_guard, state rolled_back and its run_id")
        if found is not None:
            warn(f"the guard of {found.describe()} is over and its timer did not come; it is rolled back now")
        if check_mode:
            return {"changed": True}
        rollback.finish(state, warn, "its time was over, and another run found that its timer did not come")
        if not install.installed(state, params["agent_sha256"]):
            install.install(state, params["agent"], params["agent_sha256"])
        agent = install.own_path(state, params["agent_sha256"])
        new = rollback.arm(state, run_id, timeout, agent, params["controller"], params["lock_timeout"])
        return {"changed": True, "guard": described(new)}


def confirmed(params: Params, check_mode: bool, _warn: Warn) -> Result:
    """Keep what a run has done."""
    run_id = guard.check_run_id(params["run_id"])
    state = StateDir(params["state_dir"])
    with _alone(state, check_mode):
        if not check_mode:
            finish_confirmation(state)
        found = guard.read_armed(state)
        if found is None or found.run_id != run_id:
            if guard.last(state, run_id)[0] == guard.CONFIRMATION:
                return {"changed": False}
            raise StateError(_other(found) or guard.not_armed(state, run_id))
        if not check_mode:
            confirm(state, found)
        return {"changed": True, "guard": described(found)}


def rolled_back(params: Params, check_mode: bool, warn: Warn) -> Result:
    """Undo a run that is armed, or the last one that was confirmed."""
    run_id = params["run_id"]
    check_numbers(params)
    if run_id is not None:
        guard.check_run_id(run_id)
    state = StateDir(params["state_dir"])
    with _alone(state, check_mode):
        if not check_mode:
            finish_confirmation(state)
        found = guard.read_armed(state)
        if run_id is not None and (found is None or found.run_id != run_id):
            return _nothing_to_undo(state, found, run_id)
        steps, stale = _way_back(state, found, params["lock_timeout"])
        restored = [f"{step.item.target.handle.label} {table.table}" for step in steps for table in step.back.tables
                    if table] + [f"{step.item.target.handle.label} sets" for step in steps if step.sets] + stale
        result: Result = {"changed": bool(restored or found), "restored": restored, "guard": described(found),
                          "diff": snapshot.difference(steps, params["diff_limit"])}
        messages: list[str] = []
        if not check_mode:
            # Once begun, it goes on even if this run is killed.
            try:
                survive(lambda log: _roll_back(state, found, restored, log, params["lock_timeout"]), messages.append)
            except NetfilterError as error:
                # It goes on with the next family after one that failed.
                raise ReconcileError(str(error), {"changed": bool(restored), "messages": messages}) from None
        return {**result, "messages": messages}


def gathered(params: Params, _check_mode: bool, _warn: Warn) -> Result:
    """Say what there is."""
    return {"changed": False, "status": status(StateDir(params["state_dir"]))}


COMMANDS: dict[str, Callable[[Params, bool, Warn], Result]] = {
    "armed": armed, "confirmed": confirmed, "rolled_back": rolled_back, "gathered": gathered}


def _alone(state: StateDir, check_mode: bool, create: bool = False) -> contextlib.AbstractContextManager[None]:
    """The lock; not where nothing is written, nor for the sake of a directory that is not there."""
    if check_mode or not (create or state.there()):
        return contextlib.nullcontext()
    return locked(state, "module commit_guard")


def _other(found: Armed | None) -> str:
    return f"this node is guarded by another run: {found.describe()}" if found else ""


def _way_back(state: StateDir, found: Armed | None, lock_timeout: int) -> tuple[list[snapshot.Step], list[str]]:
    """What it takes in the kernel, and which documents differ."""
    if found:
        return rollback.steps_back(state, lock_timeout), []
    picture = rollback.before(state)
    return (rollback.steps_before(state, picture, lock_timeout),
            [f"document of {document.module}" for document in rollback.documents_before(state, picture)])


def _roll_back(state: StateDir, found: Armed | None, restored: list[str], log: Warn, lock_timeout: int) -> bool:
    if found:
        rollback.roll_back(state, found, "asked for", log, lock_timeout)
    elif restored or state.there(*guard.RETURNING):
        rollback.go_back(state, log, lock_timeout)
    return True


def _nothing_to_undo(state: StateDir, found: Armed | None, run_id: str) -> Result:
    """A run that has no guard: it never wrote, or it is rolled back, which is as good; or it was confirmed."""
    outcome, at, _reason = guard.last(state, run_id)
    if outcome == guard.CONFIRMATION:
        raise StateError(f"run {run_id} was confirmed at {at}; leave run_id out to go back to the state before it")
    return {"changed": False, "restored": [], "diff": [],
            "messages": [_other(found) or guard.not_armed(state, run_id)]}
