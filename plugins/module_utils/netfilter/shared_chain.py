# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A chain in which several modules, and perhaps somebody else, have entries: each module looks after its own.

Every module knows the rank of every entry, so any modules in any order end in the same chain.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.canonical import same_rule
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.jumps import Placement
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import SharedChain

#: The rank of a rule of anybody else.
_FOREIGN = 0


def arrange(rules: Sequence[str], shared: SharedChain, family: str) -> Placement:
    """The chain with this module's entries in their places, and without its leftovers.

    Entries of others stay, in their order. Ids are made anew where anything changes, and are no reason to change.
    """
    ranks = [shared.rank_of(rule) or _FOREIGN for rule in rules]
    out = [_Line(ranks[index], rule, True) for index, rule in enumerate(rules)
           if ranks[index] not in shared.ranks or _in_place(index, rule, ranks, rules, shared, family)]
    there = {line.rank for line in out}
    missing = [entry for entry in shared.entries if entry.rank not in there]
    if not missing and len(out) == len(rules):
        return Placement(list(rules), frozenset())
    for entry in sorted(missing, key=lambda entry: entry.rank):
        at = next((at for at, line in enumerate(out) if line.rank > entry.rank), len(out))
        out.insert(at, _Line(entry.rank, entry.rule, False))
    stamped = shared.stamp([line.rule for line in out])
    staying = Counter(line.rule for line, text in zip(out, stamped) if line.old and line.rule == text)
    return Placement(stamped, frozenset(rule for rule, count in Counter(rules).items() if count != staying[rule]))


class _Line(NamedTuple):
    rank: int
    rule: str
    #: Whether it is there already.
    old: bool


def _in_place(index: int, rule: str, ranks: Sequence[int], rules: Sequence[str], shared: SharedChain,
              family: str) -> bool:
    """Whether a rule of this module's is a wanted entry, the first of its kind, and where it belongs."""
    rank = ranks[index]
    wanted = any(entry.rank == rank and same_rule(rule, entry.rule, family) for entry in shared.entries)
    first = rank not in ranks[:index]
    return (wanted and first and all(before <= rank for before in ranks[:index])
            and all(after >= rank for after in ranks[index + 1:]))
