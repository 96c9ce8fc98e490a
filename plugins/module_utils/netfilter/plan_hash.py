# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One word that stands for a whole plan: equal plans on equal nodes have it in common. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan, TablePlan
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.set_plan import SetChange


def plan_hash(plans: Iterable[tuple[str, FamilyPlan, Sequence[SetChange]]]) -> str:
    """The sha256 of everything that changes, with before and after: (label, rules, sets). ``""`` for nothing."""
    content = [[label, [_table(table) for table in plan.tables if table], [_set(change) for change in sets]]
               for label, plan, sets in plans if plan or sets]
    if not content:
        return ""
    # Rules of others may hold any bytes, which JSON escapes.
    return hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()


def _table(table: TablePlan) -> list[object]:
    return [table.table,
            [[chain.name, list(chain.rules), None if before is None else list(before)]
             for chain, before in table.writes],
            [[name, list(rules)] for name, rules in sorted(table.removals.items())],
            [[edit.parent, list(edit.before), list(edit.after)] for edit in table.parents]]


def _set(change: SetChange) -> list[object]:
    before, after = change.before, change.after
    return [change.name, change.how,
            before and [before.type, before.family, before.maxelem, sorted(before.members)],
            after and [after.type, after.maxelem, sorted(after.members)]]
