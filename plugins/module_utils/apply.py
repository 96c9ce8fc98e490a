# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Write a plan, check it, and take it back if anything goes wrong: the only code that changes rules and sets.

Sets come before the rules that name them and go after them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from ansible_collections.metal.nodenet.plugins.module_utils.beside import Beside
from ansible_collections.metal.nodenet.plugins.module_utils.clock import Clock
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.as_planned import AsPlanned
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.backend import Handle
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import (
    LockError,
    NetfilterError,
    ToolError,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ipset import Ipset, SetState
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.iptables import LEGACY, NFT
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Desired, Table, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan, TablePlan, plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.set_plan import (
    SetChange,
    plan_sets,
    release,
    session,
    temporary_name,
    undo_sets,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.undo import undo

#: How many chains one restore may hold, by backend. The nft tool's time grows with chains x lines of one input; the
#: legacy tool writes the whole table each time, so there fewer restores are better.
BATCH = {NFT: 500}


#: Up to how many chains are read back one by one. The nft tool asks the kernel for one chain, the legacy tool for its
#: whole table each time.
READ_BACK = {NFT: 16, LEGACY: 2}


class Target(NamedTuple):
    """One family on one backend, as read, and what it should be."""

    handle: Handle
    desired: Desired
    #: Those of the sets in question that exist.
    sets: Mapping[str, SetState]
    ipset: Ipset

    @property
    def set_names(self) -> list[str]:
        """Every set that is or was ours, and the temporary names that a crash may have left."""
        names = {one.name for one in self.desired.sets} | self.desired.owned_sets
        return sorted(names | {temporary_name(name) for name in names})


class Planned(NamedTuple):
    """A target and what it takes. False where nothing changes."""

    target: Target
    plan: FamilyPlan
    sets: Sequence[SetChange]

    def __bool__(self) -> bool:
        return bool(self.plan) or bool(self.sets)


class ReconcileError(NetfilterError):
    """A run that wrote and failed. ``details`` goes into the module's result."""

    def __init__(self, message: str, details: dict[str, Any]) -> None:
        super().__init__(message)
        self.details = details


_Result = TypeVar("_Result")


def apply_all(planned: Sequence[Planned], verify: bool, clock: Clock, describe: Callable[[], _Result],
              exactly: bool = False) -> _Result:
    """Write all families, or none. Raises ``ReconcileError``.

    ``exactly``: another plan, for a node that changed meanwhile, may not take the place of one that is refused.
    ``describe`` is called while the tools write, and what it returns is returned.
    """
    with Beside() as beside:
        described = beside.later(describe)
        return _apply_all(planned, verify, clock, beside, described, exactly)


def _apply_all(planned: Sequence[Planned], verify: bool, clock: Clock, beside: Beside,
               described: Callable[[], _Result], exactly: bool) -> _Result:
    done: list[Planned] = []
    try:
        expected = [_expected(item, beside) for item in planned] if verify else []
        with clock.phase("apply"):
            for item in planned:
                done.append(item)
                _write_sets(item.target, item.sets, frozenset(item.target.sets))
            for item in planned:
                _apply_rules(item, done, beside, exactly)
        with clock.phase("verify"):
            for item, as_planned in zip(planned, expected):
                _verify(item, as_planned)
        with clock.phase("apply"):
            for item in planned:
                _destroy_sets(item.target, item.sets)
        return described()
    except NetfilterError as error:
        with clock.phase("undo"):
            raise _undo_all(error, done) from error
    except BaseException as error:
        # An interrupt or a fault of our own: the node must not pay for it.
        with clock.phase("undo"):
            raise _undo_all(NetfilterError(f"interrupted by {error!r}"), done) from error


def _write_sets(target: Target, changes: Sequence[SetChange], existing: frozenset[str]) -> None:
    text = session(changes, target.desired.family, existing)
    if text:
        target.ipset.restore(text)


def _destroy_sets(target: Target, changes: Sequence[SetChange]) -> None:
    for change in changes:
        if change.after is None:
            target.ipset.destroy(change.name)


def _apply_rules(item: Planned, done: list[Planned], beside: Beside, exactly: bool) -> None:
    """Write one family. A refusal is answered by one fresh read: if the node changed meanwhile, by one fresh plan."""
    try:
        _write_rules(item.target, item.plan, beside.start)
    except LockError:
        raise
    except ToolError as error:
        target = item.target
        now = target.handle.tool.save(tuple(target.desired.tables)).tables
        fresh = Planned(target, plan_family(now, target.desired), ())
        same = transactions(fresh.plan) == transactions(item.plan)
        if (same and error.rc not in (3, 4)) or (exactly and not same):
            raise
        done.append(fresh)
        _write_rules(target, fresh.plan)


def _write_rules(target: Target, plan: FamilyPlan, begin: Callable[[], None] = lambda: None) -> None:
    """``begin`` is called when all input is ready, before the tools run."""
    tool = target.handle.tool
    inputs = transactions(plan, BATCH.get(tool.backend), tool.sorts_by_insertion)
    begin()
    for transaction in inputs:
        tool.restore(transaction)


def _expected(item: Planned, beside: Beside) -> Callable[[], AsPlanned] | None:
    """How the tables of one family will read; None where so little is written that only that is read again."""
    handle = item.target.handle
    if sum(map(_size, item.plan.tables)) <= READ_BACK.get(handle.tool.backend, 0) and handle.tool.lists_chains:
        return None
    return beside.later(functools.partial(AsPlanned, handle.dump.tables, item.plan))


def _verify(item: Planned, as_planned: Callable[[], AsPlanned] | None) -> None:
    target = item.target
    differing: list[str] = []
    if item.plan:
        differing += [f"{table} {chain}" for table, chain in _chains_of(_left_to_do(item, as_planned))]
    if item.sets:
        changed = [change.name for change in item.sets if change.after is not None]
        now = target.ipset.read(changed)
        wanted = target.desired._replace(
            sets=tuple(one for one in target.desired.sets if one.name in changed), owned_sets=frozenset())
        differing += [f"set {change.name}" for change in plan_sets(now, wanted)]
    if differing:
        raise NetfilterError(f"{target.handle.label}: read back after writing, {len(differing)} chains or sets are not "
                             f"as written: {', '.join(differing[:5])}; another program may be writing to them")


def _left_to_do(item: Planned, as_planned: Callable[[], AsPlanned] | None) -> Sequence[TablePlan]:
    """What still differs after writing. Where little was written, only that is read again."""
    handle, desired, *_rest = item.target
    if as_planned is None:
        return plan_family(_with_chains(handle, _chains_of(item.plan.tables)), desired).tables
    dump = handle.tool.save(tuple(desired.tables))
    if as_planned().reads(dump.text):
        return ()
    return plan_family(dump.tables, desired).tables


def _size(table: TablePlan) -> int:
    """How many chains a plan touches."""
    return len(table.writes) + len(table.removals) + len(table.parents)


def _chains_of(tables: Sequence[TablePlan]) -> list[tuple[str, str]]:
    """Table and name of every chain that is written, removed or edited."""
    return [(table.table, name) for table in tables for name in (
        *(write.chain.name for write in table.writes), *table.removals, *(edit.parent for edit in table.parents))]


def _with_chains(handle: Handle, touched: Sequence[tuple[str, str]]) -> Tables:
    """The tables as they were read before, with these chains as they are now."""
    tables = {name: Table(dict(table.chains), table.policies) for name, table in handle.dump.tables.items()}
    for table, chain in touched:
        rules = handle.tool.rules_of(table, chain)
        chains = tables.setdefault(table, Table({}, {})).chains
        chains.pop(chain, None)
        if rules is not None:
            chains[chain] = rules
    return tables


def _undo_all(error: NetfilterError, done: Sequence[Planned]) -> ReconcileError:
    """Undo what was written, the last first, and say how that went."""
    applied: list[str] = []
    failures: dict[str, str] = {}
    notes: list[str] = []
    for item in reversed(done):
        label = item.target.handle.label
        try:
            applied += take_back(item, notes)
        except Exception as failure:
            # Whatever it is, the other families are to get their old rules.
            failures[label] = str(failure) if isinstance(failure, NetfilterError) else repr(failure)
    details: dict[str, Any] = {"changed": bool(applied or failures), "applied_tables": sorted(set(applied)),
                               "rolled_back": not failures}
    if isinstance(error, ToolError):
        details["failed_command"] = {"argv": error.argv, "rc": error.rc, "stderr": error.stderr, "table": error.table,
                                     "line": error.line, "input": error.excerpt}
    if failures:
        texts = "; ".join(f"{label}: {text}" for label, text in failures.items())
        undone = f"; undone: {', '.join(details['applied_tables'])}" if applied else ""
        return ReconcileError(f"{error}. The old state could NOT be restored: {texts}. Written and not undone, wholly "
                              f"or in part: {', '.join(failures)}{undone}", details)
    if applied:
        return ReconcileError(". ".join([
            str(error), f"Already written and undone again: {', '.join(details['applied_tables'])}",
            "The node has its old rules", *dict.fromkeys(notes)]), details)
    return ReconcileError(f"{error}. Nothing was written", details)


def take_back(item: Planned, notes: list[str]) -> list[str]:
    """Undo the plan of one family as far as it has been carried out, and check it.

    Returns what had been written: tables, and the word ``sets``. ``notes`` gets what had to stay, for somebody else
    made use of it meanwhile. Raises ``NetfilterError``.
    """
    target = item.target
    tool, names = target.handle.tool, tuple(target.desired.tables)
    _destroy_unfinished(item)
    sets = undo_sets(item.sets, _read_sets(item))
    _write_sets(target, sets, frozenset())
    back = undo(item.plan, tool.save(names).tables)
    notes += back.warnings
    held = {change.name for change in sets}
    sets = release(sets, back, notes)
    held -= {change.name for change in sets}
    lost = [change.name for change in item.sets if change.before and change.before.unreadable and change.after]
    notes += [f"Set {name} could not be read before and keeps what was written" for name in lost]
    written = [f"{target.handle.label} {table.table}" for table in back.tables if table]
    _write_rules(target, back)
    _destroy_sets(target, sets)
    if sets or lost:
        written.append(f"{target.handle.label} sets")
    if written and (undo(item.plan, tool.save(names).tables)
                    or any(change.name not in held for change in undo_sets(item.sets, _read_sets(item)))):
        raise NetfilterError("read back after the undo, the old state is not all there")
    return written


def _destroy_unfinished(item: Planned) -> None:
    """Take away the temporary sets of a session that did not get to its end."""
    for name in item.target.ipset.read(temporary_name(change.name) for change in item.sets if change.how == "swap"):
        item.target.ipset.destroy(name)


def _read_sets(item: Planned) -> Mapping[str, SetState]:
    return item.target.ipset.read(change.name for change in item.sets)
