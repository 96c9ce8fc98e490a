# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The words of the engine: what a node should have, and what it has.

A *rule* is the text that ``iptables-save`` prints after ``-A CHAIN ``, for example
``-d 10.96.0.1/32 -p tcp -m comment --comment "default/web cluster IP" -m tcp --dport 80 -j KUBE-SVC-…``.
Rules stay text from end to end: equal text is equal meaning, and only texts that differ are parsed (``canonical.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Callable, NamedTuple

IPV4 = "ipv4"
IPV6 = "ipv6"
FAMILIES = (IPV4, IPV6)

#: Position of a jump in a chain that is not ours.
HEAD = "head"
APPEND = "append"


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


class Jump(NamedTuple):
    """One rule of ours in a chain of somebody else, such as ``PREROUTING``."""

    parent: str
    rule: str
    position: str = HEAD
    #: False where it may stand anywhere among our other jumps (another agent may have put it there first).
    ranked: bool = True


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


class Desired(NamedTuple):
    """What one family should hold of ours, table by table."""

    family: str
    tables: dict[str, TableDesired]


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
