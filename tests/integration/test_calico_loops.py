# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocked service ranges on a real kernel: which are, how, and what must not be."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import service_loop_block
from support.calico import everything, four_ways, rules
from support.node import Node, Result


def run(one: Node, *cidrs: str, **options: Any) -> Result:
    return four_ways(one, service_loop_block, cidrs=list(cidrs), backend=one.backend, **options)


def blocked(one: Node, family: str = "ipv4") -> list[str]:
    """``RANGE TARGET`` of each rule."""
    words = [rule.split() for rule in rules(one, "filter", "cali-cidr-block", family=family)]
    return [" ".join([rule[3], *rule[rule.index("-j") + 1:]]) for rule in words]


def bgp(cluster: list[str], external: list[str], balancer: list[str], name: str = "default") -> dict[str, Any]:
    return {"apiVersion": "projectcalico.org/v3", "kind": "BGPConfiguration", "metadata": {"name": name},
            "spec": {"serviceClusterIPs": [{"cidr": one} for one in cluster],
                     "serviceExternalIPs": [{"cidr": one} for one in external],
                     "serviceLoadBalancerIPs": [{"cidr": one} for one in balancer]}}


@pytest.mark.parametrize("pools", [["10.1.64.0/18"], [{"cidr": "10.1.64.0/18", "masquerade": True}]])
def test_f100_a_range_over_a_pool_is_a_warning_and_with_strict_an_error(kube_node: Node, pools: list[Any]) -> None:
    result = run(kube_node, "10.1.0.0/16", pools=pools)
    assert [warning for warning in result["warnings"] if "10.1.0.0/16" in warning and "10.1.64.0/18" in warning]
    assert blocked(kube_node) == ["10.1.0.0/16 DROP"]
    before = everything(kube_node)
    for check in (True, False):
        refused = kube_node.module(check=check, module=service_loop_block, cidrs=["10.1.0.0/16", "10.96.0.0/12"],
                                   pools=pools, strict=True)
        assert refused["failed"]
        assert "10.1.64.0/18" in refused["msg"]
    assert everything(kube_node) == before


@pytest.mark.parametrize(("cidr", "address"), [("192.0.2.0/24", "192.0.2.11"), ("2001:db8::/64", "2001:db8::11")])
def test_f100_so_is_a_range_over_an_address_of_the_node(kube_node: Node, cidr: str, address: str) -> None:
    result = run(kube_node, cidr)
    assert [warning for warning in result["warnings"] if cidr in warning and address in warning]
    refused = kube_node.module(module=service_loop_block, cidrs=[cidr], strict=True)
    assert refused["failed"]
    assert address in refused["msg"]


def test_f100_without_an_overlap_there_is_no_warning_and_only_forward_is_hooked(kube_node: Node) -> None:
    result = run(kube_node, "10.96.0.0/12", "203.0.113.0/24", pools=["10.244.0.0/16"], strict=True)
    assert result["warnings"] == []
    assert rules(kube_node, "filter", "INPUT", "OUTPUT") == []
    assert len(rules(kube_node, "filter", "FORWARD")) == 1
    assert rules(kube_node, "nat") == rules(kube_node, "raw") == rules(kube_node, "mangle") == []


def test_f101_single_addresses_are_ranges_with_and_without_their_length(kube_node: Node) -> None:
    run(kube_node, "198.51.100.7/32", "198.51.100.8", "2001:db8::7/128", "2001:db8:0::8")
    assert blocked(kube_node) == ["198.51.100.7/32 DROP", "198.51.100.8/32 DROP"]
    assert blocked(kube_node, "ipv6") == ["2001:db8::8/128 DROP", "2001:db8::7/128 DROP"]


def test_f101_f040_a_rejection_reads_back_with_the_answer_of_its_family(kube_node: Node) -> None:
    run(kube_node, "198.51.100.7/32", "2001:db8::7/128", action="reject")
    assert blocked(kube_node) == ["198.51.100.7/32 REJECT --reject-with icmp-port-unreachable"]
    assert blocked(kube_node, "ipv6") == ["2001:db8::7/128 REJECT --reject-with icmp6-port-unreachable"]
    result = run(kube_node, "198.51.100.7/32", "2001:db8::7/128")
    assert result["plan"]["rules"] == {"added": 0, "changed": 2, "removed": 0}
    assert blocked(kube_node) == ["198.51.100.7/32 DROP"]


def test_disabled_leaves_an_empty_chain_in_its_place(kube_node: Node) -> None:
    run(kube_node, "10.96.0.0/12")
    run(kube_node, "10.96.0.0/12", action="disabled")
    assert blocked(kube_node) == []
    assert rules(kube_node, "filter", "cali-FORWARD")[0].endswith("-j cali-cidr-block")


def test_a_range_in_two_lists_is_one_rule_and_felixs_second_copy_is_no_drift(kube_node: Node) -> None:
    configuration = bgp(["10.96.0.0/12"], ["203.0.113.0/24"], ["203.0.113.0/24"])
    other = bgp(["10.0.0.0/8"], [], [], name="n1")
    result = four_ways(kube_node, service_loop_block, bgp_configuration=[other, configuration],
                       backend=kube_node.backend)
    assert blocked(kube_node) == ["10.96.0.0/12 DROP", "203.0.113.0/24 DROP"]
    assert [warning for warning in result["warnings"] if "n1" in warning]
    kube_node.iptables("-A", "cali-cidr-block", "-d", "203.0.113.0/24", "-m", "comment", "--comment",
                       "cali:AAAAAAAAAAAAAAAA", "-j", "DROP")
    for check in (True, False):
        assert kube_node.module(check=check, module=service_loop_block, bgp_configuration=[configuration])["diff"] == []
    kube_node.iptables("-I", "cali-cidr-block", "-d", "203.0.113.0/24", "-j", "DROP")
    four_ways(kube_node, service_loop_block, bgp_configuration=[configuration])
    assert blocked(kube_node) == ["10.96.0.0/12 DROP", "203.0.113.0/24 DROP"]


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"cidrs": ["10.96.0.0/12", "10.96.0.0/40"]}, ["cidrs[1]", "10.96.0.0/40"]),
    ({"cidrs": ["web"]}, ["cidrs[0]", "web"]),
    ({"cidrs": ["0.0.0.0/0"]}, ["cidrs[0]", "0.0.0.0/0"]),
    ({"cidrs": ["::/0"]}, ["cidrs[0]", "::/0"]),
    ({"cidrs": ["10.96.0.0/12"], "pools": ["nowhere"]}, ["pools[0]", "nowhere"]),
    ({"bgp_configuration": [bgp(["10.96.0.0/12"], ["nowhere"], [])]},
     ["BGPConfiguration default", "spec.serviceExternalIPs[0].cidr", "nowhere"]),
    ({"bgp_configuration": [{**bgp([], [], []), "apiVersion": "example.net/v1"}]}, ["apiVersion", "example.net/v1"]),
    ({"bgp_configuration": [bgp([], [], []), bgp(["10.0.0.0/8"], [], [])]}, ["BGPConfiguration default", "twice"]),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[" ".join(words)[:40] for _arguments, words in REFUSED])
def test_bad_input_is_refused_by_name_before_anything_is_touched(nft_node: Node, arguments: dict[str, Any],
                                                                 words: list[str]) -> None:
    run(nft_node, "10.96.0.0/12")
    before = everything(nft_node)
    result = nft_node.module(module=service_loop_block, **arguments)
    assert result["failed"]
    for word in words:
        assert word in result["msg"]
    assert everything(nft_node) == before
