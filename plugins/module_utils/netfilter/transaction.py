# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as input for ``iptables-restore --noflush``, cut into transactions that are safe in this order.

1. *Prepare*: new chains, leaves first. Nothing leads to them yet, so no packet sees a half of them.
2. *Change*: chains in use, where there are many: those of one unit (a service port) in one restore.
3. *Switch*: everything else that packets reach: chains of no unit, jumps, and what goes. One restore for the family.
4. *Remove*: chains that nothing leads to any more.

An ordinary change is the switch alone. Only large ones are cut (``batches.py``), because ``iptables-nft-restore`` walks
one list of the chains that its input names for every line of it: its time grows with chains x lines.

Only chains that are ours in full are declared (declaring a chain empties it); chains of others change by ``-I`` and
``-D`` alone, and no rule of others is ever repeated in the input.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.batches import cut_removals, cut_writes, slices
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.compare import changed_rules
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import PlanError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.line_order import rule_lines
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import (
    ChainWrite,
    FamilyPlan,
    ParentEdit,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import chain_lines
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

#: Tables in the order in which they are written: what rejects and drops before what translates.
_ORDER = {"raw": 0, "mangle": 1, "filter": 2, "nat": 3}


#: From how many rules on a chain without order is edited, and up to how many changes (measured, docs/performance.md).
_LONG_CHAIN = 100
_FEW_DELETIONS = 5
_FEW_INSERTIONS = 50

#: How many chains one input may make that has no rules.
_DECLARATIONS = 1000


class Transaction(NamedTuple):
    """One input of the restore tool."""

    text: str
    #: The tables in it, in order. The tool commits them one by one.
    tables: tuple[str, ...]


def transactions(plan: FamilyPlan, batch: int | None = None, declare_first: bool = False) -> list[Transaction]:
    """The restore inputs for a plan, in order. ``batch``: how many chains one input may hold (None: any number).

    ``declare_first``: where there is more than one batch, new chains are made empty before, the last name first.
    """
    before: list[Transaction] = []
    switch: list[tuple[str, list[str]]] = []
    behind: list[Transaction] = []
    for table in sorted((table for table in plan.tables if table), key=lambda table: _ORDER.get(table.table, 9)):
        prepared, changed, now = cut_writes(table, batch)
        if declare_first and prepared:
            before += _declarations([write.chain.name for part in prepared for write in part], table.table)
        before += [_transaction([(table.table, list(_table_lines(part, (), ())))]) for part in (*prepared, *changed)]
        removals = list(table.removals)
        if batch is not None and len(removals) > batch:
            behind += [_transaction([(table.table, list(_removal_lines(emptied, removed)))])
                       for emptied, removed in cut_removals(table.removals, batch)]
            removals = []
        # The tool that gets everything in one restore is the legacy one.
        lines = list(_table_lines(now, removals, table.parents, for_legacy=batch is None))
        if lines:
            switch.append((table.table, lines))
    return before + ([_transaction(switch)] if switch else []) + behind


def _declarations(names: Sequence[str], table: str) -> list[Transaction]:
    lines = [f":{name} - [0:0]" for name in sorted(names, reverse=True)]
    return [_transaction([(table, list(part))]) for part in slices(lines, _DECLARATIONS)]


def _removal_lines(emptied: Sequence[str], removed: Sequence[str]) -> Iterator[str]:
    yield from (f":{name} - [0:0]" for name in emptied)
    yield from (f"-X {name}" for name in removed)


def _transaction(tables: Sequence[tuple[str, list[str]]]) -> Transaction:
    out: list[str] = []
    for name, lines in tables:
        out.append("*" + name)
        out += lines
        out.append("COMMIT")
    return Transaction("\n".join(out) + "\n", tuple(name for name, _lines in tables))


def _checked(text: str, chains: Sequence[Chain]) -> str:
    """The lines that write chains. Looked through as a whole, for there may be many."""
    if text.count("\n") != sum([len(chain.rules) for chain in chains]) or "\0" in text:
        for chain in chains:
            _refuse(chain.rules)
    return text


def _insertions(chain: str, rules: Sequence[tuple[int, str]]) -> Iterator[str]:
    """The lines that insert rules at their positions."""
    _refuse([rule for _at, rule in rules])
    return (f"-I {chain} {at} {rule}" for at, rule in rules)


def _refuse(rules: Sequence[str]) -> None:
    for rule in rules:
        if _breaks(rule):
            raise PlanError(f"a rule cannot be written, for it has a line break or NUL in it: {shown(rule)}")


def _breaks(rule: str) -> bool:
    """Whether a rule cannot be said in a restore input. The tools take line breaks in comments and print them."""
    return "\n" in rule or "\0" in rule


def _deletions(parent: str, before: Sequence[str], going: Sequence[str]) -> Iterator[str]:
    """The lines that delete rules by their text; what cannot be said, by its number, the last one first."""
    unsaid = [index for index, rule in enumerate(before) if _breaks(rule) and rule in going]
    yield from (f"-D {parent} {index + 1}" for index in reversed(unsaid))
    yield from (f"-D {parent} {rule}" for rule in going if not _breaks(rule))


def _table_lines(writes: Sequence[ChainWrite], removals: Sequence[str], parents: Sequence[ParentEdit],
                 for_legacy: bool = False) -> Iterator[str]:
    edits = [parent_edit(edit) for edit in parents]
    small = {write.chain.name: found for write in writes if write.before is not None
             for found in [_small_edit(write)] if found is not None}
    whole = [write.chain for write in writes if write.chain.name not in small]
    names = [chain.name for chain in whole]
    if for_legacy:
        # It keeps chains sorted by name, and finds and places them faster in that order.
        names.sort()
    yield from (f":{name} - [0:0]" for name in names)
    yield from (f":{name} - [0:0]" for name in removals)
    for edit, (deleted, _inserted) in zip(parents, edits):
        yield from _deletions(edit.parent, edit.before, deleted)
    for name, (gone, _new) in small.items():
        yield from (f"-D {name} {rule}" for rule in gone)
    additions = (rule_lines(whole) if for_legacy
                 else "".join([chain_lines(chain.name, chain.rules) for chain in whole]))
    if additions:
        yield _checked(additions, whole)[:-1]
    for name, (_gone, inserted) in small.items():
        yield from _insertions(name, inserted)
    for edit, (_deleted, inserted) in zip(parents, edits):
        yield from _insertions(edit.parent, inserted)
    yield from (f"-X {name}" for name in removals)


def _small_edit(write: ChainWrite) -> tuple[list[str], list[tuple[int, str]]] | None:
    """What to delete and to insert where that is cheaper than to write a long chain without order again.

    The tool looks through the chain for every deletion, so only a few are. A new rule goes behind the one that it
    follows in our order: where two services claim one address, the same of them wins on every node.
    """
    chain, before = write.chain, write.before
    if chain.ordered or before is None or len(before) < _LONG_CHAIN:
        return None
    gone, new = changed_rules(before, chain.rules)
    if any(map(_breaks, gone)):
        return None
    tail = list(chain.rules[len(chain.rules) - chain.tail:])
    if len(gone) > _FEW_DELETIONS or len(new) > _FEW_INSERTIONS or list(before[len(before) - chain.tail:]) != tail:
        return None
    now = list(before)
    for rule in gone:
        now.remove(rule)
    left = Counter(new)
    inserted: list[tuple[int, str]] = []
    previous: str | None = None
    for rule in chain.rules:
        if left[rule]:
            left[rule] -= 1
            at = now.index(previous) + 1 if previous is not None else 0
            now.insert(at, rule)
            inserted.append((at + 1, rule))
        previous = rule
    return gone, inserted


def parent_edit(edit: ParentEdit) -> tuple[list[str], list[tuple[int, str]]]:
    """What to delete (texts) and what to insert then (1-based position, text) for one chain of others."""
    left = [rule for rule in edit.before if rule not in edit.going]
    inserted: list[tuple[int, str]] = []
    at = 0
    for index, rule in enumerate(edit.after):
        if at < len(left) and left[at] == rule:
            at += 1
        else:
            inserted.append((index + 1, rule))
    return [rule for rule in edit.before if rule in edit.going], inserted
