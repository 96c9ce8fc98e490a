# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where our rules stand in a chain of somebody else.

Our jumps go to the head, in their order, as kube-proxy and Felix put them. What may stand before them: jumps of agents
that claim the head for themselves (``neighbours``), or there would be no end to the two moving each other. A jump that
stands behind a rule of somebody else is moved once; one that is told to ``append`` stays wherever it is, and one that
must be the last moves behind everything once.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.canonical import same_rule
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import HEAD, LAST, Jump, target_of

#: The place of an entry that is not one of the wanted jumps.
_FOREIGN = -1
_STRAY = -2


class Placement(NamedTuple):
    """A parent chain as it should be."""

    #: All rules; those of others are all there, in their order.
    rules: list[str]
    #: Texts to delete first, wherever they stand (``rules`` has some of them again, in the right place).
    going: frozenset[str]


def place(rules: Sequence[str], jumps: Sequence[Jump], ours: AbstractSet[str], neighbours: tuple[str, ...],
          family: str) -> Placement:
    """A parent chain with ``jumps`` where they belong and no other rule that leads to a chain of ``ours``."""
    roles = [_role(rule, jumps, ours, family) for rule in rules]
    kept = _kept(rules, roles, jumps, neighbours)
    out: list[str] = []
    where: dict[int, int] = {}
    # The tool deletes the first rule of a text: to take away one of two equal rules, both go and one comes back.
    going = frozenset(rule for index, rule in enumerate(rules) if roles[index] != _FOREIGN and index not in kept)
    for index, rule in enumerate(rules):
        if roles[index] == _FOREIGN or index in kept:
            if index in kept:
                where[roles[index]] = len(out)
            out.append(rule)
    _insert_missing(out, where, jumps, neighbours)
    return Placement(out, going)


def _role(rule: str, jumps: Sequence[Jump], ours: AbstractSet[str], family: str) -> int:
    """Which wanted jump a rule is (its index), or a stray of ours, or somebody else's."""
    target = target_of(rule)
    for index, jump in enumerate(jumps):
        if rule == jump.rule or (target == target_of(jump.rule) and same_rule(rule, jump.rule, family)):
            return index
    return _STRAY if target in ours else _FOREIGN


def _kept(rules: Sequence[str], roles: Sequence[int], jumps: Sequence[Jump],
          neighbours: tuple[str, ...]) -> dict[int, int]:
    """Indexes of the rules that already are a wanted jump in its place."""
    kept: dict[int, int] = {}
    seen = set()
    ranked: list[int] = []
    at_head = True
    last_foreign = max((index for index, role in enumerate(roles) if role == _FOREIGN), default=-1)
    for index, role in enumerate(roles):
        if role == _FOREIGN:
            at_head = at_head and bool(neighbours) and target_of(rules[index]).startswith(neighbours)
            continue
        if role == _STRAY or role in seen:
            continue
        jump = jumps[role]
        if (jump.position == HEAD and not at_head) or (jump.position == LAST and index < last_foreign):
            continue
        if jump.position == HEAD and jump.ranked:
            ranked.append(index)
            continue
        seen.add(role)
        kept[index] = role
    for index in _rising(ranked, roles):
        kept[index] = roles[index]
    return kept


def _rising(indexes: Sequence[int], roles: Sequence[int]) -> list[int]:
    """The longest run of ``indexes`` whose jumps stand in their wanted order: the fewest rules move."""
    best: list[tuple[int, int | None]] = []
    for at, index in enumerate(indexes):
        length, previous = 1, None
        for earlier in range(at):
            if roles[indexes[earlier]] < roles[index] and best[earlier][0] + 1 > length:
                length, previous = best[earlier][0] + 1, earlier
        best.append((length, previous))
    if not best:
        return []
    last: int | None = max(range(len(best)), key=lambda at: best[at][0])
    out = []
    while last is not None:
        out.append(indexes[last])
        last = best[last][1]
    return out[::-1]


def _insert_missing(out: list[str], where: dict[int, int], jumps: Sequence[Jump], neighbours: tuple[str, ...]) -> None:
    """Put each missing jump behind the one that comes before it, the first one on top.

    Only neighbours stay above, and not above one that does not yield.
    """
    top = next((at for at, rule in enumerate(out) if not neighbours or not target_of(rule).startswith(neighbours)),
               len(out))
    previous: int | None = None
    for role, jump in enumerate(jumps):
        if jump.position != HEAD:
            if role not in where:
                where[role] = len(out)
                out.append(jump.rule)
            continue
        missing = role not in where
        if missing:
            head = top if jump.yields else 0
            at = head if previous is None else where[previous] + 1
            for other in where:
                if where[other] >= at:
                    where[other] += 1
            where[role] = at
            out.insert(at, jump.rule)
        if missing or jump.ranked:
            previous = role
