# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Field cases about the choice of endpoints."""

from __future__ import annotations

from typing import Any

import pytest
from support.builders import (
    ALL,
    NEWEST,
    WITH_FALLBACK,
    Rendered,
    endpoint,
    endpoint_slice,
    named,
    render,
    sep,
    service,
)

LOCAL = {"lb": ["198.51.100.5"], "externalTrafficPolicy": "Local"}
TERMINATING = {"ready": False, "serving": True, "terminating": True}


def targets(state: Rendered, chain: str) -> list[str]:
    """The endpoints that a dispatching chain of default/web:http leads to, in order."""
    return [rule.split(" -> ")[1].split('"')[0] for rule in state.chain("nat", chain) if " -> " in rule]


def test_f056_two_ports_of_one_address_are_two_endpoints() -> None:
    state = render(
        [service(), endpoint_slice("192.0.2.1", port=8080), endpoint_slice("192.0.2.1", name="web-b", port=8081)]
    )
    assert targets(state, named("SVC")) == ["192.0.2.1:8080", "192.0.2.1:8081"]
    assert "--probability 0.50000000000" in state.chain("nat", named("SVC"))[0]


@pytest.mark.parametrize("layout", ALL)
def test_f057_an_endpoint_in_two_slices_counts_once(layout: str) -> None:
    slices = [endpoint_slice("10.0.1.1", "10.0.1.2"), endpoint_slice("10.0.1.2", "10.0.1.3", name="web-b")]
    state = render([service(), *slices], layout)
    assert len(state.names("nat", "KUBE-SEP-")) == 3
    assert [rule.partition("--probability ")[2][:7] for rule in state.chain("nat", named("SVC"))] == [
        "0.33333",
        "0.50000",
        "",
    ]
    assert render([*reversed(slices), service()], layout).rules() == state.rules()


@pytest.mark.parametrize("layout", ALL)
def test_f057_ready_in_one_slice_and_not_in_the_other(layout: str) -> None:
    for names in (("web-a", "web-b"), ("web-b", "web-a")):
        state = render(
            [
                service(),
                endpoint_slice(endpoint("10.0.1.1", **TERMINATING), name=names[0]),
                endpoint_slice("10.0.1.1", name=names[1]),
            ],
            layout,
        )
        assert targets(state, named("SVC")) == ["10.0.1.1:8080"]


def test_f058_only_the_first_address_of_an_endpoint_counts() -> None:
    state = render([service(), endpoint_slice(endpoint("10.0.1.1", "10.0.1.2"))])
    assert state.names("nat", "KUBE-SEP-") == [sep("10.0.1.1:8080")]
    assert state.warned("EndpointSlice default/web-a", "endpoints[0].addresses", "first")


def mixed(local_ready: bool) -> list[dict[str, Any]]:
    entries = [endpoint("10.0.1.1", node="node1", **TERMINATING), endpoint("10.0.2.1", node="node2")]
    if local_ready:
        entries.append(endpoint("10.0.1.2", node="node1"))
    return [service(**LOCAL), endpoint_slice(*entries)]


@pytest.mark.parametrize("layout", WITH_FALLBACK)
def test_f060_local_traffic_falls_back_to_terminating_endpoints(layout: str) -> None:
    state = render(mixed(local_ready=False), layout, node_name="node1")
    assert targets(state, named("SVL")) == ["10.0.1.1:8080"]
    assert targets(state, named("SVC")) == ["10.0.2.1:8080"]
    assert len(state.names("nat", "KUBE-SEP-")) == 2


@pytest.mark.parametrize("layout", ALL)
def test_f060_a_ready_local_endpoint_comes_first(layout: str) -> None:
    state = render(mixed(local_ready=True), layout, node_name="node1")
    assert targets(state, named("SVL")) == ["10.0.1.2:8080"]
    assert targets(state, named("SVC")) == ["10.0.1.2:8080", "10.0.2.1:8080"]


def test_f060_layout_1_24_has_no_fallback() -> None:
    state = render(mixed(local_ready=False), "1.24", node_name="node1")
    assert state.chain("nat", named("SVL")) == [
        '-m comment --comment "default/web:http has no local endpoints" -j KUBE-MARK-DROP'
    ]


@pytest.mark.parametrize("layout", ALL)
@pytest.mark.parametrize("hints", [["b"], []])
def test_f061_hints_that_lead_nowhere_are_not_followed(layout: str, hints: list[str]) -> None:
    state = render(
        [
            hinted(layout),
            endpoint_slice(endpoint("10.0.1.1", zones=["a"], ready=False), endpoint("10.0.1.2", zones=hints)),
        ],
        layout,
        zone="a",
    )
    assert targets(state, named("SVC")) == ["10.0.1.2:8080"]


def hinted(layout: str) -> dict[str, Any]:
    annotation = (
        "service.kubernetes.io/topology-aware-hints" if layout == "1.24" else "service.kubernetes.io/topology-mode"
    )
    return service(annotations={annotation: "Auto"})


@pytest.mark.parametrize("layout", ALL)
@pytest.mark.parametrize(
    ("zone", "zones", "expected"),
    [
        ("a", ["b"], ["10.0.1.1:8080"]),
        ("a", [], ["10.0.1.1:8080", "10.0.1.2:8080"]),
        ("", ["b"], ["10.0.1.1:8080", "10.0.1.2:8080"]),
        ("c", ["b"], ["10.0.1.1:8080", "10.0.1.2:8080"]),
    ],
)
def test_f061_hints_are_all_or_none(layout: str, zone: str, zones: list[str], expected: list[str]) -> None:
    state = render(
        [hinted(layout), endpoint_slice(endpoint("10.0.1.1", zones=["a"]), endpoint("10.0.1.2", zones=zones))],
        layout,
        zone=zone,
    )
    assert targets(state, named("SVC")) == expected


@pytest.mark.parametrize(
    ("layout", "annotations", "followed"),
    [
        ("1.24", {"topology-aware-hints": "auto"}, True),
        ("1.24", {"topology-aware-hints": "yes"}, False),
        ("1.24", {"topology-mode": "Auto"}, False),
        ("1.30", {"topology-mode": "anything"}, True),
        ("1.30", {"topology-mode": "Disabled"}, False),
        ("1.30", {"topology-aware-hints": "", "topology-mode": "Auto"}, False),
        ("1.30", {}, False),
        (NEWEST, {}, True),
    ],
)
def test_who_switches_hints_on(layout: str, annotations: dict[str, str], followed: bool) -> None:
    full = {f"service.kubernetes.io/{key}": value for key, value in annotations.items()}
    state = render(
        [
            service(annotations=full),
            endpoint_slice(endpoint("10.0.1.1", zones=["a"]), endpoint("10.0.1.2", zones=["b"])),
        ],
        layout,
        zone="a",
    )
    assert (len(targets(state, named("SVC"))) == 1) is followed


def test_node_hints_come_before_zone_hints() -> None:
    objects = [
        service(),
        endpoint_slice(
            endpoint("10.0.1.1", zones=["a"], nodes=["node2"]), endpoint("10.0.1.2", zones=["a"], nodes=["node1"])
        ),
    ]
    assert targets(render(objects, zone="a", node_name="node1"), named("SVC")) == ["10.0.1.2:8080"]
    assert len(targets(render(objects, zone="a", node_name="node3"), named("SVC"))) == 2


def test_f062_a_node_name_that_no_endpoint_knows_is_named() -> None:
    objects = [service(), endpoint_slice(endpoint("10.0.1.1", node="worker-01.example.net"))]
    assert render(objects, node_name="worker-01").warned("worker-01", "worker-01.example.net")
    assert render(objects, node_name="worker-01.example.net").warnings == []
    assert render([service(), endpoint_slice("10.0.1.1")], node_name="worker-01").warnings == []


def test_f062_a_node_without_pods_is_no_mistake() -> None:
    node = {"kind": "Node", "metadata": {"name": "control-1"}}
    objects = [service(), endpoint_slice(endpoint("10.0.1.1", node="worker-1"))]
    assert render([*objects, node], node_name="control-1").warnings == []
    assert render(objects, node_name="control-1").warned("control-1", "worker-1")


@pytest.mark.parametrize("layout", WITH_FALLBACK)
def test_f066_pods_and_the_node_reach_a_local_balancer_without_local_endpoints(layout: str) -> None:
    state = render(
        [service(**LOCAL), endpoint_slice(endpoint("10.0.2.1", node="node2"))],
        layout,
        node_name="node1",
        detect_local="cluster_cidr",
        cidrs=["10.0.0.0/16"],
    )
    what = "traffic for default/web:http external destinations"
    assert state.chain("nat", named("EXT")) == [
        f'-s 10.0.0.0/16 -m comment --comment "pod {what}" -j {named("SVC")}',
        f'-m comment --comment "masquerade LOCAL {what}" -m addrtype --src-type LOCAL -j KUBE-MARK-MASQ',
        f'-m comment --comment "route LOCAL {what}" -m addrtype --src-type LOCAL -j {named("SVC")}',
    ]
    assert state.chain("filter", "KUBE-EXTERNAL-SERVICES") == [
        '-d 198.51.100.5/32 -p tcp -m comment --comment "default/web:http has no local endpoints" '
        "-m tcp --dport 80 -j DROP"
    ]


@pytest.mark.parametrize("layout", ALL)
def test_f068_the_external_policy_leaves_the_cluster_ip_alone(layout: str) -> None:
    state = render([service(**LOCAL), endpoint_slice(endpoint("10.0.2.1", node="node2"))], layout, node_name="node1")
    assert state.chain("nat", "KUBE-SERVICES")[0].endswith(f"-j {named('SVC')}")
    assert targets(state, named("SVC")) == ["10.0.2.1:8080"]
    narrowed = render(
        [
            service(internalTrafficPolicy="Local"),
            endpoint_slice(endpoint("10.0.2.1", node="node2"), endpoint("10.0.1.1", node="node1")),
        ],
        layout,
        node_name="node1",
    )
    assert targets(narrowed, named("SVL")) == ["10.0.1.1:8080"]
    assert narrowed.names("nat", "KUBE-SVC-") == []


def test_endpoints_sort_by_bytes() -> None:
    state = render([service(), endpoint_slice("10.0.0.4", "10.0.0.10", "10.0.0.5")])
    assert targets(state, named("SVC")) == ["10.0.0.10:8080", "10.0.0.4:8080", "10.0.0.5:8080"]


@pytest.mark.parametrize(("count", "comments"), [(1000, True), (1001, False)])
def test_large_clusters_have_endpoint_rules_without_comments(count: int, comments: bool) -> None:
    addresses = [f"10.1.{index // 250}.{index % 250}" for index in range(count)]
    state = render([service(), endpoint_slice(*addresses)], detect_local="cluster_cidr", cidrs=["10.1.0.0/16"])
    chain = state.chain("nat", named("SVC"))
    assert "--comment" in chain[0]
    assert ("--comment" in chain[1]) is comments
    assert state.chain("nat", "KUBE-SERVICES")[0].count("--comment") == 1
