# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random states of a node and random desired states, for hypothesis.

Ours are the chains ``OUR-…``. A node may hold them right, wrong, in another spelling, half or not at all; it has chains
of others that lead to ours or that ours lead to, built-in chains with rules of everybody in any order, and policies.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    APPEND,
    HEAD,
    IPV4,
    Chain,
    Desired,
    Jump,
    Table,
    TableDesired,
    Tables,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from hypothesis import strategies as st
from support.kernel_model import BUILT_IN, EXTENSIONS, Kernel, blocks, target

OURS = tuple(f"OUR-{letter}" for letter in "ABCDEFGH")
#: The only chains of ours that jumps in chains of others lead to.
ENTRIES = frozenset(OURS[:3])
FOREIGN = ("FGN-1", "FGN-2", "FGN-3", "NBR-1")
#: A chain of others in which we have jumps.
SHARED = "SHARED"
#: A chain that must be there, whatever is in it.
COMMON = "COMMON"
NEIGHBOURS = ("NBR-",)

#: Matches as ``iptables-save`` prints them, and another way to write each.
MATCHES = {
    "": "-p all",
    "-s 192.0.2.1/32": "-s 192.0.2.1",
    "-p udp -m udp --dport 53": "-p UDP --dport 53:53",
    '-d 198.51.100.0/24 -p tcp -m comment --comment "say \\"hi\\" -j OUR-A"':
        '-m comment --comment "say \\"hi\\" -j OUR-A" -p 6 -d 198.51.100.7/24',
    "-m mark --mark 0x4000/0x4000": "-m mark --mark 16384/0x04000",
}
TARGETS = {
    "-j RETURN": "-j RETURN",
    "-j MARK --set-xmark 0x4000/0x4000": "-j MARK --or-mark 16384",
    "-j ACCEPT": "-j ACCEPT",
}
_SAVED = {other: saved for spellings in (MATCHES, TARGETS) for saved, other in spellings.items()}


class World(NamedTuple):
    """A node, what it should be, and how many chains a restore may hold."""

    current: Tables
    desired: Desired
    batch: int | None


def our_name(name: str) -> bool:
    """Ownership is by name."""
    return name.startswith("OUR-")


def saved(rule: str) -> str:
    """A rule from this module in the form that ``iptables-save`` prints."""
    match, _option, jump = rule.rpartition("-j ")
    match, jump = match.strip(), "-j " + jump
    return " ".join(filter(None, (_SAVED.get(match, match), _SAVED.get(jump, jump))))


def kernel(current: Tables) -> Kernel:
    """A kernel in this state that prints rules as ``iptables-save`` does."""
    return Kernel(current, saved)


def steps(plan: FamilyPlan, batch: int | None) -> list[str]:
    """All that is committed, one after the other: a block for one table each."""
    # in half of the worlds as for the tools that want it
    found = transactions(plan, batch, declare_first=bool(batch and batch % 2))
    return [block for transaction in found for block in blocks(transaction.text)]


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Any state of a node with any desired state that can be written to it."""
    # Hypothesis knows no more of a state than its seed: it cannot make a failing one smaller, but finds one sooner.
    return world(Random(draw(st.integers(0, 2**32))))


def world(pick: Random) -> World:
    """One such state."""
    desired: dict[str, TableDesired] = {}
    current: Tables = {}
    for name in pick.choice((("nat",), ("filter",), ("nat", "filter"))):
        desired[name] = _desired(pick, name)
        current[name] = _current(pick, name, desired[name])
    if "nat" not in current:
        # A table that is none of our business.
        current["nat"] = _current(pick, "nat", TableDesired({}, (), our_name))
    return World(current, Desired(IPV4, desired), pick.choice((None, 1, 2, 3)))


def rule(pick: Random, targets: Sequence[str], spelled: bool = False) -> str:
    """A rule for one of these chains, or for no chain; ``spelled``: maybe not as ``iptables-save`` prints it."""
    match = pick.choice(list(MATCHES))
    jump = "-j " + pick.choice(targets) if targets and pick.random() < 0.7 else pick.choice(list(TARGETS))
    if spelled and pick.random() < 0.3:
        match, jump = MATCHES[match], TARGETS.get(jump, jump)
    return f"{match} {jump}".strip()


def _desired(pick: Random, table: str) -> TableDesired:
    names = [name for name in OURS if pick.random() < 0.6]
    chains = {}
    common = pick.random() < 0.3
    if common:
        chains[COMMON] = Chain(COMMON, (), exists_only=True)
    shared = pick.random() < 0.3
    if shared:
        chains[SHARED] = Chain(SHARED, (), exists_only=True)
    for at, name in enumerate(names):
        below = [*names[at + 1:], *([COMMON] if common else [])]
        rules = [rule(pick, below, spelled=True) for _one in range(pick.randint(0, 4))]
        ordered = pick.random() < 0.6
        chains[name] = Chain(name, rules, ordered=ordered, tail=0 if ordered else pick.randint(0, min(2, len(rules))))
    entries = [name for name in names if name in ENTRIES]
    jumps: dict[tuple[str, str], Jump] = {}
    for _one in range(pick.randint(0, 5) if entries else 0):
        parent = pick.choice((*BUILT_IN[table][:2], *([SHARED] if shared else [])))
        match = pick.choice(list(MATCHES))
        text = f"{match} -j {pick.choice(entries)}".strip()
        spelling = text if pick.random() < 0.7 else f"{MATCHES[match]} -j {target(text)}".strip()
        jumps[parent, text] = Jump(parent, spelling, pick.choice((HEAD, HEAD, APPEND)), pick.random() < 0.8)
    return TableDesired(chains, tuple(jumps.values()), our_name, ENTRIES, pick.choice(((), NEIGHBOURS)))


def _current(pick: Random, table: str, wanted: TableDesired) -> Table:
    ours = [name for name in OURS if pick.random() < 0.6]
    foreign = [name for name in FOREIGN if pick.random() < 0.6]
    # Who leads to whom; no packet can get into a loop.
    order = ours[::-1] if pick.random() < 0.3 else list(ours)
    order = order + foreign if pick.random() < 0.3 else foreign + order
    order = [*BUILT_IN[table], *([SHARED] if pick.random() < 0.6 else []), *order]
    order += [COMMON] if pick.random() < 0.6 else []
    chains: dict[str, list[str]] = {}
    for at, name in enumerate(order):
        below = [other for other in order[at + 1:] if other not in BUILT_IN[table]]
        rules = [rule(pick, below) for _one in range(pick.randint(0, 4))]
        if name in wanted.chains and our_name(name) and pick.random() < 0.6:
            rules = _nearly(pick, wanted.chains[name], below, rules)
        elif name in BUILT_IN[table] or name == SHARED:
            for jump in wanted.jumps:
                if jump.parent == name and target(jump.rule) in below:
                    rules += [saved(jump.rule)] * pick.choice((0, 1, 1, 1, 2))
            if pick.random() < 0.5:
                pick.shuffle(rules)
        chains[name] = rules
    policies = {chain: pick.choice(("ACCEPT", "DROP")) if table == "filter" else "ACCEPT" for chain in BUILT_IN[table]}
    return Table(chains, policies)


def _nearly(pick: Random, wanted: Chain, below: Sequence[str], mess: Sequence[str]) -> list[str]:
    """The wanted rules, as far as their targets are there; maybe in another order, maybe with one too many."""
    rules = [text for text in map(saved, wanted.rules) if target(text) in EXTENSIONS or target(text) in below]
    kind = pick.randrange(4)
    if kind == 1:
        pick.shuffle(rules)
    elif kind == 2 and rules:
        rules.insert(pick.randrange(len(rules)), pick.choice([*rules, *mess]))
    return rules
