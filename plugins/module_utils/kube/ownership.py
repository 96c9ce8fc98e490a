# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which chains and jumps are kube-proxy's. Ownership is by name, so that no state file is needed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Callable

from ansible_collections.metal.nodenet.plugins.module_utils.kube import names
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import possible_targets

TABLES = ("mangle", "filter", "nat")

_FIXED: dict[str, frozenset[str]] = {
    "mangle": frozenset((names.CANARY,)),
    "filter": frozenset((names.SERVICES, names.EXTERNAL_SERVICES, names.FORWARD, names.NODEPORTS,
                         names.PROXY_FIREWALL, names.CANARY)),
    "nat": frozenset((names.SERVICES, names.NODEPORTS, names.POSTROUTING, names.MARK_MASQ, names.CANARY)),
}


def owns(table: str, firewall: bool, mark_drop: bool) -> Callable[[str], bool]:
    """Says of a chain name of the table whether it is ours.

    ``firewall`` and ``mark_drop``: whether KUBE-FIREWALL and KUBE-MARK-DROP, which the kubelet has too, count as ours.
    """
    fixed = _FIXED[table]
    if firewall and table == "filter":
        fixed |= {names.FIREWALL}
    if table != "nat":
        return fixed.__contains__
    if mark_drop:
        fixed |= {names.MARK_DROP}

    def is_ours(name: str) -> bool:
        return name.startswith(names.SERVICE_PREFIXES) or name in fixed

    return is_ours


def entries(table: str, firewall: bool) -> frozenset[str]:
    """The chains that built-in chains jump to, in any layout: a jump of another layout is a leftover of ours."""
    targets = {jump.target for layout in LAYOUTS.values() for jump in layout.jumps.get(table, ())}
    return frozenset(targets if firewall else targets - {names.FIREWALL})


def neighbours(table: str, firewall: bool) -> tuple[str, ...]:
    """Prefixes of the chains whose jumps may stand before ours: Calico's, and the kubelet's where it is not ours."""
    return ("cali-",) if firewall or table != "filter" else ("cali-", names.FIREWALL)


def units(chains: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The service port (its hash) of every chain that belongs to one; an endpoint's chain follows who leads to it."""
    found = {name: names.hash_of(name) for name in chains if names.hash_of(name)}
    for name, unit in list(found.items()):
        for target in possible_targets("\n".join(chains[name])):
            if target in chains and target.startswith(names.ENDPOINT_PREFIX):
                found[target] = unit
    return found
