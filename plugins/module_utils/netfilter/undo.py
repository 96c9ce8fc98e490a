# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back: what must be written to undo a plan that was applied, wholly or in part.

Only what the plan touched is restored, from what was read before it; whatever others wrote meanwhile stays.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.canonical import same_rule
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain, Tables, target_of
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import (
    EMPTY_TABLE,
    ChainWrite,
    FamilyPlan,
    ParentEdit,
    TablePlan,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import parent_edit


def undo(plan: FamilyPlan, now: Tables) -> FamilyPlan:
    """The plan that leads from ``now`` to what was there before ``plan``. False where nothing is to be done."""
    warnings: list[str] = []
    return FamilyPlan(plan.family, [_undo_table(table, now, plan.family, warnings) for table in plan.tables], warnings)


def _undo_table(plan: TablePlan, now: Tables, family: str, warnings: list[str]) -> TablePlan:
    chains = now.get(plan.table, EMPTY_TABLE).chains
    parents = [_undo_parent(edit, chains.get(edit.parent, []), family) for edit in plan.parents]
    after: dict[str, Sequence[str]] = {**chains, **{edit.parent: edit.after for edit in parents}}
    old: dict[str, Sequence[str]] = dict(plan.removals)
    removals: dict[str, Sequence[str]] = {}
    for chain, before in plan.writes:
        if before is not None:
            old[chain.name] = before
        elif chain.name in chains and not (chain.exists_only and _filled(chain, after[chain.name])):
            removals[chain.name] = chains[chain.name]
    after.update(old)
    for held, user in _users(removals, after).items():
        warnings.append(f"{family} {plan.table}: {held} was not there before but stays, empty: "
                        f"{user} has a rule for it")
        old[held] = ()
        del removals[held]
    writes = [ChainWrite(Chain(name, rules), chains.get(name)) for name, rules in old.items()
              if name not in chains or list(chains[name]) != list(rules)]
    # A chain that goes or is emptied takes our jumps in it along.
    edits = [edit for edit in parents if edit.parent not in removals and edit.parent not in old
             and list(edit.before) != list(edit.after)]
    return TablePlan(plan.table, writes, removals, edits, plan.units)


def _filled(chain: Chain, rules: Sequence[str]) -> bool:
    """Whether somebody has put rules into a chain that was only made for him."""
    return any(rule not in chain.rules for rule in rules)


def _users(removals: Mapping[str, Sequence[str]], after: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The chains of ``removals`` that somebody has made a rule for meanwhile, and the chain that has it."""
    if not removals:
        return {}
    return {target: chain for chain, rules in after.items() if chain not in removals
            for target in map(target_of, rules) if target in removals}


def _undo_parent(edit: ParentEdit, now: Sequence[str], family: str) -> ParentEdit:
    touched = edit.going | {rule for _at, rule in parent_edit(edit)[1]}

    def ours(rule: str) -> bool:
        # The kernel may print a rule in another spelling than the one that was written.
        return rule in touched or any(target_of(rule) == target_of(one) and same_rule(rule, one, family)
                                      for one in touched)

    others = [rule for rule in now if not ours(rule)]
    after: list[str] = []
    at = 0
    for rule in edit.before:
        if ours(rule):
            after.append(rule)
        elif rule in others[at:]:
            # Ours go back behind the rules that they stood behind, whatever else was added or removed meanwhile.
            end = others.index(rule, at) + 1
            after += others[at:end]
            at = end
    after += others[at:]
    return ParentEdit(edit.parent, now, after, frozenset(rule for rule in now if ours(rule)))
