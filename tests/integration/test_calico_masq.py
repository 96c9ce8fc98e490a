# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masquerading on a real kernel: which pools count, and what the options make of it."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import calico_masq
from support.builders import endpoint_slice, service
from support.calico import MASQ, apply, four_ways, members, rules, sets, settle
from support.node import Node, Result

MARK = re.compile(r"--(?:set-xmark|mark) (?:0x[0-9a-f]+)/(0x[0-9a-f]+)")


def pool(name: str, cidr: str, nat: bool, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "projectcalico.org/v3", "kind": "IPPool", "metadata": {"name": name},
            "spec": {"cidr": cidr, "natOutgoing": nat, **spec}}


def run(one: Node, *pools: dict[str, Any], **options: Any) -> Result:
    return four_ways(one, calico_masq, pools=list(pools), backend=one.backend, **options)


def outgoing(one: Node, family: str = "ipv4") -> list[str]:
    return rules(one, "nat", "cali-nat-outgoing", family=family)


FOUR = pool("a", "10.0.0.0/16", True)
SIX = pool("six", "2001:db8:1::/64", False)


def test_f076_every_mark_of_ours_has_a_mask_within_calicos_bits(kube_node: Node) -> None:
    """And the mark of services is none of them."""
    settle(kube_node)
    kube_node.module(services=[service()], endpoint_slices=[endpoint_slice("10.244.1.5")], backend=kube_node.backend)
    apply(kube_node)
    for arguments in ({}, {"dataplane": "bpf"}, {"dataplane": "bpf", "calico_version": "3.22"}):
        four_ways(kube_node, calico_masq, **MASQ, **arguments)
        for family in ("ipv4", "ipv6"):
            ours = [line for line in kube_node.save(family).splitlines() if line.startswith("-A cali-")]
            masks = [int(mask, 16) for line in ours for mask in MARK.findall(line)]
            assert masks
            assert all(mask & 0x4000 == 0 and mask != 0xFFFFFFFF for mask in masks), masks
            assert "0xffffffff" not in kube_node.save(family)


def test_f092_every_pool_is_inside_and_those_with_nat_are_masqueraded(kube_node: Node) -> None:
    pools = [FOUR, pool("b", "192.0.2.0/24", False, disabled=True), pool("c", "100.64.0.0/10", False),
             pool("lb", "198.51.100.0/24", False, allowedUses=["LoadBalancer"])]
    run(kube_node, *pools)
    assert members(kube_node, "cali40network-ip-pools") == ["10.0.0.0/16", "100.64.0.0/10", "192.0.2.0/24"]
    assert members(kube_node, "cali40masq-ipam-pools") == ["10.0.0.0/16"]
    run(kube_node, *pools, calico_version="3.30")
    assert members(kube_node, "cali40all-ipam-pools") == [
        "10.0.0.0/16", "100.64.0.0/10", "192.0.2.0/24", "198.51.100.0/24"]


def test_f092_a_disabled_pool_with_nat_is_masqueraded(kube_node: Node) -> None:
    run(kube_node, pool("b", "192.0.2.0/24", True, disabled=True))
    assert members(kube_node, "cali40masq-ipam-pools") == ["192.0.2.0/24"]
    assert len(outgoing(kube_node)) == 1


def test_f093_each_family_has_its_own_rule_and_two_pools_still_have_one(kube_node: Node) -> None:
    run(kube_node, FOUR, SIX)
    assert len(outgoing(kube_node)) == 1
    assert outgoing(kube_node, "ipv6") == []
    assert ":cali-nat-outgoing - [0:0]" in kube_node.save("ipv6")
    assert members(kube_node, "cali60network-ip-pools") == ["2001:db8:1::/64"]
    one = outgoing(kube_node)
    result = run(kube_node, FOUR, SIX, pool("b", "10.1.0.0/16", True))
    assert [entry["after_header"] for entry in result["diff"]] == ["ipv4 sets"]
    assert outgoing(kube_node) == one
    assert members(kube_node, "cali40masq-ipam-pools") == ["10.0.0.0/16", "10.1.0.0/16"]
    run(kube_node, pool("a", "10.0.0.0/16", False), pool("six", "2001:db8:1::/64", True))
    assert outgoing(kube_node) == []
    assert len(outgoing(kube_node, "ipv6")) == 1
    assert members(kube_node, "cali40masq-ipam-pools") == []
    assert members(kube_node, "cali40network-ip-pools") == ["10.0.0.0/16"]


def test_f094_an_ipv4_address_is_not_given_to_ipv6(kube_node: Node) -> None:
    result = run(kube_node, FOUR, pool("six", "2001:db8:1::/64", True), nat_outgoing_address="198.51.100.20")
    assert outgoing(kube_node)[0].endswith(" -j SNAT --to-source 198.51.100.20 --random-fully")
    assert outgoing(kube_node, "ipv6")[0].endswith(" -j MASQUERADE --random-fully")
    assert [warning for warning in result["warnings"] if "nat_outgoing_address" in warning and "IPv6" in warning]


def test_f096_an_interface_filter_is_rendered_and_one_of_every_interface_is_not(kube_node: Node) -> None:
    run(kube_node, FOUR)
    plain = outgoing(kube_node)[0]
    # Felix's id is that of the text that it writes, with the filter; save does not print it, so nothing changes.
    assert not run(kube_node, FOUR, interface_filter="+")["changed"]
    assert run(kube_node, FOUR, interface_filter="eth+")["changed"]
    assert outgoing(kube_node)[0].startswith("-A cali-nat-outgoing -o eth+ -m comment ")
    assert "cali:l7o-dwt4BvZsDQLh" in outgoing(kube_node)[0]
    run(kube_node, FOUR, interface_filter="a-name-of-15-ch")
    run(kube_node, FOUR, interface_filter="+")
    assert " -o " not in outgoing(kube_node)[0]
    assert outgoing(kube_node)[0].split(" -m set")[1:] == plain.split(" -m set")[1:]


def test_f096_hosts_are_left_out_by_a_set_of_their_own_which_goes_with_the_option(kube_node: Node) -> None:
    run(kube_node, FOUR, exclusions="pools_and_hosts", hosts=["192.0.2.11", "2001:db8::11"])
    assert "cali:AlfX5WPCYU7zmGli" in outgoing(kube_node)[0]
    assert members(kube_node, "cali40all-hosts-net") == ["192.0.2.11"]
    assert members(kube_node, "cali60all-hosts-net") == ["2001:db8::11"]
    four_ways(kube_node, calico_masq, state="absent")
    assert sets(kube_node) == []


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"interface_filter": "a-name-of-16-cha"}, ["interface_filter", "a-name-of-16-cha", "15"]),
    ({"interface_filter": "eth 0"}, ["interface_filter", "eth 0"]),
    ({"interface_filter": "eth0 -j ACCEPT"}, ["interface_filter"]),
    ({"nat_outgoing_address": "2001:db8::1"}, ["nat_outgoing_address", "2001:db8::1"]),
    ({"nat_outgoing_address": "192.0.2.0/24"}, ["nat_outgoing_address", "192.0.2.0/24"]),
    ({"nat_port_range": "9:1"}, ["nat_port_range", "9:1"]),
    ({"nat_port_range": "1:99999"}, ["nat_port_range", "1:99999"]),
    ({"nat_port_range": "http"}, ["nat_port_range", "http"]),
    ({"exclusions": "pools_and_hosts", "calico_version": "3.30"}, ["exclusions", "3.30"]),
    ({"exclusions": "pools_and_hosts", "hosts": ["nowhere"]}, ["hosts[0]", "nowhere"]),
    ({"exclusions": "pools_and_hosts", "hosts": [7]}, ["hosts[0]", "7"]),
    ({"calico_version": "2.6"}, ["calico_version", "2.6"]),
    ({"max_ipset_size": 0}, ["max_ipset_size", "0"]),
    ({"pools": []}, ["pools", "allow_empty"]),
    ({"pools": [{"cidr": "10.0.0.0"}]}, ["pools[0]", "cidr", "10.0.0.0"]),
    ({"pools": [{"cidr": "10.0.0.0/33"}]}, ["pools[0]", "10.0.0.0/33"]),
    ({"pools": [{"cidr": "10.0.0.0/8", "nat": True}]}, ["pools[0]", "nat"]),
    ({"pools": [{**FOUR, "apiVersion": "example.net/v1"}]}, ["IPPool a", "apiVersion", "example.net/v1"]),
    ({"pools": [{**FOUR, "spec": {"cidr": "10.0.0.0/8", "natOutgoing": "yes"}}]}, ["IPPool a", "natOutgoing", "yes"]),
    ({"pools": [{**FOUR, "spec": {}}]}, ["IPPool a", "spec.cidr"]),
    ({"pools": [{"cidr": "10.0.0.0/8", "masquerade": True}, {"cidr": "10.0.0.0/8"}]}, ["pools[1]", "pools[0]"]),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[" ".join(words)[:40] for _arguments, words in REFUSED])
def test_bad_input_is_refused_by_name_before_anything_is_touched(nft_node: Node, arguments: dict[str, Any],
                                                                 words: list[str]) -> None:
    run(nft_node, FOUR)
    before = (nft_node.saves(), sets(nft_node))
    for check in (True, False):
        result = nft_node.module(check=check, module=calico_masq, **{"pools": [FOUR], **arguments})
        assert result["failed"]
        for word in words:
            assert word in result["msg"]
    assert (nft_node.saves(), sets(nft_node)) == before


def test_no_pool_at_all_is_believed_when_told_so(kube_node: Node) -> None:
    run(kube_node, FOUR)
    four_ways(kube_node, calico_masq, pools=[], allow_empty=True)
    assert outgoing(kube_node) == []
    assert members(kube_node, "cali40network-ip-pools") == []
