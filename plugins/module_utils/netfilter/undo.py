# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back: what must be written to undo a plan that was applied, wholly or in part.

Only what the plan touched is restored, from what was read before it; whatever others wrote meanwhile stays.
"""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain, Tables
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
    return FamilyPlan(plan.family, [_undo_table(table, now) for table in plan.tables], [])


def _undo_table(plan: TablePlan, now: Tables) -> TablePlan:
    chains = now.get(plan.table, EMPTY_TABLE).chains
    writes = []
    removals: dict[str, Sequence[str]] = {}
    before = {write.chain.name: write.before for write in plan.writes}
    before.update(plan.removals)
    for name, rules in before.items():
        current = chains.get(name)
        if rules is None:
            if current is not None:
                removals[name] = current
        elif current is None or list(current) != list(rules):
            writes.append(ChainWrite(Chain(name, rules), current))
    parents = [_undo_parent(edit, chains.get(edit.parent, [])) for edit in plan.parents]
    return TablePlan(plan.table, writes, removals, [edit for edit in parents if list(edit.before) != list(edit.after)])


def _undo_parent(edit: ParentEdit, now: Sequence[str]) -> ParentEdit:
    touched = edit.going | {rule for _at, rule in parent_edit(edit)[1]}
    others = [rule for rule in now if rule not in touched]
    if others == [rule for rule in edit.before if rule not in touched]:
        after = list(edit.before)
    else:
        # Somebody changed the chain meanwhile: our rules go back to its head, in their old order.
        after = [rule for rule in edit.before if rule in touched] + others
    return ParentEdit(edit.parent, now, after, frozenset(rule for rule in now if rule in touched))
