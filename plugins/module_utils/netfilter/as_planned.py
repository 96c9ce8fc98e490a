# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a dump is, to the letter, what a plan makes of what was read before: known without parsing it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import EMPTY_TABLE, FamilyPlan, TablePlan
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import chain_lines

#: The declarations of a table's chains, which come before all of its rules; name and policy of each.
_declarations = re.compile(r"(?::[^ \n]+ [^ \n]+ \[\d+:\d+\]\n)*")
_declaration = re.compile(r":([^ \n]+) ([^ \n]+)")


def as_planned(text: str, before: Tables, plan: FamilyPlan) -> bool:
    """Whether every table that the plan changes reads as planned, rules of others included.

    False says nothing: the same may be spelled in another way, or somebody else may have written meanwhile.
    """
    return all(_reads(text, table, before) for table in plan.tables if table)


def _reads(text: str, plan: TablePlan, before: Tables) -> bool:
    head = f"*{plan.table}\n"
    at = 0 if text.startswith(head) else text.find("\n" + head) + 1
    if not text.startswith(head, at):
        return False
    found = _declarations.match(text, at + len(head))
    if found is None:
        return False
    declared = dict(_declaration.findall(found.group()))
    table = before.get(plan.table, EMPTY_TABLE)
    chains = _planned_chains(plan, table.chains)
    # A table that was not there before comes with chains of its own; they have a policy.
    unknown = any(policy == "-" and name not in chains for name, policy in declared.items())
    if unknown or chains.keys() - declared.keys():
        return False
    if any(declared[name] != policy for name, policy in table.policies.items()):
        return False
    rules = "".join([chain_lines(chain, chains.get(chain, ())) for chain in declared])
    return text.startswith(rules, found.end()) and text.startswith("COMMIT\n", found.end() + len(rules))


def _planned_chains(plan: TablePlan, before: Mapping[str, Sequence[str]]) -> dict[str, Sequence[str]]:
    after = {name: rules for name, rules in before.items() if name not in plan.removals}
    after.update((write.chain.name, write.chain.rules) for write in plan.writes)
    after.update((edit.parent, edit.after) for edit in plan.parents)
    return after
