# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, plan, show, apply, verify, undo: the one place with side effects, and their one order.

Both families are read and planned before either is written. After writing, the kernel is read again and must have
become what was planned; if not, or if a write fails, everything that was written is undone and the failure says what
happened.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.backend import Handle
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.conntrack import (
    FlowSelector,
    delete_flows,
    find_flows,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.difference import differences
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import (
    FlowError,
    LockError,
    NetfilterError,
    ToolError,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.iptables import NFT
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Desired, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan, counts, plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.undo import undo

#: How many chains one restore may hold, by backend. The nft tool's time grows with chains x lines of one input; the
#: legacy tool writes the whole table each time, so there fewer restores are better.
BATCH = {NFT: 300}


class Target(NamedTuple):
    """One family on one backend, as read, and what it should be."""

    handle: Handle
    desired: Desired


class Hooks(NamedTuple):
    """What a module adds to the run."""

    #: Called before the first write; raises to refuse it.
    guard: Callable[[], None] = lambda: None
    #: (what was read, desired) to the flows that are stale then. Only asked where anything changes.
    stale: Callable[[Tables, Desired], list[FlowSelector]] = lambda _tables, _desired: []
    #: Names, for people, of chains that go: (table name, what was read) to chain name to title.
    titles: Callable[[Tables], dict[str, str]] = lambda _tables: {}


class Outcome(NamedTuple):
    """What a run found and did; ``result()`` has it in the form of a module's result."""

    changed: bool
    diff: list[dict[str, str]]
    plan: dict[str, dict[str, int]]
    stale_flows: list[dict[str, Any]]
    warnings: list[str]
    timings: dict[str, float]

    def result(self) -> dict[str, Any]:
        """As keyword arguments for ``exit_json``; warnings go their own way."""
        return {name: value for name, value in self._asdict().items() if name != "warnings"}


class ReconcileError(NetfilterError):
    """A run that wrote and failed. ``details`` goes into the module's result."""

    def __init__(self, message: str, details: dict[str, Any]) -> None:
        super().__init__(message)
        self.details = details


class _Planned(NamedTuple):
    target: Target
    plan: FamilyPlan


class Clock:
    """Collects the seconds of each phase."""

    def __init__(self) -> None:
        self.timings: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Adds the time of the block to the phase ``name``."""
        start = time.monotonic()
        try:
            yield
        finally:
            self.timings[name] = round(self.timings.get(name, 0.0) + time.monotonic() - start, 4)


def reconcile(targets: Sequence[Target], *, check_mode: bool, verify: bool, hooks: Hooks, clock: Clock) -> Outcome:
    """Bring the node to the desired state, or only say what that would take.

    Raises ``NetfilterError`` before anything is written, ``ReconcileError`` after; the old state is back then, or the
    message says what is not.
    """
    with clock.phase("plan"):
        planned = [_Planned(target, plan_family(target.handle.dump.tables, target.desired)) for target in targets]
        changed = any(item.plan for item in planned)
        selectors = [selector for item in planned if changed
                     for selector in hooks.stale(item.target.handle.dump.tables, item.target.desired)]
    with clock.phase("difference"):
        diff = [entry for item in planned if item.plan for entry in differences(
            item.plan, hooks.titles(item.target.handle.dump.tables), item.target.handle.label)]
    with clock.phase("flows"):
        # Before anything is written: a table of flows that cannot be read must not be found out half-way.
        flows = find_flows(selectors)
    outcome = Outcome(changed, diff, {**counts([item.plan for item in planned]),
                                      "flows": {"added": 0, "changed": 0, "removed": len(flows)}},
                      [_shown(selector) for selector in selectors],
                      [warning for item in planned for warning in item.plan.warnings], clock.timings)
    if check_mode or not changed:
        return outcome
    hooks.guard()
    _apply_all([item for item in planned if item.plan], verify, clock)
    with clock.phase("flows"):
        _clean(selectors)
    return outcome


def _shown(selector: FlowSelector) -> dict[str, Any]:
    return {"family": selector.family, "protocol": "udp", "destinations": sorted(selector.addresses),
            "port": selector.port, "service": selector.service, "reason": selector.reason,
            "kept_endpoints": sorted(f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}" for ip, port in selector.keep)}


def _clean(selectors: Sequence[FlowSelector]) -> None:
    try:
        # Asked again: flows came and went since the plan, and until now packets could still make stale ones.
        delete_flows(find_flows(selectors))
    except FlowError as error:
        details = {"changed": True, "rolled_back": False, "stale_flows": [_shown(selector) for selector in selectors]}
        raise ReconcileError(f"the rules are in place and stay, but {error}; delete the flows that stale_flows lists "
                             "by hand, for no later run will see them", details) from None


def _apply_all(planned: Sequence[_Planned], verify: bool, clock: Clock) -> None:
    done: list[_Planned] = []
    try:
        for item in planned:
            with clock.phase("apply"):
                _apply(item, done)
        if verify:
            with clock.phase("verify"):
                for item in planned:
                    _verify(item.target)
    except NetfilterError as error:
        with clock.phase("undo"):
            raise _undo_all(error, done) from error
    except BaseException as error:
        # An interrupt or a fault of our own: the node must not pay for it.
        with clock.phase("undo"):
            raise _undo_all(NetfilterError(f"interrupted by {error!r}"), done) from error


def _apply(item: _Planned, done: list[_Planned]) -> None:
    """Write one family. A refusal is answered by one fresh read: if the node changed meanwhile, by one fresh plan."""
    done.append(item)
    try:
        _write(item)
    except LockError:
        raise
    except ToolError as error:
        tool = item.target.handle.tool
        now = tool.save(tuple(item.target.desired.tables)).tables
        fresh = _Planned(item.target, plan_family(now, item.target.desired))
        if error.rc not in (3, 4) and transactions(fresh.plan) == transactions(item.plan):
            raise
        done.append(fresh)
        _write(fresh)


def _write(item: _Planned) -> None:
    tool = item.target.handle.tool
    for transaction in transactions(item.plan, BATCH.get(tool.backend)):
        tool.restore(transaction)


def _verify(target: Target) -> None:
    now = target.handle.tool.save(tuple(target.desired.tables)).tables
    left = plan_family(now, target.desired)
    if not left:
        return
    differing = [f"{table.table} {name}" for table in left.tables for name in (
        *(write.chain.name for write in table.writes), *table.removals, *(edit.parent for edit in table.parents))]
    raise NetfilterError(f"{target.handle.label}: read back after writing, {len(differing)} chains are not as written: "
                         f"{', '.join(differing[:5])}; another program may be writing to them")


def _undo_all(error: NetfilterError, done: Sequence[_Planned]) -> ReconcileError:
    """Undo what was written, the last first, and say how that went."""
    applied: list[str] = []
    failures: list[str] = []
    for item in reversed(done):
        label = item.target.handle.label
        try:
            applied += _undo(item)
        except NetfilterError as failure:
            failures.append(f"{label}: {failure}")
    details: dict[str, Any] = {"changed": bool(applied), "applied_tables": sorted(set(applied)),
                               "rolled_back": not failures}
    if isinstance(error, ToolError):
        details["failed_command"] = {"argv": error.argv, "rc": error.rc, "stderr": error.stderr, "table": error.table,
                                     "line": error.line, "input": error.excerpt}
    if failures:
        return ReconcileError(f"{error}. The old state could NOT be restored: {'; '.join(failures)}. "
                              f"Written and not undone: {', '.join(details['applied_tables']) or 'unknown'}", details)
    if applied:
        return ReconcileError(f"{error}. Already written and undone again: {', '.join(details['applied_tables'])}. "
                              "The node has its old rules", details)
    return ReconcileError(f"{error}. Nothing was written", details)


def _undo(item: _Planned) -> list[str]:
    """Restore one family and check it; returns the tables in which something had been written."""
    tool, names = item.target.handle.tool, tuple(item.target.desired.tables)
    back = undo(item.plan, tool.save(names).tables)
    written = [f"{item.target.handle.label} {table.table}" for table in back.tables if table]
    for transaction in transactions(back, BATCH.get(tool.backend)):
        tool.restore(transaction)
    left = undo(item.plan, tool.save(names).tables) if written else None
    if left:
        raise NetfilterError("read back after the undo, the old rules are not all there")
    return written
