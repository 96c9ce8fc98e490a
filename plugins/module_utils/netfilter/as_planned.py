# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a dump is, to the letter, what a plan makes of what was read before: known without parsing it. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Table, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import EMPTY_TABLE, FamilyPlan, TablePlan
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import chain_lines

#: The declarations of a table's chains, which come before all of its rules: a colon and the name, policy, counters.
_declarations = re.compile(r"(?::[^ \n]+ [^ \n]+ \[\d+:\d+\]\n)*")


class _Expected(NamedTuple):
    """One table as it should read. Chains are named as they are declared, with a colon before the name."""

    table: str
    policies: Mapping[str, str]
    #: The text of the rules of every chain.
    chains: dict[str, str]


class AsPlanned:
    """What a plan makes of what was read before, ready to be compared."""

    def __init__(self, before: Tables, plan: FamilyPlan) -> None:
        self._tables = [_expected(table, before.get(table.table, EMPTY_TABLE)) for table in plan.tables if table]

    def reads(self, text: str) -> bool:
        """Whether every table that the plan changes reads as planned in a dump, rules of others included.

        False says nothing: the same may be spelled in another way, or somebody else may have written meanwhile.
        """
        return all(_reads(text, table) for table in self._tables)


def _reads(text: str, expected: _Expected) -> bool:
    head = f"*{expected.table}\n"
    at = 0 if text.startswith(head) else text.find("\n" + head) + 1
    if not text.startswith(head, at):
        return False
    found = _declarations.match(text, at + len(head))
    if found is None:
        return False
    words = found.group().split()
    declared = dict(zip(words[::3], words[1::3]))
    chains = expected.chains
    # A table that was not there before comes with chains of its own; they have a policy.
    if any(declared.get(name, "-") == "-" for name in chains.keys() ^ declared.keys()):
        return False
    if any(declared[name] != policy for name, policy in expected.policies.items()):
        return False
    rules = "".join([chains.get(chain, "") for chain in declared])
    return text.startswith(rules, found.end()) and text.startswith("COMMIT\n", found.end() + len(rules))


def _expected(plan: TablePlan, before: Table) -> _Expected:
    after: dict[str, Sequence[str]] = {name: rules for name, rules in before.chains.items()
                                       if name not in plan.removals}
    after.update((write.chain.name, write.chain.rules) for write in plan.writes)
    after.update((edit.parent, edit.after) for edit in plan.parents)
    return _Expected(plan.table, {f":{name}": policy for name, policy in before.policies.items()},
                     {f":{name}": chain_lines(name, rules) for name, rules in after.items()})
