# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Looks, with a few small reads, whether the witnesses of a module are all there (see ``witnesses.py``).

A whole save of a large node every half minute would cost more than what it guards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.backend import quick_tool
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ipset import Ipset
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.iptables import Iptables
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import StateError

_LOCK_TIMEOUT = 10


class Look:
    """One look at a node; what was read once is not read again. Raises ``NetfilterError`` if it cannot be."""

    def __init__(self) -> None:
        self._tools: dict[tuple[str, str], Iptables] = {}
        self._chains: dict[tuple[str, str, str, str], list[str] | None] = {}
        self._ipset = Ipset()

    def missing(self, witnesses: Mapping[str, Any], where: str) -> list[str]:
        """What is not as it was, in words. ``where``: the file of the witnesses, for the error if they are damaged."""
        try:
            rules = [tuple(map(str, witness)) for witness in witnesses["rules"]]
            sets = dict(witnesses["sets"])
            found = [text for family, backend, table, chain, kind, rule in rules
                     for text in self._rule(family, backend, table, chain, kind, rule)]
        except (KeyError, ValueError, TypeError):
            raise StateError(f"{where} is damaged: its witnesses cannot be understood") from None
        return [*found, *self._sets(sets)]

    def _rule(self, family: str, backend: str, table: str, chain: str, kind: str, rule: str) -> list[str]:
        place = (family, backend, table, chain)
        name = f"{family} {table}: {chain}"
        if kind == "rule":
            if place not in self._chains:
                self._chains[place] = self._tool(family, backend).rules_of(table, chain)
            rules = self._chains[place]
            if rules is None:
                return [f"{name} is gone"]
            return [] if rule in rules or _said(rule, rules, family) else [f"{name} has lost the rule {rule}"]
        first = self._tool(family, backend).first_rule(table, chain)
        if first is None:
            return [f"{name} is gone"]
        return [f"{name} is empty"] if kind == "filled" and not first else []

    def _sets(self, sets: Mapping[str, Any]) -> list[str]:
        sizes = self._ipset.sizes(sets)
        lost = [f"set {name} is gone" for name in sets if name not in sizes]
        return lost + [f"set {name} is empty" for name, filled in sets.items() if filled and sizes.get(name) == 0]

    def _tool(self, family: str, backend: str) -> Iptables:
        if (family, backend) not in self._tools:
            self._tools[family, backend] = quick_tool(family, backend, _LOCK_TIMEOUT)
        return self._tools[family, backend]


def _said(rule: str, rules: list[str], family: str) -> bool:
    """Whether one of the rules says the same in another spelling."""
    # Texts that differ are rare, and this is the largest part of what a look would load.
    from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.canonical import same_rule

    return any(same_rule(rule, one, family) for one in rules)
