# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of ``calico_masq`` to what the shared run needs."""

from __future__ import annotations

from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.calico import masq
from ansible_collections.metal.nodenet.plugins.module_utils.calico.node import calico_manager
from ansible_collections.metal.nodenet.plugins.module_utils.calico.nodes import read_nodes
from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import read_pools
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import read_kinds, wants_input
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, Desired
from ansible_collections.metal.nodenet.plugins.module_utils.states import Manager

TABLES = ("nat",)
_OPTIONS = ("calico_version", "rule_hashes", "insert_mode", "dataplane", "nat_outgoing_address", "nat_port_range",
            "interface_filter", "exclusions", "max_ipset_size")


def build(params: dict[str, Any]) -> Manager:
    """A manager for the module's parameters. Raises ``ValueError`` for bad input."""
    chosen = {name: params[name] for name in _OPTIONS}
    options = masq.MasqOptions(**chosen)
    raw_pools, raw_hosts, notices = _input(params)
    pools, warnings = read_pools(raw_pools)
    hosts, more = read_nodes(raw_hosts)
    warnings = [*notices, *warnings]

    def wanted(family: str, random_fully: bool) -> tuple[Desired, list[str]]:
        known = masq.MasqOptions(**chosen, random_fully=dict.fromkeys(FAMILIES, random_fully))
        state, found = masq.desired(pools, known, family, hosts)
        return state, [*warnings, *more, *found]

    return calico_manager(params, wanted, lambda family: masq.nothing(family, options))


def _input(params: dict[str, Any]) -> tuple[list[Any], list[Any], list[str]]:
    """Pools and hosts as they are given, and warnings about where they come from."""
    warnings: list[str] = []
    pools, hosts = params["pools"] or [], params["hosts"]
    source = "pools: the list is empty"
    if wants_input(params):
        found = read_kinds(params, ("IPPool", "Node"), warnings)
        pools = found["IPPool"]
        if params["exclusions"] == "pools_and_hosts":
            hosts = hosts or found["Node"]
        source = f"cluster: {params['cluster']} holds no IPPool"
    if params["state"] in ("present", "rendered") and not pools and not params["allow_empty"]:
        raise ValueError(f"{source}, and nothing would be masqueraded any more. Set allow_empty to true if that is "
                         "what you want")
    return pools, hosts, warnings
