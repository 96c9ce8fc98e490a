# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is wrong between Services though each is right by itself, and what the operator does not permit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import Cluster
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.kube.services import ServicePort
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import parse_address, parse_network


def permitted(ports: Sequence[ServicePort], options: ProxyOptions) -> tuple[Sequence[ServicePort], list[str]]:
    """The service ports with only those external IPs that the options permit, and a warning for each other one."""
    if options.allowed_external_ips is None:
        return ports, []
    networks = [parse_network(text) for text in options.allowed_external_ips]
    warnings: dict[str, None] = {}
    kept = []
    for port in ports:
        if port.external_ips:
            allowed = tuple(ip for ip in port.external_ips
                            if any(network.has(parse_address(ip)) for network in networks))
            for address in port.external_ips:
                if address not in allowed:
                    warnings[f"Service {_name(port)}: spec.externalIPs: {address!r} is left out: "
                             "it is not in allowed_external_ips"] = None
            port = port._replace(external_ips=allowed)
        kept.append(port)
    return kept, list(warnings)


def port_warnings(cluster: Cluster, ports: Sequence[ServicePort], options: ProxyOptions, family: str) -> list[str]:
    """Addresses and ports that two Services claim, or that are not a Service's to claim."""
    return [*_frontends_claimed_twice(ports), *_foreign_external_ips(cluster, ports, options),
            *_node_ports_claimed_twice(ports)]


def _name(port: ServicePort) -> str:
    return f"{port.key.namespace}/{port.key.service}"


def _frontends_claimed_twice(ports: Sequence[ServicePort]) -> Iterator[str]:
    """External and load balancer addresses that lead to two Services on the same port."""
    claimed: dict[tuple[str, int, str], str] = {}
    for port in ports:
        for address in dict.fromkeys(port.external_ips + port.lb_ips):
            holder = claimed.setdefault((address, port.port, port.key.protocol), port.title)
            if holder != port.title:
                yield (f"Service {_name(port)}: {address} port {port.port} ({port.key.protocol}) belongs to "
                       f"{holder} too, which comes first")


def _foreign_external_ips(cluster: Cluster, ports: Sequence[ServicePort], options: ProxyOptions) -> list[str]:
    """External IPs that are an address of a node or the cluster IP of another Service."""
    if not any(port.external_ips for port in ports):
        return []
    node_ips = {address: f"node {node.name}" for node in cluster.nodes.values() for address in node.addresses}
    for address in options.local_addresses:
        node_ips.setdefault(address, "this node")
    cluster_ips: dict[str, str] = {port.cluster_ip: _name(port) for port in ports}
    warnings: dict[str, None] = {}
    for port in ports:
        for address in port.external_ips:
            owner = node_ips.get(address)
            if owner:
                warnings[f"Service {_name(port)}: spec.externalIPs: {address!r} is an address of {owner}"] = None
            if address in cluster_ips:
                warnings[f"Service {_name(port)}: spec.externalIPs: {address!r} is the cluster IP of "
                         f"{cluster_ips[address]}"] = None
    return list(warnings)


def _node_ports_claimed_twice(ports: Sequence[ServicePort]) -> list[str]:
    """Node ports and health check node ports of two Services that are the same."""
    claimed: dict[tuple[int, str], tuple[str, str]] = {}
    warnings: dict[str, None] = {}
    for port in ports:
        for number, protocol, field in ((port.node_port, port.key.protocol, "nodePort"),
                                        (port.health_check_port, "tcp", "healthCheckNodePort")):
            if not number:
                continue
            service = _name(port)
            holder, holder_field = claimed.setdefault((number, protocol), (service, field))
            # The ports of one Service share its health check port.
            if (holder, holder_field) != (service, field):
                warnings[f"Service {service}: {field}: {number} is the {holder_field} of {holder} too"] = None
    return list(warnings)
