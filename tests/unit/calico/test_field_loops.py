# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Field cases about blocked service ranges."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.calico.loops import LoopOptions, desired
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import ids, split_id
from ansible_collections.metal.nodenet.plugins.module_utils.calico.service_cidrs import (
    read_bgp_configuration,
    read_cidrs,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import parse_network
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6, Chain
from ansible_collections.metal.nodenet.plugins.module_utils.objects import ObjectError

Object = dict[str, Any]


def bgp(name: str = "default", **lists: list[Any]) -> Object:
    return {
        "apiVersion": "projectcalico.org/v3",
        "kind": "BGPConfiguration",
        "metadata": {"name": name},
        "spec": {key: [{"cidr": cidr} for cidr in cidrs] for key, cidrs in lists.items()},
    }


def chain_of(cidrs: list[str], family: str = IPV4, **values: Any) -> Chain:
    state, _warnings = desired(read_cidrs(cidrs)[0], LoopOptions(**values), family)
    return state.tables["filter"].chains["cali-cidr-block"]


def blocked(cidrs: list[str], family: str = IPV4, **values: Any) -> list[str]:
    return [split_id(rule)[0] for rule in chain_of(cidrs, family, **values).rules]


NETWORKS = [parse_network("10.1.64.0/18"), parse_network("2001:db8::/64")]


def test_f100_an_overlap_with_a_pool_is_said() -> None:
    found, _warnings = read_cidrs(["10.1.0.0/16", "10.2.0.0/16"])
    state, warnings = desired(found, LoopOptions(), IPV4, NETWORKS)
    assert warnings == [
        "cidrs: '10.1.0.0/16' overlaps the pool 10.1.64.0/18: packets to its addresses would not be forwarded"
    ]
    assert len(state.tables["filter"].chains["cali-cidr-block"].rules) == 2
    assert desired(found, LoopOptions(action="disabled"), IPV4, NETWORKS)[1] == []
    assert desired(found, LoopOptions(), IPV6, NETWORKS)[1] == []
    inside, _warnings = read_cidrs(["10.1.64.7"])
    assert len(desired(inside, LoopOptions(), IPV4, NETWORKS)[1]) == 1
    beside, _warnings = read_cidrs(["10.1.0.0/18", "10.1.128.0/17"])
    assert desired(beside, LoopOptions(), IPV4, NETWORKS)[1] == []


def test_f100_an_overlap_is_refused_where_it_is_strict() -> None:
    found, _warnings = read_cidrs(["10.1.0.0/16", "192.0.2.0/24"])
    node = [parse_network("192.0.2.10/32")]
    with pytest.raises(ValueError, match="10.1.0.0/16.*pool 10.1.64.0/18.*192.0.2.0/24.*node 192.0.2.10/32"):
        desired(found, LoopOptions(strict=True), IPV4, NETWORKS, node)
    _state, warnings = desired(found, LoopOptions(strict=True), IPV6, NETWORKS, node)
    assert warnings == []


def test_f100_the_chain_hangs_on_forward_only() -> None:
    state, _warnings = desired([], LoopOptions(), IPV4)
    [shared] = state.tables["filter"].shared
    assert (shared.name, [hook.parent for hook in shared.hooks]) == ("cali-FORWARD", ["FORWARD"])
    assert list(state.tables) == ["filter"]


def test_f101_single_addresses() -> None:
    cidrs = ["198.51.100.7/32", "2001:db8::7/128", "198.51.100.8", "2001:db8::8"]
    assert blocked(cidrs) == ["-d 198.51.100.7/32 -j DROP", "-d 198.51.100.8/32 -j DROP"]
    assert blocked(cidrs, IPV6) == ["-d 2001:db8::7/128 -j DROP", "-d 2001:db8::8/128 -j DROP"]


def test_f040_f101_reject_as_it_is_read_back() -> None:
    cidrs = ["198.51.100.7/32", "2001:db8::7/128"]
    assert blocked(cidrs, action="reject") == ["-d 198.51.100.7/32 -j REJECT --reject-with icmp-port-unreachable"]
    assert blocked(cidrs, IPV6, action="reject") == [
        "-d 2001:db8::7/128 -j REJECT --reject-with icmp6-port-unreachable"
    ]
    assert blocked(cidrs, action="disabled") == []


def test_ranges_are_sorted_as_texts_and_written_once() -> None:
    chain = chain_of(["9.0.0.0/8", "10.96.0.0/12", "100.64.0.0/10", "10.96.0.0/12", "10.0.0.1/32", "10.0.0.1"])
    assert [split_id(rule)[0] for rule in chain.rules] == [
        "-d 10.0.0.1/32 -j DROP",
        "-d 10.96.0.0/12 -j DROP",
        "-d 100.64.0.0/10 -j DROP",
        "-d 9.0.0.0/8 -j DROP",
    ]
    # Where Felix has written one twice, that is no drift.
    assert chain.repeats
    assert chain.ordered


def test_ids_are_made_of_the_text_that_felix_has() -> None:
    chain = chain_of(["2001:DB8:0::/48", "10.0.0.1"], IPV6)
    assert split_id(chain.rules[0]) == (
        "-d 2001:db8::/48 -j DROP",
        ids("cali-cidr-block", ["--destination 2001:DB8:0::/48 --jump DROP"])[0],
    )
    bare = chain_of(["10.0.0.1"])
    assert split_id(bare.rules[0])[1] == ids("cali-cidr-block", ["--destination 10.0.0.1 --jump DROP"])[0]


def test_host_bits_are_dropped_and_said() -> None:
    found, warnings = read_cidrs(["10.96.0.1/12", " 10.0.0.0/8", "010.0.0.0/9", ""])
    assert [one.text for one in found] == ["10.96.0.0/12", "10.0.0.0/8", "10.0.0.0/9"]
    assert warnings == [
        "cidrs[0]: '10.96.0.1/12' has host bits, which are dropped: 10.96.0.0/12",
        "cidrs[2]: '010.0.0.0/9' is read as 10.0.0.0/9: leading zeros are decimal",
    ]


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("0.0.0.0/0", r"cidrs\[0\]: '0.0.0.0/0' holds every address: nothing would be forwarded"),
        ("::/0", r"cidrs\[0\]: '::/0' holds every address"),
        ("10.0.0.0/33", r"cidrs\[0\]: '10.0.0.0/33' is not a CIDR or an IP address"),
        ("svc", r"cidrs\[0\]: 'svc' is not an IP address"),
        (None, r"cidrs\[0\]: None is not a CIDR or an IP address"),
        ("::ffff:10.0.0.1", r"cidrs\[0\]: '::ffff:10.0.0.1' is an IPv4 address written as IPv6"),
    ],
)
def test_what_is_no_range_is_refused(value: Any, words: str) -> None:
    with pytest.raises(ObjectError, match=words):
        read_cidrs([value])


def test_a_bgp_configuration() -> None:
    raw = bgp(
        serviceClusterIPs=["10.96.0.0/12", "fd5f::/112"],
        serviceExternalIPs=["203.0.113.0/24", ""],
        serviceLoadBalancerIPs=["198.51.100.0/24"],
    )
    found, warnings = read_bgp_configuration([{"kind": "List", "items": [raw]}])
    assert [one.text for one in found] == ["10.96.0.0/12", "fd5f::/112", "203.0.113.0/24", "198.51.100.0/24"]
    assert warnings == []


def test_only_the_default_bgp_configuration_counts() -> None:
    other = bgp("node.node1", serviceClusterIPs=["10.0.0.0/8"])
    found, warnings = read_bgp_configuration([other, {"kind": "Node"}])
    assert found == []
    assert warnings == [
        "BGPConfiguration node.node1: metadata.name: 'node.node1' is left out: only default says anything about "
        "service addresses",
        "bgp_configuration: there is no BGPConfiguration default, so no address is blocked",
    ]
    mine = bgp(serviceClusterIPs=["10.96.0.0/12"])
    assert [one.text for one in read_bgp_configuration([other, mine, mine])[0]] == ["10.96.0.0/12"]


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (bgp(serviceExternalIPs=["x"]), r"BGPConfiguration default: spec.serviceExternalIPs\[0\].cidr: 'x'"),
        (bgp(serviceExternalIPs=[7]), r"spec.serviceExternalIPs\[0\].cidr: 7 is not a string"),
        ({**bgp(), "spec": {"serviceClusterIPs": "10.0.0.0/8"}}, "spec.serviceClusterIPs: '10.0.0.0/8' is not a list"),
        ({**bgp(), "apiVersion": "v1"}, "BGPConfiguration default: apiVersion: 'v1' is not one of"),
        ({"metadata": {"name": "default"}}, r"bgp_configuration\[0\]: kind: None is not the kind"),
    ],
)
def test_what_is_wrong_with_a_bgp_configuration_is_named(raw: Object, words: str) -> None:
    with pytest.raises(ObjectError, match=words):
        read_bgp_configuration([raw])


def test_two_different_defaults_are_refused() -> None:
    with pytest.raises(ObjectError, match="BGPConfiguration default: metadata.name: 'default' is there twice"):
        read_bgp_configuration([bgp(serviceClusterIPs=["10.0.0.0/8"]), bgp()])


def test_an_unknown_action_is_named() -> None:
    with pytest.raises(ValueError, match="action: 'accept' is not one of drop, reject, disabled"):
        LoopOptions(action="accept")
