# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Dumps in a form in which only meaning differs: counting left out, order kept only where it has a meaning."""

from __future__ import annotations

import re

#: (table, chain) whose rules stand in any order, but for node-port jumps, which come last.
_UNORDERED = {
    ("nat", "KUBE-SERVICES"), ("nat", "KUBE-NODEPORTS"), ("filter", "KUBE-SERVICES"), ("filter", "KUBE-NODEPORTS"),
    ("filter", "KUBE-EXTERNAL-SERVICES"), ("filter", "KUBE-PROXY-FIREWALL"),
}
_LAST = "NOTE: this must be the last rule in this chain"
_COUNTING = re.compile(r"-m nfacct --nfacct-name +\S+ ")
#: The rule of 1.36 that only counts: node ports on loopback.
_ONLY_COUNTS = re.compile(r"-d 127\.0\.0\.0/8 .*-m nfacct ")

Form = dict[str, dict[str, list[str]]]


def normal_form(text: str) -> Form:
    """Table to chain to rules, of all chains there are."""
    tables: Form = {}
    table = ""
    for line in text.splitlines():
        if line.startswith("*"):
            table = line[1:]
            tables[table] = {}
        elif line.startswith(":"):
            tables[table][line[1:].split(" ")[0]] = []
        elif line.startswith("-A "):
            _a, chain, rule = line.split(" ", 2)
            if not (chain == "KUBE-NODEPORTS" and _ONLY_COUNTS.search(rule)):
                tables[table][chain].append(_COUNTING.sub("", rule))
    for name, chains in tables.items():
        for chain, rules in chains.items():
            if (name, chain) in _UNORDERED:
                rules.sort(key=lambda rule: (_LAST in rule, rule))
    return tables


def only_ours(text: str) -> list[str]:
    """The lines of a dump that have a name of ours in them."""
    return [line for line in text.splitlines() if "KUBE-" in line]
