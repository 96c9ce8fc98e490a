# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which networks must not overlap, found without comparing each with each."""

from __future__ import annotations

import random
import time
from ipaddress import ip_network
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.plugin_utils.overlaps import POOL, Range, overlaps, ranges_of
from ansible_collections.metal.nodenet.plugins.plugin_utils.selection import title
from ansible_collections.metal.nodenet.plugins.plugin_utils.snapshot import check_loss


def pool(name: str, cidr: Any) -> dict[str, Any]:
    return {"kind": "IPPool", "metadata": {"name": name}, "spec": {"cidr": cidr}}


def host(name: str, address: str, *pod_cidrs: str) -> dict[str, Any]:
    return {"kind": "Node", "metadata": {"name": name}, "spec": {"podCIDRs": list(pod_cidrs)},
            "status": {"addresses": [{"type": "Hostname", "address": name},
                                     {"type": "InternalIP", "address": address}]}}


def services(*cidrs: str) -> dict[str, Any]:
    return {"kind": "ServiceCIDR", "metadata": {"name": "kubernetes"}, "spec": {"cidrs": list(cidrs)}}


def found(*items: dict[str, Any], service_cidrs: tuple[str, ...] = (),
          node_networks: tuple[str, ...] = ()) -> list[str]:
    return overlaps(ranges_of(items, service_cidrs, node_networks))


def test_a_cluster_as_it_should_be() -> None:
    assert found(pool("a", "10.244.0.0/16"), pool("b", "10.245.0.0/16"), pool("six", "fd00:10:244::/48"),
                 host("n1", "192.0.2.1", "10.244.1.0/24", "fd00:10:244:1::/64"), host("n2", "192.0.2.2"),
                 services("10.96.0.0/12", "fd00:10:96::/112"), service_cidrs=("10.96.0.0/12",),
                 node_networks=("192.0.2.0/24",)) == []


@pytest.mark.parametrize(("items", "options", "expected"), [
    pytest.param([pool("a", "10.0.0.0/8"), pool("b", "10.244.0.0/16")], {},
                 "pool 10.244.0.0/16 (IPPool b) is inside of pool 10.0.0.0/8 (IPPool a)", id="pools"),
    pytest.param([pool("a", "10.244.0.0/16"), pool("b", "10.244.7.7/16")], {},
                 "pool 10.244.0.0/16 (IPPool b) is the same as pool 10.244.0.0/16 (IPPool a)", id="equal pools"),
    pytest.param([pool("a", "10.96.0.0/16"), services("10.96.0.0/12")], {},
                 "pool 10.96.0.0/16 (IPPool a) is inside of service CIDR 10.96.0.0/12 (ServiceCIDR kubernetes)",
                 id="pool and services"),
    pytest.param([services("10.96.0.0/12")], {"service_cidrs": ("10.97.0.0/16",)},
                 "service CIDR 10.97.0.0/16 (service_cidrs[0]) is inside of service CIDR 10.96.0.0/12 "
                 "(ServiceCIDR kubernetes)", id="service CIDRs"),
    pytest.param([pool("a", "10.0.0.0/8"), host("n1", "10.1.2.3")], {},
                 "node network 10.1.2.3/32 (Node n1) is inside of pool 10.0.0.0/8 (IPPool a)", id="a node in a pool"),
    pytest.param([pool("a", "fd00::/16")], {"node_networks": ("fd00:1::/64",)},
                 "node network fd00:1::/64 (node_networks[0]) is inside of pool fd00::/16 (IPPool a)",
                 id="node networks in a pool"),
    pytest.param([pool("a", "10.1.0.0/16")], {"node_networks": ("10.0.0.0/8",)},
                 "pool 10.1.0.0/16 (IPPool a) is inside of node network 10.0.0.0/8 (node_networks[0])",
                 id="a pool in the network of the nodes"),
    pytest.param([host("n1", "192.0.2.1", "10.96.1.0/24")], {"service_cidrs": ("10.96.0.0/12",)},
                 "pod CIDR 10.96.1.0/24 (Node n1) is inside of service CIDR 10.96.0.0/12 (service_cidrs[0])",
                 id="pods in services"),
])
def test_what_must_not_be(items: list[dict[str, Any]], options: dict[str, Any], expected: str) -> None:
    assert found(*items, **options) == [expected]


def test_families_are_apart() -> None:
    assert found(pool("four", "0.0.0.0/1"), pool("six", "::/1")) == []


def test_what_is_no_network_is_named() -> None:
    with pytest.raises(ClusterFileError, match=r"IPPool a: 'ten' is not a network"):
        found(pool("a", "ten"))
    with pytest.raises(ClusterFileError, match=r"service_cidrs\[0\]: '10.0.0.0/40'"):
        found(service_cidrs=("10.0.0.0/40",))


def test_the_same_as_comparing_each_with_each() -> None:
    draw = random.Random(4711)
    for _one in range(200):
        networks = {ip_network((draw.randrange(1 << 6) << 26, draw.randrange(1, 7)), strict=False) for _one in range(5)}
        expected = sum(one != other and one.subnet_of(other) for one in networks for other in networks)  # type: ignore[arg-type]
        texts = overlaps(Range(POOL, str(one), 4, int(one[0]), int(one[-1]), str(one)) for one in networks)
        assert len(texts) == expected


def test_ten_thousand_nodes_take_no_time_and_a_flood_is_cut() -> None:
    nodes = [host(f"n{number}", f"192.{number >> 16}.{number >> 8 & 255}.{number & 255}") for number in range(10000)]
    begin = time.monotonic()
    assert found(*nodes, node_networks=("192.0.0.0/8",)) == []
    assert len(found(*nodes, pool("all", "192.0.0.0/8"))) == 21
    assert len(found(*(pool(f"p{number}", "10.0.0.0/8") for number in range(10000)))) == 21
    assert time.monotonic() - begin < 10


def test_a_name_that_is_none_cannot_write_to_the_terminal() -> None:
    evil = "a\x1b[2J\nb"
    [text] = found(pool(evil, "10.96.0.0/16"), services("10.96.0.0/12"))
    assert text.isprintable()
    with pytest.raises(ClusterFileError) as error:
        check_loss([f"default/{evil}"], [], 0)
    assert str(error.value).isprintable()
    assert title({"kind": "Service", "metadata": {"name": evil}}).isprintable()
