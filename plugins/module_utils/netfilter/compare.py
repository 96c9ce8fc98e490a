# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether the rules of a chain are the wanted ones, by meaning and as cheaply as the texts allow."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Callable

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.canonical import Meaning, meanings, same_rule
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain


def same_chain(current: Sequence[str], wanted: Chain, family: str) -> bool:
    """True where the kernel's rules say what ``wanted`` says.

    Rules that exist only to count (see ``decisions``) are no difference; nor is the order where ``wanted`` has none.
    """
    if wanted.exists_only:
        return True
    if wanted.repeats:
        current = _without_repeats(current, family)
    if wanted.ordered:
        return _same_list(current, wanted.rules, family)
    split = len(wanted.rules) - wanted.tail
    body, tail = wanted.rules[:split], wanted.rules[split:]
    kept = len(current) - wanted.tail
    if kept < 0:
        return False
    return _same_bag(current[:kept], body, family) and _same_bag(current[kept:], tail, family)


def _without_repeats(rules: Sequence[str], family: str) -> list[str]:
    """The rules without those that say what the one before them says."""
    return [rule for index, rule in enumerate(rules) if index == 0 or not same_rule(rule, rules[index - 1], family)]


def _same_list(current: Sequence[str], wanted: Sequence[str], family: str) -> bool:
    if list(current) == list(wanted):
        return True
    return _compare(current, wanted, family, list)


def _same_bag(current: Sequence[str], wanted: Sequence[str], family: str) -> bool:
    extra = Counter(current)
    extra.subtract(Counter(wanted))
    if not any(extra.values()):
        return True
    # Equal texts cancel out; only the rest is parsed. A rule that only counts is read with its follower.
    if any("nfacct" in rule for rule in extra):
        return _compare(current, wanted, family, _sorted_bag)
    return _compare(list((extra).elements()), list((-extra).elements()), family, _sorted_bag)


def _compare(current: Sequence[str], wanted: Sequence[str], family: str,
             arrange: Callable[[list[Meaning]], object]) -> bool:
    try:
        return arrange(decisions(current, family)) == arrange(decisions(wanted, family))
    except ValueError:
        # A text that cannot be read is not ours.
        return False


def _sorted_bag(items: list[Meaning]) -> object:
    return Counter(items)


def decisions(rules: Sequence[str], family: str) -> list[Meaning]:
    """What the rules decide about packets, counters left out.

    kube-proxy 1.36 counts with ``-m nfacct``: as an extra match, which decides nothing, and as extra rules that stand
    before a rule with the same target and no more conditions. Without counters such a rule is of no effect, so it goes.
    """
    all_of_them: list[Meaning] = [meaning for rule in rules for meaning in meanings(rule, family)]
    out: list[Meaning] = []
    for index, meaning in enumerate(all_of_them):
        if meaning.counters:
            follower = all_of_them[index + 1] if index + 1 < len(all_of_them) else None
            if follower is not None and _covers(follower, meaning):
                continue
            meaning = meaning.decision()
        out.append(meaning)
    return out


def _covers(follower: Meaning, rule: Meaning) -> bool:
    """True where every packet that ``rule`` takes would be taken by ``follower``, to the same target."""
    return (follower.target == rule.target and follower.head <= rule.head
            and set(follower.matches) <= set(rule.matches))


def changed_rules(before: Sequence[str], after: Sequence[str]) -> tuple[list[str], list[str]]:
    """The rules only in ``before`` and only in ``after``, each in its order. Equal texts cancel one by one."""
    if not before or not after:
        return list(before), list(after)
    gone, new = Counter(before), Counter(after)
    gone.subtract(Counter(after))
    new.subtract(Counter(before))
    return _take(before, gone), _take(after, new)


def _take(rules: Sequence[str], count: Counter[str]) -> list[str]:
    out = []
    for rule in rules:
        if count[rule] > 0:
            count[rule] -= 1
            out.append(rule)
    return out
