# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading objects: what is an error, what is a warning, what is a default."""

from __future__ import annotations

import copy
from typing import Any, Callable

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import (
    Cluster,
    ObjectError,
    node_warnings,
    read_cluster,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6
from support.builders import NEWEST, endpoint, endpoint_slice, service


def read(*objects: object) -> Cluster:
    return read_cluster(objects, LAYOUTS[NEWEST])


def with_value(source: Any, path: str, value: object) -> Any:
    """A copy with one field set; numbers in the path are indexes."""
    changed = copy.deepcopy(source)
    at = changed
    *parents, last = [int(step) if step.isdigit() else step for step in path.split(".")]
    for step in parents:
        at = at[step]
    at[last] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("metadata", None, "metadata.name"),
        ("metadata", [], "metadata"),
        ("metadata.name", 'we"b', "metadata.name"),
        ("metadata.name", "web\n", "metadata.name"),
        ("metadata.name", "we b", "metadata.name"),
        ("metadata.name", "n" * 254, "metadata.name"),
        ("metadata.namespace", "a/b", "metadata.namespace"),
        ("metadata.labels", "x", "metadata.labels"),
        ("spec", "x", "spec"),
        ("spec.type", "Loadbalancer", "spec.type"),
        ("spec.clusterIP", 10, "spec.clusterIP"),
        ("spec.ports", {}, "spec.ports"),
        ("spec.ports.0", "80", "spec.ports[0]"),
        ("spec.ports.0.port", 0, "spec.ports[0].port"),
        ("spec.ports.0.port", 65536, "spec.ports[0].port"),
        ("spec.ports.0.port", "80", "spec.ports[0].port"),
        ("spec.ports.0.port", True, "spec.ports[0].port"),
        ("spec.ports.0.port", None, "spec.ports[0].port"),
        ("spec.ports.0.nodePort", -1, "spec.ports[0].nodePort"),
        ("spec.ports.0.protocol", "ICMP", "spec.ports[0].protocol"),
        ("spec.ports.0.name", "a'b", "spec.ports[0].name"),
        ("spec.externalIPs", "1.2.3.4", "spec.externalIPs"),
        ("spec.externalIPs", [1], "spec.externalIPs[0]"),
        ("spec.ipFamilies", ["IPv5"], "spec.ipFamilies[0]"),
        ("spec.sessionAffinity", "Cookie", "spec.sessionAffinity"),
        ("spec.externalTrafficPolicy", "local", "spec.externalTrafficPolicy"),
        ("spec.healthCheckNodePort", 70000, "spec.healthCheckNodePort"),
        ("status.loadBalancer.ingress", ["1.2.3.4"], "status.loadBalancer.ingress[0]"),
    ],
)
def test_a_bad_service_is_named(path: str, value: object, field: str) -> None:
    with pytest.raises(ObjectError) as caught:
        read(with_value(service(), path, value))
    assert caught.value.field == field
    assert caught.value.kind == "Service"
    assert repr(caught.value.value) in str(caught.value)
    if not field.startswith("metadata"):
        assert str(caught.value).startswith(f"Service default/web: {field}: ")


@pytest.mark.parametrize(
    ("path", "value", "field"),
    [
        ("addressType", "IPv5", "addressType"),
        ("addressType", None, "addressType"),
        ("ports.0.port", 70000, "ports[0].port"),
        ("ports.0.protocol", "tcp", "ports[0].protocol"),
        ("ports.0.name", "a b", "ports[0].name"),
        ("endpoints.0", "10.0.0.1", "endpoints[0]"),
        ("endpoints.0.addresses", "10.0.0.1", "endpoints[0].addresses"),
        ("endpoints.0.addresses.0", 1, "endpoints[0].addresses[0]"),
        ("endpoints.0.conditions", {"ready": "yes"}, "endpoints[0].conditions.ready"),
        ("endpoints.0.nodeName", 1, "endpoints[0].nodeName"),
        ("endpoints.0.hints", {"forZones": [{"name": 1}]}, "endpoints[0].hints.forZones[].name"),
    ],
)
def test_a_bad_slice_is_named(path: str, value: object, field: str) -> None:
    with pytest.raises(ObjectError) as caught:
        read(with_value(endpoint_slice("10.0.0.1"), path, value))
    assert str(caught.value).startswith(f"EndpointSlice default/web-a: {field}: ")


@pytest.mark.parametrize("item", [None, "Service", [], {}, {"kind": 1}])
def test_what_is_no_object(item: object) -> None:
    with pytest.raises(ObjectError, match=r"items\[0\]"):
        read(item)


def test_other_kinds_are_not_looked_at() -> None:
    assert read({"kind": "Pod"}, {"kind": "Endpoints", "metadata": 1}).ports == {IPV4: (), IPV6: ()}


def test_an_object_twice() -> None:
    assert len(read(service(), service()).ports[IPV4]) == 1
    with pytest.raises(ObjectError, match="Service default/web: .*twice"):
        read(service(), service(clusterIP="10.96.0.11"))


def test_a_port_twice() -> None:
    with pytest.raises(ObjectError, match=r"spec.ports\[1\].name: 'http' is there twice for tcp"):
        read(service(ports=[{"name": "http", "port": 80}, {"name": "http", "port": 81}]))
    assert len(read(service(ports=[{"port": 53}, {"port": 53, "protocol": "UDP"}])).ports[IPV4]) == 2


def test_defaults() -> None:
    cluster = read(
        {
            "kind": "Service",
            "metadata": {"name": "web"},
            "spec": {"clusterIP": "10.96.0.10", "ports": [{"port": 80}], "sessionAffinity": "ClientIP"},
        },
        {
            "kind": "EndpointSlice",
            "addressType": "IPv4",
            "ports": [{"name": "", "port": 80}],
            "metadata": {"name": "web-a", "labels": {"kubernetes.io/service-name": "web"}},
            "endpoints": [{"addresses": ["10.0.0.1"]}],
        },
    )
    (port,) = cluster.ports[IPV4]
    assert (port.key, port.title, port.affinity) == (("default", "web", "", "tcp"), "default/web", 10800)
    (one,) = cluster.endpoints[IPV4][port.key]
    assert (one.ready, one.serving, one.terminating, one.node) == (True, True, False, "")
    assert cluster.warnings == ()


def test_a_port_without_a_name_is_left_out_and_named() -> None:
    unnamed = endpoint_slice("10.0.0.1", port_name=None)
    assert read(unnamed).endpoints[IPV4] == {}
    assert "ports[0].name" in read(unnamed).warnings[0]
    assert read(endpoint_slice("10.0.0.1", port_name="")).endpoints[IPV4] != {}


@pytest.mark.parametrize(
    "change",
    [
        lambda raw: raw["metadata"]["labels"].clear(),
        lambda raw: raw["metadata"]["labels"].update({"kubernetes.io/service-name": ""}),
        lambda raw: raw["metadata"]["labels"].update({"service.kubernetes.io/headless": ""}),
        lambda raw: raw.update(addressType="FQDN"),
        lambda raw: raw.update(ports=None),
        lambda raw: raw.update(endpoints=None),
        lambda raw: raw["ports"][0].update(port=None),
        lambda raw: raw["endpoints"][0].update(addresses=[]),
    ],
)
def test_slices_that_add_nothing(change: Callable[[Any], None]) -> None:
    raw = endpoint_slice("10.0.0.1")
    change(raw)
    assert not any(read(raw).endpoints[IPV4].values())


def test_an_address_of_the_other_family_is_left_out() -> None:
    cluster = read(endpoint_slice("fd00::1", "10.0.0.1"))
    assert [one.address for group in cluster.endpoints[IPV4].values() for one in group] == ["10.0.0.1"]
    assert "fd00::1" in cluster.warnings[0]


def test_cluster_ips_by_family() -> None:
    dual = service(clusterIP="fd00::1", clusterIPs=["fd00::1", "10.96.0.1"], ipFamilies=["IPv6", "IPv4"])
    assert {family: [one.cluster_ip for one in ports] for family, ports in read(dual).ports.items()} == {
        IPV4: ["10.96.0.1"],
        IPV6: ["fd00::1"],
    }
    crossed = read(service(clusterIPs=["fd00::1"], ipFamilies=["IPv4"]))
    assert crossed.ports[IPV4] == ()
    assert "spec.clusterIPs[0]" in crossed.warnings[0]
    assert "spec.clusterIP" in read(service(clusterIP="")).warnings[0]
    assert "spec.clusterIP" in read(service(clusterIP="ten")).warnings[0]


def test_nodes() -> None:
    cluster = read(
        {
            "kind": "Node",
            "metadata": {"name": "n1", "labels": {"topology.kubernetes.io/zone": "a"}},
            "spec": {"podCIDRs": ["10.0.0.0/24"]},
            "status": {
                "addresses": [
                    {"type": "Hostname", "address": "n1"},
                    {"type": "ExternalIP", "address": "198.51.100.1"},
                    {"type": "InternalIP", "address": "192.0.2.1"},
                    {"type": "InternalIP", "address": "192.0.2.2"},
                    {"type": "ExternalIP", "address": "2001:DB8::1"},
                ]
            },
        }
    )
    node = cluster.nodes["n1"]
    assert (node.zone, node.pod_cidrs) == ("a", ("10.0.0.0/24",))
    assert node.host_ips == {IPV4: "192.0.2.1", IPV6: "2001:db8::1"}
    assert node.addresses == ("192.0.2.1", "192.0.2.2", "198.51.100.1", "2001:db8::1")


def test_endpoints_know_their_nodes() -> None:
    assert read(endpoint_slice(endpoint("10.0.0.1", node="n1"), "10.0.0.2")).endpoint_nodes == {"n1"}


def names(*nodes: str) -> list[dict[str, Any]]:
    return [{"kind": "Node", "metadata": {"name": name}} for name in nodes]


WRONG_NODE = "is the name of no Node (there are "
WRONG_ENDPOINT = "is the nodeName of no endpoint (there are "


@pytest.mark.parametrize(("nodes", "on", "name", "expected"), [
    pytest.param(["n1", "n2"], ["n1"], "n1", [], id="a Node and an endpoint"),
    pytest.param(["n1", "n2"], ["n1"], "n2", [], id="a Node that no endpoint is on"),
    pytest.param([], ["n1"], "n1", [], id="an endpoint, and no Nodes in the file"),
    pytest.param([], [], "n1", [], id="nothing to compare with"),
    pytest.param(["worker-01", "worker-02", "master"], [], "worker-1", [WRONG_NODE + "worker-01, worker-02, …)"],
                 id="the nearest Nodes"),
    pytest.param([], ["a", "b", "c", "d"], "zzz", [WRONG_ENDPOINT + "a, b, c, …)"], id="none is near"),
    pytest.param(["n1"], ["n1"], "n1.example.org", [WRONG_NODE + "n1)", WRONG_ENDPOINT + "n1)"], id="a longer form"),
    pytest.param(["n1"], ["N1.example.org", "n2"], "n1", [WRONG_ENDPOINT + "N1.example.org, …)"],
                 id="a Node whose endpoints have a longer form"),
    pytest.param(["n2"], ["n1"], "n1", [WRONG_NODE + "n2)"], id="endpoints alone know it"),
])
def test_a_name_that_is_most_likely_wrong(nodes: list[str], on: list[str], name: str, expected: list[str]) -> None:
    cluster = read(*names(*nodes), endpoint_slice(*(endpoint(f"10.0.0.{last}", node=node)
                                                    for last, node in enumerate(on, 1))))
    found = node_warnings(cluster, name)
    assert [text for text, part in zip(found, expected) if f"node_name {name!r} {part}" in text] == found
    assert len(found) == len(expected)
