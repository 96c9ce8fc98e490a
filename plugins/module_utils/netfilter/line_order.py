# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of rules in which ``iptables-legacy-restore`` reads very many the fastest. Pure.

The tool (1.8.9 and 1.8.11, not yet 1.8.7) keeps the names of all chains of its input in a table of lists, and looks
through one of these lists for the target of every rule. What was looked at a moment ago is found several times faster,
so rules whose targets are in one list go together. The state that they make is the same in any order, as long as the
rules of each chain keep theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import mul

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import chain_lines

#: Chains of so many rules are written rule by rule. Shorter ones (an endpoint's) all lead to the same few targets, and
#: of the longer ones there are few.
_SPREAD = range(3, 101)

#: How many lists the tool has (``notargets_hlist_lookup`` in libxtables/xtables.c).
_LISTS = 512
#: What it multiplies the last characters of a name with. Those before them are the same in names of one kind.
_FACTORS = [pow(33, power, _LISTS) for power in reversed(range(16))]


def rule_lines(chains: Sequence[Chain]) -> str:
    """The lines that write the rules of chains, each with its end.

    First whole chains by name. Then of all others the first rules, by the tool's list of their targets, then the
    second ones, and so on.
    """
    # Made in the order in which they lie in memory: another takes twice the time.
    whole: dict[str, str] = {}
    rounds: list[list[str]] = []
    for name, rules, *_rest in chains:
        if len(rules) not in _SPREAD or "" in rules:
            whole[name] = chain_lines(name, rules)
            continue
        while len(rounds) < len(rules):
            rounds.append([])
        start = f"-A {name} "
        for lines, rule in zip(rounds, rules):
            lines.append(start + rule)
    out = [whole[name] for name in sorted(whole)]
    for lines in rounds:
        out += ["\n".join(sorted(lines, key=_list_of_target)), "\n"]
    return "".join(out)


def _list_of_target(line: str) -> int:
    """Tells the lists apart where the line ends with its target, as the jump to a chain does."""
    value: int = sum(map(mul, line[-len(_FACTORS):].encode(errors="surrogateescape"), _FACTORS))
    return value % _LISTS
