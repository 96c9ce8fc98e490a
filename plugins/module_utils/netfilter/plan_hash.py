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
    digest = hashlib.sha256()
    changes = [item for item in plans if item[1] or item[2]]
    for label, plan, sets in changes:
        tables = [table for table in plan.tables if table]
        words = [label, str(len(tables))]
        for table in tables:
            words += _words(table)
        words.append(json.dumps([_set(change) for change in sets]))
        # Rules of others may hold any bytes but this one.
        digest.update("\0".join(words).encode("utf-8", "surrogateescape") + b"\0")
    return digest.hexdigest() if changes else ""


def _words(table: TablePlan) -> list[str]:
    """All that changes in a table. A list of rules comes with its length, so that no two plans read the same."""
    words = [table.table, str(len(table.writes)), str(len(table.removals)), str(len(table.parents))]
    for chain, before in table.writes:
        words += (chain.name, str(len(chain.rules)), *chain.rules)
        words += ("new",) if before is None else (str(len(before)), *before)
    for name, rules in sorted(table.removals.items()):
        words += (name, str(len(rules)), *rules)
    for edit in table.parents:
        words += (edit.parent, str(len(edit.before)), *edit.before, str(len(edit.after)), *edit.after)
    return words


def _set(change: SetChange) -> list[object]:
    before, after = change.before, change.after
    return [change.name, change.how,
            before and [before.type, before.family, before.maxelem, sorted(before.members)],
            after and [after.type, after.maxelem, sorted(after.members)]]
