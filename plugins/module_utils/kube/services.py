# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Service -> service ports, one for each port and family."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Callable, NamedTuple, TypeVar

from ansible_collections.metal.nodenet.plugins.module_utils.kube.fields import Item
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import Layout
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import (
    Address,
    Network,
    parse_address,
    parse_network,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6

DEFAULT_AFFINITY_SECONDS = 10800

_FAMILY_WORDS = {"IPv4": IPV4, "IPv6": IPV6}
_ZEROS = "has leading zeros, which are read as decimal"

Parsed = TypeVar("Parsed", Address, Network)


class PortKey(NamedTuple):
    """What tells service ports apart, and the order they are walked in."""

    namespace: str
    service: str
    #: Empty for a port without a name.
    port: str
    #: ``tcp``, ``udp`` or ``sctp``.
    protocol: str


class ServicePort(NamedTuple):
    """One port of one Service in one family. Addresses are canonical texts of that family."""

    key: PortKey
    #: ``namespace/name`` or ``namespace/name:port``: begins every comment, and goes into chain names.
    title: str
    cluster_ip: str
    port: int
    #: 0 for none.
    node_port: int
    external_ips: tuple[str, ...]
    lb_ips: tuple[str, ...]
    source_ranges: tuple[Network, ...]
    #: Seconds of session affinity, 0 for none.
    affinity: int
    internal_local: bool
    external_local: bool
    #: 0 for none.
    health_check_port: int
    #: Hints of endpoints may be followed.
    follows_hints: bool

    @property
    def externally_accessible(self) -> bool:
        """Whether anything but the cluster IP leads here."""
        return bool(self.node_port or self.lb_ips or self.external_ips)

    @property
    def uses_cluster(self) -> bool:
        """Whether some traffic goes to endpoints on any node."""
        return not self.internal_local or self.externally_accessible

    @property
    def uses_local(self) -> bool:
        """Whether some traffic goes to endpoints of this node only."""
        return self.internal_local or (self.external_local and self.externally_accessible)


class _Frontends(NamedTuple):
    """The addresses of a Service that are the same for all of its ports, of both families."""

    external_ips: list[Address]
    lb_ips: list[Address]
    source_ranges: list[Network]


#: Nearly all Services have none.
_NO_FRONTENDS = _Frontends([], [], [])


def read_service(item: Item, layout: Layout) -> dict[str, list[ServicePort]]:
    """The service ports of a Service by family, without those of the families it is not in.

    Empty for a Service that kube-proxy does not look at: ExternalName, headless, or labelled as somebody else's.
    Raises :class:`ObjectError`.
    """
    if not layout.service_exclusions.isdisjoint(item.labels):
        return {}
    spec = item.mapping(item.raw, "spec", "spec")
    kind = item.choice(spec, "type", "spec.type", ("ClusterIP", "NodePort", "LoadBalancer", "ExternalName"))
    if kind == "ExternalName":
        return {}
    cluster_ips = _cluster_ips(item, spec)
    if not cluster_ips:
        return {}
    frontends = _frontends(item, spec, layout)
    affinity, internal_local, external_local, health, hints = _common(item, spec, layout, kind)
    numbers = _ports(item, spec)
    ports: dict[str, list[ServicePort]] = {}
    for family, cluster_ip in cluster_ips.items():
        external_ips, lb_ips, ranges = _of_family(item, frontends, family, layout)
        ports[family] = [
            ServicePort(key, title, cluster_ip, port, node_port, external_ips, lb_ips, ranges, affinity,
                        internal_local, external_local, health, hints)
            for key, title, port, node_port in numbers
        ]
    return ports


def _cluster_ips(item: Item, spec: Mapping[str, Any]) -> dict[str, str]:
    first = item.text(spec, "clusterIP", "spec.clusterIP")
    if first == "None":
        return {}
    if not first:
        item.warn("spec.clusterIP", first, "is not set: the Service gets no rules")
        return {}
    texts = item.texts(spec, "clusterIPs", "spec.clusterIPs") or [first]
    families = item.texts(spec, "ipFamilies", "spec.ipFamilies")
    if not families:
        address = _parsed(item, parse_address, "spec.clusterIP", first)
        return {address.family: address.text} if address else {}
    found: dict[str, str] = {}
    for index, (word, text) in enumerate(zip(families, texts)):
        family = _FAMILY_WORDS.get(word)
        if family is None:
            raise item.error(f"spec.ipFamilies[{index}]", word, "is not one of IPv4, IPv6")
        address = _parsed(item, parse_address, f"spec.clusterIPs[{index}]", text)
        if address and address.family != family:
            item.warn(f"spec.clusterIPs[{index}]", text, f"is not {word} as spec.ipFamilies[{index}] says: left out")
        elif address:
            found.setdefault(family, address.text)
    return found


def _ports(item: Item, spec: Mapping[str, Any]) -> list[tuple[PortKey, str, int, int]]:
    base = f"{item.namespace}/{item.name}"
    ports = []
    seen = set()
    for index, raw in enumerate(item.mappings(spec, "ports", "spec.ports")):
        field = f"spec.ports[{index}]"
        name = item.port_name(raw, f"{field}.name")
        key = PortKey(item.namespace, item.name, name, item.protocol(raw, f"{field}.protocol"))
        if key in seen:
            raise item.error(f"{field}.name", name, f"is there twice for {key.protocol}")
        seen.add(key)
        port = item.port(raw, "port", f"{field}.port")
        if not port:
            raise item.error(f"{field}.port", raw.get("port"), "is not an integer from 1 to 65535")
        node_port = item.port(raw, "nodePort", f"{field}.nodePort")
        ports.append((key, f"{base}:{name}" if name else base, port, node_port))
    return ports


def _common(item: Item, spec: Mapping[str, Any], layout: Layout, kind: str) -> tuple[int, bool, bool, int, bool]:
    """The last fields of a ServicePort, from ``affinity`` on."""
    policy = item.choice(spec, "internalTrafficPolicy", "spec.internalTrafficPolicy", ("Cluster", "Local"))
    internal_local = policy == "Local"
    policy = item.choice(spec, "externalTrafficPolicy", "spec.externalTrafficPolicy", ("Cluster", "Local"))
    external_local = policy == "Local" and (
        kind != "ClusterIP" or (layout.external_local_on_cluster_ip and bool(spec.get("externalIPs")))
    )
    health = item.port(spec, "healthCheckNodePort", "spec.healthCheckNodePort")
    if not (external_local and kind == "LoadBalancer"):
        health = 0
    return _affinity(item, spec), internal_local, external_local, health, _follows_hints(item.annotations, layout)


def _affinity(item: Item, spec: Mapping[str, Any]) -> int:
    if item.choice(spec, "sessionAffinity", "spec.sessionAffinity", ("None", "ClientIP")) == "None":
        return 0
    config = item.mapping(spec, "sessionAffinityConfig", "spec.sessionAffinityConfig")
    client = item.mapping(config, "clientIP", "spec.sessionAffinityConfig.clientIP")
    field = "spec.sessionAffinityConfig.clientIP.timeoutSeconds"
    return item.number(client, "timeoutSeconds", field, 1, 86400) or DEFAULT_AFFINITY_SECONDS


def _follows_hints(annotations: Mapping[str, Any], layout: Layout) -> bool:
    if layout.hint_annotations is None:
        return True
    for annotation in layout.hint_annotations:
        if annotation in annotations:
            value = annotations[annotation]
            if layout.hint_values is not None:
                return isinstance(value, str) and value in layout.hint_values
            return bool(value) and value not in ("disabled", "Disabled")
    return False


def _frontends(item: Item, spec: Mapping[str, Any], layout: Layout) -> _Frontends:
    balancer = item.mapping(item.mapping(item.raw, "status", "status"), "loadBalancer", "status.loadBalancer")
    if not balancer and all(spec.get(key) in (None, []) for key in ("externalIPs", "loadBalancerSourceRanges")):
        return _NO_FRONTENDS
    external = [
        _parsed(item, parse_address, f"spec.externalIPs[{index}]", text)
        for index, text in enumerate(item.texts(spec, "externalIPs", "spec.externalIPs"))
    ]
    ranges = [
        _parsed(item, parse_network, f"spec.loadBalancerSourceRanges[{index}]", text)
        for index, text in enumerate(item.texts(spec, "loadBalancerSourceRanges", "spec.loadBalancerSourceRanges"))
    ]
    ingress = []
    for index, entry in enumerate(item.mappings(balancer, "ingress", "status.loadBalancer.ingress")):
        field = f"status.loadBalancer.ingress[{index}].ip"
        text = item.text(entry, "ip", field)
        if text and (not layout.lb_ip_mode or entry.get("ipMode") in (None, "VIP")):
            ingress.append(_parsed(item, parse_address, field, text))
    return _Frontends(_unique(item, "spec.externalIPs", external), _unique(item, "status.loadBalancer", ingress),
                      _unique(item, "spec.loadBalancerSourceRanges", ranges))


def _of_family(item: Item, frontends: _Frontends, family: str, layout: Layout) -> tuple[
        tuple[str, ...], tuple[str, ...], tuple[Network, ...]]:
    """External IPs, load balancer IPs and source ranges of one family."""
    if frontends is _NO_FRONTENDS:
        return (), (), ()
    lb_ips = tuple(address.text for address in frontends.lb_ips if address.family == family)
    ranges = tuple(network for network in frontends.source_ranges if network.family == family)
    field = "spec.loadBalancerSourceRanges"
    if lb_ips and frontends.source_ranges and not ranges:
        item.warn(field, [network.text for network in frontends.source_ranges],
                  f"has no {family} range: {', '.join(lb_ips)} stays open to every source")
    opening = [network.text for network in ranges if network.length == 0]
    if opening and lb_ips:
        item.warn(field, opening[0], f"opens {', '.join(lb_ips)} to every source")
    if opening and layout.zero_range_opens:
        ranges = ()
    return tuple(address.text for address in frontends.external_ips if address.family == family), lb_ips, ranges


def _parsed(item: Item, parse: Callable[[str], Parsed], field: str, text: str) -> Parsed | None:
    try:
        value = parse(text)
    except ValueError as error:
        item.warn(field, text, f"is left out: {str(error).split(':', 1)[0]}")
        return None
    if value.zeros:
        item.warn(field, text, f"{_ZEROS}: {value.text}")
    return value


def _unique(item: Item, field: str, values: Sequence[Parsed | None]) -> list[Parsed]:
    """The values that were read, each once, in order."""
    kept: dict[str, Parsed] = {}
    for value in values:
        if value is not None and kept.setdefault(value.text, value) is not value:
            item.warn(field, value.text, "is there twice: used once")
    return list(kept.values())
