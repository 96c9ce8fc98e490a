# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of the engine: what a node should have, and what it has.

A *rule* is the text that ``iptables-save`` prints after ``-A CHAIN ``, for example
``-d 10.96.0.1/32 -p tcp -m comment --comment "default/web cluster IP" -m tcp --dport 80 -j KUBE-SVC-…``.
Rules stay text from end to end: equal text is equal meaning, and only texts that differ are parsed (``canonical.py``).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Callable, NamedTuple

_targets = re.compile(r"-[jg] (\S+)")

IPV4 = "ipv4"
IPV6 = "ipv6"
FAMILIES = (IPV4, IPV6)

#: Position of a jump in a chain that is not ours: at the head; anywhere, at the end if it is missing; at the very end.
HEAD = "head"
APPEND = "append"
LAST = "last"


class Chain(NamedTuple):
    """One chain that is ours in full: every rule in it is either listed here or wrong."""

    name: str
    #: Rule texts in order.
    rules: Sequence[str] = ()
    #: What stands behind the name, for people: ``default/web:http (tcp)``. Empty when the name says it all.
    title: str = ""
    #: False where the order of the rules has no meaning (they match disjoint packets).
    ordered: bool = True
    #: In a chain without order: how many of the last rules must stay behind all others.
    tail: int = 0
    #: True where the chain must exist and somebody else decides what is in it.
    exists_only: bool = False
    #: True where a rule right behind its like says nothing new: another agent may write it twice, we do not.
    repeats: bool = False


class Jump(NamedTuple):
    """One rule of ours in a chain of somebody else, such as ``PREROUTING``."""

    parent: str
    rule: str
    position: str = HEAD
    #: False where it may stand anywhere among our other jumps (another agent may have put it there first).
    ranked: bool = True
    #: False where a missing one goes to the very head, even before the jumps of neighbours.
    yields: bool = True


class Entry(NamedTuple):
    """One rule of ours in a chain that several modules share."""

    rule: str
    #: Where it stands among the entries of all modules; below 0 before, above 0 behind the rules of anybody else.
    rank: int


class SharedChain(NamedTuple):
    """A chain that several modules have entries in. It is there, with its hooks, as long as there is anything in it."""

    name: str
    #: The entries of this module.
    entries: tuple[Entry, ...]
    #: The ranks that are this module's: a rule of such a rank that is no entry is a leftover.
    ranks: frozenset[int]
    #: The jumps that lead to the chain.
    hooks: tuple[Jump, ...]
    #: The rank of a rule (text without regard to its id), None for a rule of anybody else.
    rank_of: Callable[[str], int | None]
    #: Gives the rules of the whole chain their ids (comments that depend on all rules before).
    stamp: Callable[[Sequence[str]], list[str]] = list


#: Gives chains (name to rules) their unit: those of one unit change in one restore, others need not. A chain that it
#: leaves out changes with the jumps.
Units = Callable[[Mapping[str, Sequence[str]]], Mapping[str, str]]


def no_units(chains: Mapping[str, Sequence[str]]) -> Mapping[str, str]:
    """For tables whose chains all change with the jumps."""
    return {}


class TableDesired(NamedTuple):
    """What one table of one family should hold of ours."""

    #: By name, in the order in which they are written.
    chains: dict[str, Chain]
    #: In the order in which they should stand, the topmost first.
    jumps: tuple[Jump, ...]
    #: Says whether a chain name is ours. A chain that is ours and not in ``chains`` is a leftover.
    owns: Callable[[str], bool]
    #: Chains that only our jumps lead to: a rule for one of them in a built-in chain is ours.
    entries: frozenset[str] = frozenset()
    #: Prefixes of jump targets that may stand before our jumps at the head of a built-in chain.
    neighbours: tuple[str, ...] = ()
    shared: tuple[SharedChain, ...] = ()
    units: Units = no_units


class IpSet(NamedTuple):
    """One set, ours in full."""

    name: str
    #: ``hash:net`` or ``hash:ip``.
    type: str
    maxelem: int
    #: As ``ipset save`` prints them: canonical, a single address without its length.
    members: frozenset[str] = frozenset()


class Desired(NamedTuple):
    """What one family should hold of ours, table by table, and its sets."""

    family: str
    tables: dict[str, TableDesired]
    sets: tuple[IpSet, ...] = ()
    #: Names of sets that are ours: one of them that is not in ``sets`` is a leftover.
    owned_sets: frozenset[str] = frozenset()


class Table(NamedTuple):
    """A table as the kernel has it. Counters are left out: they are nobody's state."""

    #: Chain name to its rule texts, in kernel order.
    chains: dict[str, list[str]]
    #: Built-in chain name to its policy.
    policies: dict[str, str]


#: A family as the kernel has it: table name to table.
Tables = dict[str, Table]


def target_of(rule: str) -> str:
    """The target after ``-j`` or ``-g`` of a rule in ``iptables-save`` form, ``""`` if it has none.

    Looks for the last jump outside quotes, so a comment cannot imitate one.
    """
    end = len(rule)
    while True:
        at = max(rule.rfind("-j ", 0, end), rule.rfind("-g ", 0, end))
        if at < 0:
            return ""
        before = rule[:at]
        if (at == 0 or rule[at - 1] == " ") and outside_quotes(before):
            return rule[at + 3:].split(" ", 1)[0]
        end = at


def possible_targets(text: str) -> list[str]:
    """What stands where a target would in any number of rules: all targets, and what comments imitate. Fast."""
    return _targets.findall(text)


def outside_quotes(text: str) -> bool:
    """True where the end of ``text`` is not inside a double-quoted value."""
    if "\\" not in text:
        return text.count('"') % 2 == 0
    inside = False
    escaped = False
    for char in text:
        if escaped:
            escaped = False
        elif char == "\\":
            escaped = True
        elif char == '"':
            inside = not inside
    return not inside
