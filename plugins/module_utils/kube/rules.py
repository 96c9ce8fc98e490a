# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state that kube-proxy would program: a pure function of the cluster and the options.

:func:`desired` is the way in for ``state: present``, :func:`nothing` for ``state: absent``.
"""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.metal.nodenet.plugins.module_utils.kube import fixed_chains, names
from ansible_collections.metal.nodenet.plugins.module_utils.kube.checks import permitted, port_warnings
from ansible_collections.metal.nodenet.plugins.module_utils.kube.endpoints import settle
from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import Cluster, node_warnings
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.kube.ownership import (
    TABLES,
    entries,
    neighbours,
    owns,
    units,
)
from ansible_collections.metal.nodenet.plugins.module_utils.kube.port_plan import Shared, make_plan, make_scene
from ansible_collections.metal.nodenet.plugins.module_utils.kube.service_chains import write_private
from ansible_collections.metal.nodenet.plugins.module_utils.kube.shared_chains import write_shared
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain, Desired, TableDesired


def desired(cluster: Cluster, options: ProxyOptions, family: str) -> tuple[Desired, list[str]]:
    """What the node should hold of one family, and what the caller should tell its user about.

    The warnings of reading are in ``cluster.warnings``; a warning about the node may come with either family.
    Raises ``ValueError`` if the cluster was read for another layout.
    """
    if cluster.layout != options.layout:
        raise ValueError(f"layout: the cluster was read for {cluster.layout.name}, not for {options.layout.name}")
    ports, warnings = permitted(cluster.ports[family], options)
    warnings += node_warnings(cluster, options.node_name) if options.node_name else []
    warnings += port_warnings(cluster, ports, options, family)
    by_port = cluster.endpoints[family]
    settled = [settle(by_port[port.key], options.layout, options.node_name) if port.key in by_port else []
               for port in ports]
    scene = make_scene(options, family, sum(map(len, settled)))
    shared = Shared([], [], [], [], [], [])
    private: dict[str, Chain] = {}
    for port, endpoints in zip(ports, settled):
        plan = make_plan(port, endpoints, scene)
        write_shared(plan, scene, shared)
        write_private(plan, scene, private)
    chains = {
        "mangle": _by_name([fixed_chains.canary()]),
        "filter": _by_name(_filter_chains(options, family, shared)),
        "nat": _nat_chains(options, family, shared, private),
    }
    return Desired(family, {table: _table(options, table, chains[table]) for table in TABLES}), warnings


def nothing(family: str, shared_with_kubelet: bool = False) -> Desired:
    """What a node should hold where kube-proxy has gone: none of what any layout makes.

    ``shared_with_kubelet``: KUBE-FIREWALL and KUBE-MARK-DROP count as kube-proxy's too.
    """
    also = shared_with_kubelet
    return Desired(family, {
        table: TableDesired({}, (), owns(table, also, also), entries(table, also), neighbours(table, also), units=units)
        for table in TABLES
    })


def _table(options: ProxyOptions, table: str, chains: dict[str, Chain]) -> TableDesired:
    firewall = options.has_firewall
    return TableDesired(chains, fixed_chains.jumps(options, table), owns(table, firewall, options.layout.marks_drops),
                        entries(table, firewall), neighbours(table, firewall), units=units)


def _by_name(chains: Iterable[Chain]) -> dict[str, Chain]:
    return {chain.name: chain for chain in chains}


def _unordered(name: str, rules: list[str], last: tuple[str, ...] = ()) -> Chain:
    """A chain where each service port has rules of its own: their order among each other has no meaning."""
    return Chain(name, (*rules, *last), ordered=False, tail=len(last))


def _filter_chains(options: ProxyOptions, family: str, shared: Shared) -> list[Chain]:
    chains = [
        _unordered(names.SERVICES, shared.services),
        _unordered(names.EXTERNAL_SERVICES, shared.external_services),
        fixed_chains.forward(options),
        _unordered(names.NODEPORTS, shared.nodeports),
        fixed_chains.canary(),
    ]
    if not options.layout.marks_drops:
        chains.append(_unordered(names.PROXY_FIREWALL, shared.proxy_firewall))
    if options.has_firewall:
        chains.append(fixed_chains.firewall(options, family))
    return chains


def _nat_chains(options: ProxyOptions, family: str, shared: Shared, private: dict[str, Chain]) -> dict[str, Chain]:
    """The chains of nat, those that are jumped to before those that jump."""
    chains = _by_name([fixed_chains.mark_masq(options), fixed_chains.canary()])
    if options.layout.marks_drops:
        chains.update(_by_name([fixed_chains.mark_drop(options)]))
    chains.update(private)
    chains.update(_by_name([
        _unordered(names.NODEPORTS, shared.nat_nodeports),
        _unordered(names.SERVICES, shared.nat_services, tuple(fixed_chains.nodeport_jumps(options, family))),
        fixed_chains.postrouting(options, family),
    ]))
    return chains
