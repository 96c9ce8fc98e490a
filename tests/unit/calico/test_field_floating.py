# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Field cases about floating IPs."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.calico.floating import (
    FloatingOptions,
    aggregate,
    desired,
)
from ansible_collections.metal.nodenet.plugins.module_utils.calico.floating_ips import (
    FLOATING_IPS,
    read_endpoints,
    read_mappings,
)
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import split_id
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6, Desired
from ansible_collections.metal.nodenet.plugins.module_utils.objects import ObjectError

Object = dict[str, Any]


def mapping(external: Any, internal: Any, **more: Any) -> Object:
    return {"external": external, "internal": internal, **more}


def rules(state: Desired, chain: str) -> list[str]:
    return [split_id(rule)[0] for rule in state.tables["nat"].chains[chain].rules]


def endpoint(name: str, *nats: tuple[str, str], **spec: Any) -> Object:
    return {
        "apiVersion": "projectcalico.org/v3",
        "kind": "WorkloadEndpoint",
        "metadata": {"name": name, "namespace": "web"},
        "spec": {
            "node": "node1",
            "orchestrator": "k8s",
            "ipNetworks": ["10.65.0.2/32"],
            "ipNATs": [{"externalIP": external, "internalIP": internal} for external, internal in nats],
            **spec,
        },
    }


def pod(name: str, floating: object, *ips: str, spec: Object | None = None, **status: Any) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "web",
            "annotations": {FLOATING_IPS: floating if isinstance(floating, str) else json.dumps(floating)},
        },
        "spec": {"nodeName": "node1", **(spec or {})},
        "status": {"phase": "Running", "podIPs": [{"ip": ip} for ip in ips], **status},
    }


def pairs(raws: list[Object], node_name: str = "node1") -> list[tuple[str, str]]:
    return [(one.external.text, one.internal.text) for one in read_endpoints(raws, node_name)[0]]


F097 = [
    mapping("198.51.100.10", "10.65.0.2", endpoint="web/a"),
    mapping("198.51.100.9", "10.65.0.2", endpoint="web/a"),
    mapping("198.51.100.11", "10.65.0.10", endpoint="web/b"),
    mapping("198.51.100.11", "10.65.0.2", endpoint="web/a"),
]


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_f097_every_order_gives_the_lowest_texts(order: tuple[int, ...]) -> None:
    found, _warnings = read_mappings([F097[index] for index in order])
    state, warnings = desired(found, FloatingOptions(), IPV4)
    assert rules(state, "cali-fip-dnat") == [
        "-d 198.51.100.10/32 -j DNAT --to-destination 10.65.0.2",
        "-d 198.51.100.11/32 -j DNAT --to-destination 10.65.0.10",
        "-d 198.51.100.9/32 -j DNAT --to-destination 10.65.0.2",
    ]
    assert rules(state, "cali-fip-snat") == [
        "-s 10.65.0.10/32 -d 10.65.0.10/32 -j SNAT --to-source 198.51.100.11 --random-fully",
        "-s 10.65.0.2/32 -d 10.65.0.2/32 -j SNAT --to-source 198.51.100.10 --random-fully",
    ]
    assert warnings == [
        "floating IP 198.51.100.11 is mapped to 10.65.0.10 (web/b), 10.65.0.2 (web/a): it leads to 10.65.0.10, "
        "the lowest text",
        "10.65.0.2 has the floating IPs 198.51.100.10, 198.51.100.9: it reaches itself from 198.51.100.10, "
        "the lowest text",
    ]


def test_f097_who_loses_its_only_external_ip_has_no_source_rule() -> None:
    found, _warnings = read_mappings([mapping("192.0.2.1", "10.0.0.2"), mapping("192.0.2.1", "10.0.0.1")])
    assert aggregate(found) == ({"192.0.2.1": "10.0.0.1"}, {"10.0.0.1": "192.0.2.1"})
    same, _warnings = read_mappings([mapping("192.0.2.1", "10.0.0.2")] * 2)
    assert desired(same, FloatingOptions(), IPV4)[1] == []


def test_f098_chains_entries_and_hooks() -> None:
    found, _warnings = read_mappings([mapping("198.51.100.10", "10.65.0.2")])
    state, warnings = desired(found, FloatingOptions(), IPV4)
    assert rules(state, "cali-fip-dnat") == ["-d 198.51.100.10/32 -j DNAT --to-destination 10.65.0.2"]
    assert rules(state, "cali-fip-snat") == [
        "-s 10.65.0.2/32 -d 10.65.0.2/32 -j SNAT --to-source 198.51.100.10 --random-fully"
    ]
    assert warnings == []
    shared = {one.name: one for one in state.tables["nat"].shared}
    assert {name: [entry.rule for entry in one.entries] for name, one in shared.items()} == {
        "cali-PREROUTING": ["-j cali-fip-dnat"],
        "cali-OUTPUT": ["-j cali-fip-dnat"],
        "cali-POSTROUTING": ["-j cali-fip-snat"],
    }
    assert [hook.parent for one in shared.values() for hook in one.hooks] == ["PREROUTING", "OUTPUT", "POSTROUTING"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (mapping("198.51.100.0/24", "10.65.0.2"), r"mappings\[0\]: external: '198.51.100.0/24' is not an IP address"),
        (mapping("198.51.100.1/24", "10.65.0.2"), "external: '198.51.100.1/24' .* without a prefix length"),
        (mapping("198.51.100.1/32", "10.65.0.2"), "external: '198.51.100.1/32' .* without a prefix length"),
        (mapping("2001:db8::1/128", "2001:db8:2::2"), "external: '2001:db8::1/128' .* without a prefix length"),
        (mapping("198.51.100.1", "10.65.0.2/32"), "internal: '10.65.0.2/32' .* without a prefix length"),
        (mapping("198.51.100.1", "2001:db8::2"), "external: '198.51.100.1' is not of the family of 2001:db8::2"),
        (mapping("::ffff:198.51.100.1", "10.65.0.2"), "external: '::ffff:198.51.100.1' is an IPv4 address written"),
        (mapping("www.example.net", "10.65.0.2"), "external: 'www.example.net' is not an IP address"),
        (mapping(None, "10.65.0.2"), "external: None is not an IP address"),
        ({"external": "198.51.100.1"}, "internal: None is not an IP address"),
        (mapping("198.51.100.1", "10.65.0.2", endpoint=3), "endpoint: 3 is not a string"),
        (mapping("198.51.100.1", "10.65.0.2", pod="a"), "pod: 'a' is not known here"),
    ],
)
def test_f098_what_is_no_address_is_refused(raw: Object, words: str) -> None:
    with pytest.raises(ObjectError, match=words):
        read_mappings([raw])


def test_f049_ipv6_targets_are_plain_addresses() -> None:
    found, _warnings = read_mappings([mapping("2001:DB8:3::2", "2001:db8:2:0::2")])
    state, _warnings = desired(found, FloatingOptions(), IPV6)
    assert rules(state, "cali-fip-dnat") == ["-d 2001:db8:3::2/128 -j DNAT --to-destination 2001:db8:2::2"]
    assert rules(desired(found, FloatingOptions(), IPV4)[0], "cali-fip-dnat") == []


def test_chains_are_there_without_any_floating_ip() -> None:
    state, warnings = desired([], FloatingOptions(), IPV6)
    assert {name: list(chain.rules) for name, chain in state.tables["nat"].chains.items()} == {
        "cali-fip-dnat": [],
        "cali-fip-snat": [],
    }
    assert warnings == []


def test_leading_zeros_are_said() -> None:
    found, warnings = read_mappings([mapping("198.051.100.001", "10.65.0.2")])
    assert found[0].external.text == "198.51.100.1"
    assert warnings == [
        "mappings[0]: external: '198.051.100.001' is read as 198.51.100.1: leading zeros are decimal"
    ]


def test_not_enabled_only_openstack_counts() -> None:
    raws = [
        endpoint("k8s", ("198.51.100.1", "10.65.0.2")),
        endpoint("vm", ("198.51.100.2", "10.65.0.3"), orchestrator="openstack"),
        endpoint("odd", ("198.51.100.3", "10.65.0.4"), orchestrator="OpenStack"),
    ]
    found, _warnings = read_endpoints(raws, "node1")
    state, warnings = desired(found, FloatingOptions(enabled=False), IPV4)
    assert rules(state, "cali-fip-dnat") == ["-d 198.51.100.2/32 -j DNAT --to-destination 10.65.0.3"]
    assert warnings == ["enabled: False leaves out 2 floating IPs of ipv4"]
    state, warnings = desired(found, FloatingOptions(), IPV4)
    assert (len(rules(state, "cali-fip-dnat")), warnings) == (3, [])


def test_workload_endpoints_of_this_node() -> None:
    raws = [
        endpoint("a", ("198.51.100.1", "10.65.0.2"), ("2001:db8::1", "2001:db8:2::2")),
        endpoint("elsewhere", ("198.51.100.3", "10.65.0.2"), node="node2"),
        endpoint("bare", ("198.51.100.4", "10.65.0.2"), ipNetworks=[]),
        endpoint("bits", ("198.51.100.5/32", "10.65.0.2"), ("198.51.100.6", "10.65.0.2")),
        {"kind": "Service", "metadata": {}},
    ]
    found, warnings = read_endpoints([{"kind": "WorkloadEndpointList", "items": raws}], "node1")
    assert [(one.external.text, one.endpoint) for one in found] == [
        ("198.51.100.1", "web/a"),
        ("2001:db8::1", "web/a"),
        ("198.51.100.6", "web/bits"),
    ]
    assert warnings == [
        "WorkloadEndpoint web/bits: spec.ipNATs[0].externalIP: '198.51.100.5/32' is left out: not a plain IP address"
    ]
    assert pairs(raws, "node2") == [("198.51.100.3", "10.65.0.2")]
    with pytest.raises(ValueError, match="node_name: ''"):
        read_endpoints(raws, "")
    with pytest.raises(ObjectError, match=r"WorkloadEndpoint web/x: spec.ipNATs\[0\].externalIP: .* not of the family"):
        read_endpoints([endpoint("x", ("198.51.100.1", "2001:db8::2"))], "node1")
    with pytest.raises(ObjectError, match="WorkloadEndpoint web/x: spec.ipNATs: 3 is not a list"):
        read_endpoints([endpoint("x", ipNATs=3)], "node1")
    with pytest.raises(ObjectError, match=r"objects\[0\]: kind: None is not the kind"):
        read_endpoints([{}], "node1")


def test_pods_of_this_node() -> None:
    both = ["198.51.100.1", "2001:db8::1"]
    assert pairs([pod("a", both, "10.65.0.2", "2001:db8:2::2")]) == [
        ("198.51.100.1", "10.65.0.2"),
        ("2001:db8::1", "2001:db8:2::2"),
    ]
    assert pairs([pod("a", both, "10.65.0.2", "10.65.0.3", "2001:db8:2::2")])[0] == ("198.51.100.1", "10.65.0.3")
    assert pairs([pod("a", both[:1], podIP="10.65.0.9")]) == [("198.51.100.1", "10.65.0.9")]
    assert pairs([pod("host", both, "10.65.0.2", spec={"hostNetwork": True})]) == []
    assert pairs([pod("elsewhere", both, "10.65.0.2", spec={"nodeName": "node2"})]) == []
    assert pairs([pod("waiting", both, "10.65.0.2", spec={"nodeName": None})]) == []
    for phase in ("Failed", "Succeeded", "Completed"):
        assert pairs([pod("done", both, "10.65.0.2", phase=phase)]) == []


@pytest.mark.parametrize(
    ("key", "value", "wanted"),
    [
        ("cni.projectcalico.org/podIPs", "10.65.0.4/32,2001:db8:2::4/128", "10.65.0.4"),
        ("cni.projectcalico.org/podIP", "10.65.0.5/32", "10.65.0.5"),
        ("vpc.amazonaws.com/pod-ips", "10.65.0.6", "10.65.0.6"),
    ],
)
def test_addresses_of_a_pod_that_are_only_annotated(key: str, value: str, wanted: str) -> None:
    raw = pod("a", ["198.51.100.1"])
    raw["metadata"]["annotations"][key] = value
    assert pairs([raw]) == [("198.51.100.1", wanted)]


def test_a_pod_that_has_given_its_address_back() -> None:
    raw = pod("a", ["198.51.100.1"], "10.65.0.2")
    raw["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    assert pairs([raw]) == [("198.51.100.1", "10.65.0.2")]
    raw["metadata"]["annotations"]["cni.projectcalico.org/podIP"] = ""
    assert pairs([raw]) == []


def test_what_is_left_out_of_a_pod_is_said() -> None:
    found, warnings = read_endpoints([pod("a", ["198.51.100.1/32", "2001:db8::1"], "10.65.0.2")], "node1")
    assert found == []
    place = f"Pod web/a: metadata.annotations[{FLOATING_IPS}]"
    assert warnings == [
        f"{place}[0]: '198.51.100.1/32' is left out: not a plain IP address",
        f"{place}[1]: '2001:db8::1' is left out: the pod has no ipv6 address",
    ]


@pytest.mark.parametrize("text", ["198.51.100.1", "[198.51.100.1]", '"198.51.100.1"', "[1]", "{}"])
def test_an_annotation_that_is_no_list_is_refused(text: str) -> None:
    with pytest.raises(ObjectError, match="Pod web/a: metadata.annotations.*is not a JSON list of strings"):
        read_endpoints([pod("a", text, "10.65.0.2")], "node1")


@pytest.mark.parametrize(
    ("text", "target"),
    [("10.0.0.1", "10.0.0.1:8775"), ("10.0.0.1:80", "10.0.0.1:80"), ("", "")],
)
def test_metadata_server(text: str, target: str) -> None:
    assert FloatingOptions(metadata_address=text).metadata_target() == target


@pytest.mark.parametrize("text", ["2001:db8::1", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:80:90", "10.0.0.01", "host:80"])
def test_a_metadata_server_that_is_none_is_named(text: str) -> None:
    with pytest.raises(ValueError, match=f"metadata_address: '{text}' is not an IPv4 address"):
        FloatingOptions(metadata_address=text)
