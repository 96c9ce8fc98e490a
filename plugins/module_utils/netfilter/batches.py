# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cuts the chains of a large plan into batches that are safe one after the other.

It says which chains go together and in which order; what the batches read like is ``transaction.py``'s business.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.compare import changed_rules
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import possible_targets
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import ChainWrite, TablePlan

_Item = TypeVar("_Item")


class CutWrites(NamedTuple):
    """What is written in a table, in this order."""

    #: New chains that nothing leads to yet.
    prepared: list[Sequence[ChainWrite]]
    #: Chains in use, each unit in one batch.
    changed: list[Sequence[ChainWrite]]
    #: What must change in one restore with the jumps.
    switch: Sequence[ChainWrite]


def cut_writes(table: TablePlan, batch: int | None) -> CutWrites:
    """Cut what is written in a table into batches of so many chains (None: any number).

    A batch is larger where one unit is. All is in the switch where neither the new chains nor those in use are more
    than a batch.
    """
    if batch is None or len(table.writes) <= batch:
        return CutWrites([], [], table.writes)
    new = [write for write in table.writes if write.before is None]
    in_use = [write for write in table.writes if write.before is not None]
    changed, switch = _cut_units(table, in_use, batch) if len(in_use) > batch else ([], in_use)
    if not changed and len(new) <= batch:
        return CutWrites([], [], table.writes)
    return CutWrites(list(slices(_leaves_first(new), batch)), changed, switch)


def cut_removals(chains: Mapping[str, Sequence[str]], batch: int) -> Iterator[tuple[Sequence[str], Sequence[str]]]:
    """The batches that delete unreachable chains, roots first: what each of them empties, and what it deletes."""
    below = _below(chains)
    heights = _heights(below)
    order = sorted(chains, key=lambda name: -heights[name])
    batch_of = {name: at // batch for at, name in enumerate(order)}
    # Only in a loop (a kernel may hold one that nothing leads to) does a later chain lead to an earlier one.
    looping: dict[int, list[str]] = {}
    for name in order:
        for number in {batch_of[target] for target in below[name]}:
            if number < batch_of[name]:
                looping.setdefault(number, []).append(name)
    for number, names in enumerate(slices(order, batch)):
        yield (*looping.get(number, ()), *names), names


def _cut_units(table: TablePlan, writes: Sequence[ChainWrite],
               batch: int) -> tuple[list[Sequence[ChainWrite]], list[ChainWrite]]:
    """Chains in use as batches of whole units, and those that must wait for the switch.

    These are the chains of no unit, which lead to many, and every unit for which a rule in one of them changes: packets
    find the way into it and what is in it in one state.
    """
    units = table.units({chain.name: chain.rules for chain, _before in writes})
    switch = [write for write in writes if write.chain.name not in units]
    ways = {target for write in switch for target in _changed_targets(write)}
    waiting = set(table.units(dict.fromkeys(ways, ())).values())
    groups: dict[str, list[ChainWrite]] = {}
    for write in writes:
        unit = units.get(write.chain.name)
        if unit in waiting:
            switch.append(write)
        elif unit is not None:
            groups.setdefault(unit, []).append(write)
    return list(_filled(groups.values(), batch)), switch


def _changed_targets(write: ChainWrite) -> list[str]:
    gone, new = changed_rules(write.before or (), write.chain.rules)
    return possible_targets("\n".join((*gone, *new)))


def _filled(groups: Iterable[Sequence[_Item]], batch: int) -> Iterator[Sequence[_Item]]:
    """Whole groups put together until a batch is full."""
    full: list[_Item] = []
    for group in groups:
        if full and len(full) + len(group) > batch:
            yield full
            full = []
        full.extend(group)
    if full:
        yield full


def _leaves_first(writes: Sequence[ChainWrite]) -> list[ChainWrite]:
    """New chains so that each stands behind the new chains it leads to."""
    heights = _heights(_below({write.chain.name: write.chain.rules for write in writes}))
    return sorted(writes, key=lambda write: heights[write.chain.name])


def _below(chains: Mapping[str, Sequence[str]]) -> dict[str, set[str]]:
    """Which of these chains each of them leads to, or seems to: one too many is only an order more to keep."""
    return {name: {target for target in possible_targets("\n".join(rules)) if target in chains}
            for name, rules in chains.items()}


def _heights(below: Mapping[str, set[str]]) -> dict[str, int]:
    """How many levels of chains hang below each of them. Without recursion: a kernel may hold any depth."""
    heights: dict[str, int] = {}
    for start in below:
        if start in heights:
            continue
        # Each chain waits once for each chain below it; a chain on the way is a loop and does not count.
        on_way = {start}
        way = [(start, iter(below[start]))]
        while way:
            name, targets = way[-1]
            waiting = next((target for target in targets if target not in heights and target not in on_way), None)
            if waiting is not None:
                on_way.add(waiting)
                way.append((waiting, iter(below[waiting])))
                continue
            way.pop()
            on_way.discard(name)
            heights[name] = 1 + max((heights.get(target, 0) for target in below[name]), default=0)
    return heights


def slices(items: Sequence[_Item], size: int) -> Iterator[Sequence[_Item]]:
    """So many items each."""
    for start in range(0, len(items), size):
        yield items[start:start + size]
