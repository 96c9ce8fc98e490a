# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""F032: where our jumps stand in the chains of others decides who wins, so it is part of the state."""

from __future__ import annotations

import pytest
from support.builders import endpoint_slice, service
from support.node import Node

CLUSTER = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5")]}
JUMP = '-A PREROUTING -m comment --comment "kubernetes service portals" -j KUBE-SERVICES'
HOSTPORTS = "-A PREROUTING -m addrtype --dst-type LOCAL -j KUBE-HOSTPORTS"


def prerouting(one: Node) -> list[str]:
    return [line for line in one.save("ipv4").split("*nat")[1].splitlines() if line.startswith("-A PREROUTING")]


def insert(one: Node, chain: str, *match: str, parent: str = "PREROUTING", table: str = "nat") -> None:
    one.load("ipv4", f"*{table}\n:{chain} - [0:0]\nCOMMIT\n")
    one.iptables("-t", table, "-I", parent, *match, "-j", chain)


def test_f032_a_foreign_jump_in_front_is_one_move_then_rest(kube_node: Node) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    insert(kube_node, "KUBE-HOSTPORTS", "-m", "addrtype", "--dst-type", "LOCAL")
    assert prerouting(kube_node) == [HOSTPORTS, JUMP]
    result = kube_node.four_ways(**CLUSTER)
    assert prerouting(kube_node) == [JUMP, HOSTPORTS]
    assert result["plan"]["chains"] == {"added": 0, "changed": 1, "removed": 0}
    assert result["plan"]["rules"] == {"added": 0, "changed": 1, "removed": 0}
    entry = next(entry for entry in result["diff"] if entry["after_header"] == "ipv4 nat")
    assert f"{JUMP}  # position 2" in entry["before"]
    assert f"{JUMP}  # position 1" in entry["after"]
    assert "HOSTPORTS" not in entry["before"] + entry["after"]


def test_f032_felix_may_stand_in_front_for_it_would_come_back(kube_node: Node) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    insert(kube_node, "cali-PREROUTING", "-m", "comment", "--comment", "cali:6gwbT8clXdHdC1b1")
    result = kube_node.module(check=True, **CLUSTER)
    assert result["diff"] == []


@pytest.mark.parametrize("layout", ["1.24", "1.30", "1.36"])
def test_a_kubelet_may_have_put_its_firewall_jump_anywhere_among_ours(kube_node: Node, layout: str) -> None:
    kube_node.load("ipv4", "*filter\n:KUBE-FIREWALL - [0:0]\n-A INPUT -j KUBE-FIREWALL\n-A OUTPUT -j KUBE-FIREWALL\n"
                           "-A KUBE-FIREWALL ! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "
                           '"block incoming localnet connections" -m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT '
                           "-j DROP\nCOMMIT\n")
    kube_node.four_ways(**CLUSTER, layout=layout, backend=kube_node.backend)
    dump = kube_node.save("ipv4")
    assert dump.count("-A INPUT -j KUBE-FIREWALL") == dump.count("-A OUTPUT -j KUBE-FIREWALL") == 1
    kube_node.iptables("-D", "INPUT", "-j", "KUBE-FIREWALL")
    kube_node.iptables("-I", "INPUT", "-j", "KUBE-FIREWALL")
    assert not kube_node.module(check=True, **CLUSTER, layout=layout)["changed"]


def test_our_jumps_out_of_their_own_order_are_put_right(kube_node: Node) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    wanted = kube_node.saves()
    jump = ["-m", "conntrack", "--ctstate", "NEW", "-m", "comment", "--comment",
            "kubernetes externally-visible service portals", "-j", "KUBE-EXTERNAL-SERVICES"]
    kube_node.iptables("-D", "FORWARD", *jump)
    kube_node.iptables("-I", "FORWARD", *jump)
    assert kube_node.four_ways(**CLUSTER)["plan"]["rules"]["changed"] == 1
    assert kube_node.saves() == wanted


def test_a_jump_that_is_missing_comes_back_to_its_place(kube_node: Node) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    wanted = kube_node.saves()
    kube_node.iptables("-D", "FORWARD", "-m", "comment", "--comment", "kubernetes forwarding rules",
                       "-j", "KUBE-FORWARD")
    kube_node.four_ways(**CLUSTER)
    assert kube_node.saves() == wanted
