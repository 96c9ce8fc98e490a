# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A List of Kubernetes objects -> what rules are made of.

:func:`read_cluster` is the way in: plain dicts as ``kubectl get nodes,services,endpointslices -A -o json`` gives them
become service ports, endpoints and nodes of one layout.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from difflib import get_close_matches
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.kube.fields import Item
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import Layout
from ansible_collections.metal.nodenet.plugins.module_utils.kube.services import PortKey, ServicePort, read_service
from ansible_collections.metal.nodenet.plugins.module_utils.kube.slices import Endpoint, read_slice
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Address, parse_address
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES
from ansible_collections.metal.nodenet.plugins.module_utils.objects import ObjectError, plain
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

__all__ = ["Cluster", "Endpoint", "Node", "ObjectError", "PortKey", "ServicePort", "node_warnings", "read_cluster"]

ZONE_LABEL = "topology.kubernetes.io/zone"

#: How many names a warning shows.
_SHOWN = 3
_NAME_LENGTH = 253

_KINDS = ("Node", "Service", "EndpointSlice")


class Node(NamedTuple):
    """One Node object."""

    name: str
    #: Empty where the label is absent.
    zone: str
    #: ``spec.podCIDRs`` as written.
    pod_cidrs: tuple[str, ...]
    #: Family to the address that kube-proxy takes for the node: the first InternalIP, else the first ExternalIP.
    host_ips: dict[str, str]
    #: All addresses of both kinds, canonical.
    addresses: tuple[str, ...]


class Cluster(NamedTuple):
    """Everything of a cluster that one layout of kube-proxy looks at."""

    layout: Layout
    nodes: dict[str, Node]
    #: Family to service ports, in the order of their keys.
    ports: dict[str, tuple[ServicePort, ...]]
    #: Family to service port to endpoints of all slices, in the order of the slices' names, duplicates included.
    endpoints: dict[str, dict[PortKey, list[Endpoint]]]
    #: The nodes that endpoints are on.
    endpoint_nodes: frozenset[str]
    #: What was left out or read leniently, and other things a reader should know.
    warnings: tuple[str, ...]


def read_cluster(objects: Iterable[object], layout: Layout) -> Cluster:
    """Read the items of a ``v1`` List: Node, Service and EndpointSlice objects; other kinds are not looked at.

    An object without ``metadata.namespace`` is in ``default``. Raises :class:`ObjectError` for an object that is not
    what its kind must be, or that is there twice with different content.
    """
    found = _by_kind(objects)
    warnings: list[str] = []
    nodes: dict[str, Node] = {}
    for raw in found["Node"]:
        node = _read_node(Item("Node", raw, warnings, namespaced=False))
        nodes[node.name] = node
    ports: dict[str, list[ServicePort]] = {family: [] for family in FAMILIES}
    for item in _in_order("Service", found["Service"], warnings):
        for family, service_ports in read_service(item, layout).items():
            ports[family] += service_ports
    endpoints: dict[str, dict[PortKey, list[Endpoint]]] = {family: {} for family in FAMILIES}
    for item in _in_order("EndpointSlice", found["EndpointSlice"], warnings):
        read_slice(item, layout, endpoints)
    for service_ports in ports.values():
        service_ports.sort(key=_key)
    on_nodes = frozenset(endpoint.node for by_port in endpoints.values() for group in by_port.values()
                         for endpoint in group if endpoint.node)
    return Cluster(layout, nodes, {family: tuple(ports[family]) for family in FAMILIES}, endpoints, on_nodes,
                   tuple(dict.fromkeys(warnings)))


def node_warnings(cluster: Cluster, node_name: str) -> list[str]:
    """Says so where ``node_name`` looks like a wrong name: then every Local policy would find no local endpoint.

    A Node object of that name settles the matter, unless endpoints know a longer or shorter form of it.
    """
    found = []
    if cluster.nodes and node_name not in cluster.nodes:
        found.append(f"node_name {shown(node_name)} is the name of no Node (there are "
                     f"{_nearest(node_name, cluster.nodes)}): its zone and addresses are not known")
    others = cluster.endpoint_nodes
    if others and node_name not in others and not (
            node_name in cluster.nodes and not any(_same_host(other, node_name) for other in others)):
        found.append(f"node_name {shown(node_name)} is the nodeName of no endpoint (there are "
                     f"{_nearest(node_name, others)}): no endpoint counts as local")
    return found


def _nearest(name: str, others: Collection[str]) -> str:
    """The names that ``name`` may have been meant to be, the nearest first; any where none is near."""
    same = sorted(other for other in others if _same_host(other, name))
    # Comparing takes time in proportion to the length, and no name of a node is long.
    names = sorted(other for other in others if len(other) <= _NAME_LENGTH)
    near = same or get_close_matches(name[:_NAME_LENGTH], names, _SHOWN) or sorted(others)
    return ", ".join(map(plain, near[:_SHOWN])) + (", …" if len(others) > min(len(near), _SHOWN) else "")


def _same_host(one: str, other: str) -> bool:
    return one.lower().split(".", 1)[0] == other.lower().split(".", 1)[0]


def _key(port: ServicePort) -> PortKey:
    return port.key


def _by_kind(objects: Iterable[object]) -> dict[str, list[Mapping[str, Any]]]:
    found: dict[str, list[Mapping[str, Any]]] = {kind: [] for kind in _KINDS}
    for index, raw in enumerate(objects):
        if not isinstance(raw, dict):
            raise ObjectError("List", "", "", f"items[{index}]", raw, "is not an object")
        kind = raw.get("kind")
        if not isinstance(kind, str):
            raise ObjectError("List", "", "", f"items[{index}].kind", kind, "is not the kind of an object")
        if kind in found:
            found[kind].append(raw)
    return found


def _in_order(kind: str, raws: list[Mapping[str, Any]], warnings: list[str]) -> list[Item]:
    """The objects by namespace and name, so that their order in the file decides nothing."""
    items: dict[tuple[str, str], Item] = {}
    for raw in raws:
        item = Item(kind, raw, warnings)
        if items.setdefault((item.namespace, item.name), item).raw != raw:
            raise item.error("metadata.name", item.name, "is there twice, with different content")
    return [items[key] for key in sorted(items)]


def _read_node(item: Item) -> Node:
    spec = item.mapping(item.raw, "spec", "spec")
    cidrs = item.texts(spec, "podCIDRs", "spec.podCIDRs")
    if not cidrs and item.text(spec, "podCIDR", "spec.podCIDR"):
        cidrs = [item.text(spec, "podCIDR", "spec.podCIDR")]
    addresses = _node_addresses(item)
    host_ips: dict[str, str] = {}
    for address in addresses:
        host_ips.setdefault(address.family, address.text)
    zone = item.text(item.labels, ZONE_LABEL, f"metadata.labels[{ZONE_LABEL}]")
    return Node(item.name, zone, tuple(cidrs), host_ips, tuple(address.text for address in addresses))


def _node_addresses(item: Item) -> list[Address]:
    status = item.mapping(item.raw, "status", "status")
    entries = item.mappings(status, "addresses", "status.addresses")
    addresses = []
    for wanted in ("InternalIP", "ExternalIP"):
        for index, entry in enumerate(entries):
            if entry.get("type") != wanted:
                continue
            field = f"status.addresses[{index}].address"
            text = item.text(entry, "address", field)
            try:
                addresses.append(parse_address(text))
            except ValueError:
                item.warn(field, text, "is left out: not an IP address")
    return addresses
