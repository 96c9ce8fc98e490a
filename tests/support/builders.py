# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small clusters for tests: objects as kubectl gives them, and what is rendered for them in an easy form."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.kube.names import endpoint_chain, port_hash
from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import read_cluster
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.kube.rules import desired
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, Desired

NEWEST = "1.36"
WITH_FALLBACK = ("1.30", "1.36")
ALL = ("1.24", "1.30", "1.36")

Object = dict[str, Any]


def service(
    name: str = "web",
    namespace: str = "default",
    ports: list[Object] | None = None,
    lb: Sequence[Any] = (),
    labels: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
    **spec: Any,
) -> Object:
    """A Service; ``lb`` are addresses or whole ingress entries, further words go into ``spec``."""
    ingress = [entry if isinstance(entry, dict) else {"ip": entry} for entry in lb]
    spec.setdefault("type", "LoadBalancer" if lb else "ClusterIP")
    spec.setdefault("clusterIP", "10.96.0.10")
    spec["ports"] = ports if ports is not None else [{"name": "http", "port": 80, "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace, "labels": labels or {}, "annotations": annotations or {}},
        "spec": spec,
        "status": {"loadBalancer": {"ingress": ingress}},
    }


def endpoint(
    *addresses: str,
    node: str | None = None,
    zones: Sequence[str] = (),
    nodes: Sequence[str] = (),
    **conditions: bool,
) -> Object:
    """An entry of an EndpointSlice."""
    entry: Object = {"addresses": list(addresses), "conditions": conditions}
    if node:
        entry["nodeName"] = node
    if zones or nodes:
        entry["hints"] = {"forZones": [{"name": zone} for zone in zones], "forNodes": [{"name": one} for one in nodes]}
    return entry


def endpoint_slice(
    *endpoints: Any,
    name: str = "web-a",
    service_name: str = "web",
    namespace: str = "default",
    port: int = 8080,
    port_name: str | None = "http",
    protocol: str = "TCP",
    address_type: str = "IPv4",
) -> Object:
    """An EndpointSlice with one port; endpoints are entries or single addresses."""
    entries = [endpoint(one) if isinstance(one, str) else one for one in endpoints]
    return {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "addressType": address_type,
        "metadata": {"name": name, "namespace": namespace, "labels": {"kubernetes.io/service-name": service_name}},
        "ports": [{"name": port_name, "port": port, "protocol": protocol}],
        "endpoints": entries,
    }


class Rendered:
    """What is desired for one family, with its warnings."""

    def __init__(self, state: Desired, warnings: list[str]) -> None:
        self.state = state
        self.warnings = warnings

    def chain(self, table: str, name: str) -> list[str]:
        """The rules of a chain that must be there."""
        return list(self.state.tables[table].chains[name].rules)

    def names(self, table: str, prefix: str = "") -> list[str]:
        """The chains of a table whose name begins so."""
        return sorted(name for name in self.state.tables[table].chains if name.startswith(prefix))

    def rules(self) -> list[str]:
        """Every rule of every chain."""
        return [rule for table in self.state.tables.values() for chain in table.chains.values() for rule in chain.rules]

    def warned(self, *words: str) -> bool:
        """Whether one warning has all these words."""
        return any(all(word in warning for word in words) for warning in self.warnings)


def render(objects: list[Object], layout: str = NEWEST, family: str = IPV4, **options: Any) -> Rendered:
    """Render objects with these options."""
    cluster = read_cluster(objects, LAYOUTS[layout])
    state, warnings = desired(cluster, ProxyOptions(layout=LAYOUTS[layout], **options), family)
    return Rendered(state, [*cluster.warnings, *warnings])


def named(prefix: str, title: str = "default/web:http", protocol: str = "tcp") -> str:
    """The name of a chain of a service port: ``named("SVC")``."""
    return f"KUBE-{prefix}-{port_hash(title, protocol)}"


def sep(endpoint_text: str, title: str = "default/web:http", protocol: str = "tcp") -> str:
    """The name of an endpoint's chain."""
    return endpoint_chain(title, protocol, endpoint_text)
