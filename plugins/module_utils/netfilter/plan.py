# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From what a family has and should have to what must be written. Pure: nothing here starts a process.

The plan is a *target*: which chains of ours get which rules, which of ours go, and how the chains of others look with
our jumps in place. ``transaction.py`` turns it into restore input, ``difference.py`` into something to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.compare import changed_rules, same_chain
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import PlanError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.jumps import place
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    Chain,
    Desired,
    Jump,
    Table,
    TableDesired,
    Tables,
    Units,
    no_units,
    possible_targets,
    target_of,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.shared_chain import arrange
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

EMPTY_TABLE = Table({}, {})

#: The kernel's limit for the name of a chain, in bytes.
CHAIN_NAME_BYTES = 28


class ChainWrite(NamedTuple):
    """A chain to be written in full."""

    chain: Chain
    #: None where the chain is new.
    before: Sequence[str] | None


class ParentEdit(NamedTuple):
    """A chain of others in which our jumps change; every rule of others stays, in its order."""

    parent: str
    before: Sequence[str]
    after: Sequence[str]
    #: Texts of ours in ``before`` that are deleted first (see ``jumps.Placement``).
    going: frozenset[str]


class TablePlan(NamedTuple):
    """What changes in one table."""

    table: str
    writes: list[ChainWrite]
    #: Chains of ours that go, with the rules they have.
    removals: dict[str, Sequence[str]]
    parents: list[ParentEdit]
    units: Units = no_units

    def __bool__(self) -> bool:
        return bool(self.writes or self.removals or self.parents)


class FamilyPlan(NamedTuple):
    """What changes in one family. False where nothing does."""

    family: str
    tables: list[TablePlan]
    warnings: list[str]

    def __bool__(self) -> bool:
        return any(self.tables)


def plan_family(current: Tables, desired: Desired) -> FamilyPlan:
    """Compare one family with what it should be.

    Raises ``PlanError`` where the desired state is not one that can be written: a name that is too long, a jump to a
    chain that would not be there.
    """
    warnings: list[str] = []
    tables = []
    for name, wanted in desired.tables.items():
        plan = _plan_table(name, current.get(name, EMPTY_TABLE), wanted, desired.family, warnings)
        _validate(desired.family, plan, wanted)
        tables.append(plan)
    return FamilyPlan(desired.family, tables, warnings)


def _plan_table(name: str, current: Table, wanted: TableDesired, family: str, warnings: list[str]) -> TablePlan:
    writes = []
    for chain in wanted.chains.values():
        before = current.chains.get(chain.name)
        # Equal texts are told first: nearly all chains are as they should be.
        if before is None or before != list(chain.rules) and not same_chain(before, chain, family):
            writes.append(ChainWrite(chain, before))
    leftovers: dict[str, Sequence[str]] = {name: rules for name, rules in current.chains.items()
                                           if name not in wanted.chains and wanted.owns(name)}
    for held, user in _held_by_others(current, wanted, leftovers).items():
        rules = leftovers.pop(held)
        warnings.append(f"{family} {name}: {held} is no longer needed but stays, empty: {user} has a rule for it, "
                        "and rules of others are not touched")
        if rules:
            writes.append(ChainWrite(Chain(held), rules))
    jumps = list(wanted.jumps)
    edits = []
    for shared in wanted.shared:
        before = current.chains.get(shared.name)
        placed = arrange(before or [], shared, family)
        if not placed.rules:
            if before is not None:
                leftovers[shared.name] = before
            continue
        if before is None:
            writes.append(ChainWrite(Chain(shared.name, placed.rules), None))
        elif placed.rules != before:
            edits.append(ParentEdit(shared.name, before, placed.rules, placed.going))
        if shared.entries:
            jumps += shared.hooks
    edits += _plan_parents(current, wanted, jumps, set(leftovers), family)
    return TablePlan(name, writes, leftovers, edits, wanted.units)


def _held_by_others(current: Table, wanted: TableDesired, leftovers: dict[str, Sequence[str]]) -> dict[str, str]:
    """Leftovers which a chain of others leads to, and that chain. Chains that may have our jumps, ``jumps`` sweeps."""
    held: dict[str, str] = {}
    if not leftovers:
        return held
    swept = {*current.policies, *leftovers, *(jump.parent for jump in wanted.jumps),
             *(shared.name for shared in wanted.shared)}
    for chain, rules in current.chains.items():
        if chain in swept:
            continue
        known = wanted.chains.get(chain)
        if known is not None and not known.exists_only:
            continue
        for rule in rules:
            target = target_of(rule)
            if target in leftovers:
                held.setdefault(target, chain)
    return held


def _plan_parents(current: Table, wanted: TableDesired, jumps: Sequence[Jump], leftovers: set[str],
                  family: str) -> list[ParentEdit]:
    edits = []
    parents = dict.fromkeys(jump.parent for jump in jumps)
    parents.update(dict.fromkeys(chain for chain in current.policies))
    for parent in parents:
        before = current.chains.get(parent, [])
        here = [jump for jump in jumps if jump.parent == parent]
        placed = place(before, here, wanted.entries | leftovers, wanted.neighbours, family)
        if placed.rules != before:
            edits.append(ParentEdit(parent, before, placed.rules, placed.going))
    return edits


def _validate(family: str, plan: TablePlan, wanted: TableDesired) -> None:
    """Look at what would be written; what is in the kernel has been accepted before."""
    table = plan.table
    for chain, _before in plan.writes:
        if len(chain.name.encode(errors="surrogateescape")) > CHAIN_NAME_BYTES:
            raise PlanError(f"{family} {table}: chain name {chain.name} is longer than {CHAIN_NAME_BYTES} bytes")
    if not _plainly_valid(plan.writes, wanted):
        for chain, _before in plan.writes:
            for rule in chain.rules:
                _validate_rule(family, table, chain.name, rule, wanted)
    for jump in wanted.jumps:
        _validate_rule(family, table, jump.parent, jump.rule, wanted)
    for shared in wanted.shared:
        for entry in shared.entries:
            _validate_rule(family, table, shared.name, entry.rule, wanted)


def _plainly_valid(writes: Sequence[ChainWrite], wanted: TableDesired) -> bool:
    """Whether all rules are valid, as seen without taking them apart; False says nothing."""
    count = sum([len(write.chain.rules) for write in writes])
    text = "\n".join([rule for write in writes for rule in write.chain.rules])
    if "\0" in text or text.count("\n") >= max(count, 1):
        return False
    return not any(map(wanted.owns, set(possible_targets(text)).difference(wanted.chains)))


def _validate_rule(family: str, table: str, chain: str, rule: str, wanted: TableDesired) -> None:
    if "\n" in rule or "\0" in rule:
        raise PlanError(f"{family} {table}: a rule of {chain} has a line break or NUL in it: {shown(rule)}")
    target = target_of(rule)
    if target and target not in wanted.chains and wanted.owns(target):
        raise PlanError(f"{family} {table}: {chain} would lead to {target}, which would not be there: {rule}")


def counts(plans: Sequence[FamilyPlan]) -> dict[str, dict[str, int]]:
    """How many chains and rules are added, changed and removed: ``{"chains": {"added": 2, …}, "rules": {…}}``."""
    from_chains = {"added": 0, "changed": 0, "removed": 0}
    from_rules = {"added": 0, "changed": 0, "removed": 0}
    for plan in plans:
        for table in plan.tables:
            for write in table.writes:
                from_chains["added" if write.before is None else "changed"] += 1
                _count_rules(from_rules, write.before or (), write.chain.rules)
            for rules in table.removals.values():
                from_chains["removed"] += 1
                _count_rules(from_rules, rules, ())
            for edit in table.parents:
                from_chains["changed"] += 1
                _count_rules(from_rules, edit.before, edit.after)
    return {"chains": from_chains, "rules": from_rules}


def _count_rules(total: dict[str, int], before: Sequence[str], after: Sequence[str]) -> None:
    if not before or not after:
        total["added"] += len(after)
        total["removed"] += len(before)
        return
    gone, new = changed_rules(before, after)
    moved = 1 if not gone and not new and list(before) != list(after) else 0
    replaced = min(len(gone), len(new))
    total["changed"] += replaced + moved
    total["added"] += len(new) - replaced
    total["removed"] += len(gone) - replaced
