# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options: what is refused, and what is worked out of them."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6


def options(layout: str = "1.36", **values: Any) -> ProxyOptions:
    return ProxyOptions(layout=LAYOUTS[layout], **values)


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"masquerade_bit": 32}, "masquerade_bit: 32"),
        ({"masquerade_bit": -1}, "masquerade_bit: -1"),
        ({"masquerade_bit": True}, "masquerade_bit: True"),
        ({"masquerade_bit": "14"}, "masquerade_bit: '14'"),
        ({"foreign_mark_mask": 1 << 32}, "foreign_mark_mask: 0x100000000"),
        ({"detect_local": "magic"}, "detect_local.mode: 'magic'"),
        ({"detect_local": "bridge_interface"}, "interface: ''"),
        ({"detect_local": "bridge_interface", "interface": "a" * 16}, "longer than 15"),
        ({"detect_local": "interface_prefix", "interface": "a" * 15}, "longer than 15"),
        ({"detect_local": "interface_prefix", "interface": "veth+"}, r"interface: 'veth\+'"),
        ({"detect_local": "bridge_interface", "interface": "a b"}, "interface: 'a b'"),
        ({"detect_local": "bridge_interface", "interface": "a\n"}, "interface: "),
        ({"detect_local": "cluster_cidr", "cidrs": ["10.0.0.0"]}, "cidrs: '10.0.0.0'"),
        ({"detect_local": "cluster_cidr", "cidrs": ["::/0"]}, "cidrs: '::/0'"),
        ({"cidrs": [None]}, "cidrs: None"),
        ({"nodeport_addresses": ["eth0"]}, "nodeport_addresses: 'eth0'"),
        ({"nodeport_addresses": ["primary", "10.0.0.0/8"]}, "nodeport_addresses: 'primary' stands alone"),
        (
            {"layout": "1.30", "nodeport_addresses": ["primary"]},
            "nodeport_addresses: 'primary' is not known in layout 1.30",
        ),
        ({"allowed_external_ips": ["x"]}, "allowed_external_ips: 'x'"),
        ({"local_addresses": ["10.0.0.1/8"]}, "node_addresses: '10.0.0.1/8'"),
        ({"node_ips": {"ipv4": "::1"}}, "node_ips: '::1'"),
        ({"node_ips": {"ipv5": "::1"}}, "node_ips: '::1'"),
        ({"provide_mark_drop": True}, "provide_mark_drop: layout 1.36"),
        ({"layout": "1.24", "provide_mark_drop": True, "masquerade_bit": 15}, "masquerade_bit: 15"),
    ],
)
def test_what_is_refused_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        options(**values)


def test_f050_empty_texts_are_no_cidrs() -> None:
    assert options(detect_local="cluster_cidr", cidrs=[""]).detect_cidr(IPV4) is None


def test_the_first_cidr_of_a_family_counts_and_is_masked() -> None:
    both = options(detect_local="cluster_cidr", cidrs=["10.1.2.3/8", "172.16.0.0/12", "FD00::1/48"])
    assert (both.detect_cidr(IPV4), both.detect_cidr(IPV6)) == ("10.0.0.0/8", "fd00::/48")
    assert options(detect_local="bridge_interface", interface="cni0", cidrs=["10.0.0.0/8"]).detect_cidr(IPV4) is None


def test_primary_is_the_address_of_the_node() -> None:
    local = ["127.0.0.1", "::1", "192.0.2.11", "192.0.2.12"]
    primary = options(nodeport_addresses=["primary"], node_ips={"ipv4": "192.0.2.11"}, local_addresses=local)
    assert primary.nodeport_ips(IPV4) == ["192.0.2.11"]
    assert primary.nodeport_networks(IPV6) == []
    assert not primary.serves_localhost(IPV4)
    assert options(nodeport_addresses=["primary"]).nodeport_networks(IPV4) == []


@pytest.mark.parametrize(
    ("cidrs", "serves"),
    [
        ([], True),
        (["::/0"], True),
        (["0.0.0.0/0"], True),
        (["127.0.0.1/32"], True),
        (["126.0.0.0/7"], True),
        (["192.0.2.0/24"], False),
        (["192.0.2.0/24", "127.0.0.0/8"], True),
    ],
)
def test_who_serves_localhost(cidrs: list[str], serves: bool) -> None:
    assert options(nodeport_addresses=cidrs).serves_localhost(IPV4) is serves
    assert not options(nodeport_addresses=cidrs).serves_localhost(IPV6)
    assert not options(nodeport_addresses=cidrs, localhost_nodeports=False).serves_localhost(IPV4)


def test_loopback_addresses_take_node_ports_where_the_layout_lets_them() -> None:
    cidrs = ["127.0.0.0/8", "::/1"]
    assert options("1.24", nodeport_addresses=cidrs).nodeport_ips(IPV6) == ["::1"]
    assert options("1.30", nodeport_addresses=cidrs).nodeport_ips(IPV6) == []
    assert options("1.30", nodeport_addresses=cidrs).nodeport_ips(IPV4) == ["127.0.0.1"]
    assert options("1.30", nodeport_addresses=cidrs, localhost_nodeports=False).nodeport_ips(IPV4) == []
