# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""UDP flows that a change leaves behind, in the kernel's own table and with real packets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from support.builders import endpoint_slice, service
from support.flows import listed_flows, make_flow
from support.node import Node
from support.packets import Wire

DNS = [{"name": "dns", "port": 53, "protocol": "UDP", "nodePort": 30053}]


def dns(*pods: str, **spec: Any) -> dict[str, Any]:
    """A UDP service at 10.96.0.10 and node port 30053 with these pods."""
    spec.setdefault("externalIPs", ["203.0.113.9"])
    return {"services": [service(name="dns", type="NodePort", ports=DNS, **spec)],
            "endpoint_slices": [endpoint_slice(*pods, name="dns-a", service_name="dns", port=5353, port_name="dns",
                                               protocol="UDP")] if pods else []}


def flow(one: Node, destination: str, answering: str, port: int = 53, protocol: str = "udp") -> None:
    """Make a flow as connection tracking would have it. ``answering``: ``pod:port``."""
    pod, _colon, pod_port = answering.rpartition(":")
    make_flow(one, protocol, destination, pod, port, int(pod_port))


def flows(one: Node) -> list[str]:
    """``destination:port > pod`` of every flow of both families."""
    return sorted(f"{found.destination}:{found.port} > {found.answering}" for found in listed_flows(one))


@pytest.fixture
def filled(kube_node: Node) -> Node:
    kube_node.four_ways(**dns("10.244.1.5", "10.244.2.5"), backend=kube_node.backend)
    return kube_node


def test_f077_flows_to_a_pod_that_left_go_and_others_stay(filled: Node) -> None:
    for destination, port in (("10.96.0.10", 53), ("203.0.113.9", 53), ("192.0.2.11", 30053)):
        flow(filled, destination, "10.244.1.5:5353", port)
        flow(filled, destination, "10.244.2.5:5353", port)
    flow(filled, "10.96.0.10", "10.244.1.5:5353", protocol="tcp")
    predicted = filled.module(check=True, **dns("10.244.2.5", "10.244.3.5"))
    assert predicted["plan"]["flows"]["removed"] == 3
    assert {(tuple(one["destinations"]), one["port"]) for one in predicted["stale_flows"]} >= {
        (("10.96.0.10",), 53), (("203.0.113.9",), 53)}
    assert all("10.244.1.5" in one["reason"] for one in predicted["stale_flows"])
    assert len(flows(filled)) == 7
    applied = filled.module(**dns("10.244.2.5", "10.244.3.5"))
    assert applied["plan"] == predicted["plan"]
    assert applied["stale_flows"] == predicted["stale_flows"]
    assert flows(filled) == sorted(["10.96.0.10:53 > 10.244.2.5", "203.0.113.9:53 > 10.244.2.5",
                                    "192.0.2.11:30053 > 10.244.2.5", "10.96.0.10:53 > 10.244.1.5"])


def test_f077_from_no_endpoint_to_one_frees_those_stuck_on_the_untranslated_address(kube_node: Node) -> None:
    kube_node.four_ways(**dns(), backend=kube_node.backend)
    flow(kube_node, "10.96.0.10", "10.96.0.10:53")
    flow(kube_node, "203.0.113.9", "203.0.113.9:53")
    kube_node.four_ways(**dns("10.244.1.5"))
    assert flows(kube_node) == []


@pytest.mark.parametrize("after", ["scaled to zero", "service deleted", "all removed"])
@pytest.mark.parametrize("layout", ["1.24", "1.30", "1.36"])
def test_f078_scale_to_zero_and_deletion_leave_no_flow_to_the_dead_pod(kube_node: Node, after: str,
                                                                       layout: str) -> None:
    options = {"layout": layout, "backend": kube_node.backend}
    kube_node.four_ways(**dns("10.244.1.5"), **options)
    flow(kube_node, "10.96.0.10", "10.244.1.5:5353")
    flow(kube_node, "192.0.2.11", "10.244.1.5:5353", 30053)
    arguments = {"scaled to zero": dns(), "all removed": {"state": "absent"},
                 "service deleted": {"services": [service(name="other", clusterIP="10.96.0.77")]}}[after]
    result = kube_node.four_ways(**arguments, **options)
    assert result["plan"]["flows"]["removed"] == 2
    assert flows(kube_node) == []
    if after == "scaled to zero":
        assert "-d 10.96.0.10/32 -p udp" in kube_node.save("ipv4").split("*filter")[1].split("COMMIT")[0]


def test_f080_a_run_without_change_deletes_nothing(filled: Node) -> None:
    flow(filled, "10.96.0.10", "10.244.9.9:5353")
    result = filled.module(**dns("10.244.1.5", "10.244.2.5"))
    assert not result["changed"]
    assert result["stale_flows"] == []
    assert flows(filled) == ["10.96.0.10:53 > 10.244.9.9"]


def test_f080_only_the_frontends_that_are_ours_are_touched(filled: Node) -> None:
    """Another address with the same port, another port of the same address, and the port of another service."""
    stay = [("198.51.100.77", 53), ("198.51.100.77", 30053), ("10.96.0.10", 5300), ("192.0.2.11", 30123)]
    for destination, port in stay:
        flow(filled, destination, "10.244.1.5:5353", port)
    filled.four_ways(services=[service(name="other", clusterIP="10.96.0.77")])
    assert len(flows(filled)) == len(stay)


def test_f081_flows_of_ipv6_are_found_and_deleted(kube_node: Node) -> None:
    def six(*pods: str) -> dict[str, Any]:
        return {"services": [service(name="dns", ports=DNS[:1], clusterIP="fd00:96::10", clusterIPs=["fd00:96::10"],
                                     ipFamilies=["IPv6"])],
                "endpoint_slices": [endpoint_slice(*pods, name="dns-a", service_name="dns", port=5353, port_name="dns",
                                                   protocol="UDP", address_type="IPv6")]}
    kube_node.four_ways(**six("2001:db8:9::5", "2001:db8:9::6"), backend=kube_node.backend)
    flow(kube_node, "fd00:96::10", "2001:db8:9::5:5353")
    flow(kube_node, "fd00:96::10", "2001:db8:9::6:5353")
    kube_node.four_ways(**six("2001:db8:9::6"))
    assert flows(kube_node) == ["fd00:96::10:53 > 2001:db8:9::6"]


def test_conntrack_cleanup_can_be_left_out(filled: Node) -> None:
    flow(filled, "10.96.0.10", "10.244.1.5:5353")
    result = filled.module(**dns("10.244.2.5"), conntrack_cleanup=False)
    assert result["stale_flows"] == []
    assert flows(filled) == ["10.96.0.10:53 > 10.244.1.5"]


def test_flows_go_only_after_the_rules_are_in(filled: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    flow(filled, "10.96.0.10", "10.244.1.5:5353")
    with_failing = {**dns("10.244.2.5"), "lock_timeout": 1}
    monkeypatch.setattr("ansible_collections.metal.nodenet.plugins.module_utils.apply.transactions", _refuse)
    result = filled.module(**with_failing)
    assert result["failed"]
    assert flows(filled) == ["10.96.0.10:53 > 10.244.1.5"]


def _refuse(*_arguments: object) -> list[Any]:
    from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError

    raise NetfilterError("refused")


@pytest.fixture
def wire(kube_node: Node) -> Iterator[Wire]:
    """A client and three pods around the node."""
    with Wire(kube_node, pods=3) as one:
        yield one


def test_f077_a_sender_with_a_fixed_port_reaches_the_new_pod(wire: Wire) -> None:
    first, second, _third = wire.pods
    backend = wire.node.backend
    wire.node.four_ways(**dns(first), backend=backend)
    with wire.serve_udp(5353):
        assert wire.ask_udp("10.96.0.10", 53, source_port=4444) == first
        wire.node.four_ways(**dns(second), conntrack_cleanup=False)
        assert wire.ask_udp("10.96.0.10", 53, source_port=4444) == first, "the fault must show without the clean-up"
        wire.node.four_ways(**dns(first))
        wire.node.four_ways(**dns(second))
        assert wire.ask_udp("10.96.0.10", 53, source_port=4444) == second
        wire.node.four_ways(**dns())
        assert wire.ask_udp("10.96.0.10", 53, source_port=4444) is None
        wire.node.four_ways(**dns(first))
        assert wire.ask_udp("10.96.0.10", 53, source_port=4444) == first


def test_addresses_of_the_node_may_be_given_in_any_spelling(kube_node: Node) -> None:
    arguments = {"node_addresses": ["192.000.002.011", "2001:0DB8::0011"]}
    kube_node.four_ways(**dns("10.244.1.5", "10.244.2.5"), **arguments, backend=kube_node.backend)
    flow(kube_node, "192.0.2.11", "10.244.1.5:5353", 30053)
    assert kube_node.module(**dns("10.244.2.5"), **arguments)["plan"]["flows"]["removed"] == 1
    assert flows(kube_node) == []
