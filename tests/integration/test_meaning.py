# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other spellings of what we want are what we want; real differences are put right once."""

from __future__ import annotations

import re

import pytest
from support.builders import endpoint_slice, named, service
from support.node import LOCK, Node

SVC = named("SVC")
THREE = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5", "10.244.2.5", "10.244.3.5")]}


def test_f001_f018_rules_written_in_other_spellings_are_no_change(kube_node: Node) -> None:
    kube_node.four_ways(**THREE, backend=kube_node.backend)
    wanted = kube_node.saves()
    kube_node.load("ipv4", r"""*nat
:KUBE-POSTROUTING - [0:0]
:KUBE-MARK-MASQ - [0:0]
-A KUBE-POSTROUTING -m mark ! --mark 0x00004000/0x00004000 -j RETURN
-A KUBE-POSTROUTING -j MARK --xor-mark 0x4000
-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE --random-fully
-A KUBE-MARK-MASQ -j MARK --or-mark 16384
COMMIT
*filter
:KUBE-FORWARD - [0:0]
-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP
-A KUBE-FORWARD -m mark --mark 0x4000/0x4000 -m comment --comment "kubernetes forwarding rules" -j ACCEPT
-A KUBE-FORWARD -m conntrack --ctstate ESTABLISHED,RELATED @ "kubernetes forwarding conntrack rule" -j ACCEPT
COMMIT
""".replace("@", "-m comment --comment"))
    result = kube_node.module(check=True, **THREE)
    assert result["diff"] == []
    assert not result["changed"]
    saved = kube_node.save("ipv4")
    assert saved != wanted["ipv4"]
    assert "KUBE-FORWARD -m mark --mark 0x4000/0x4000 -m comment" in saved


def test_f017_a_probability_of_five_digits_is_replaced_once(kube_node: Node) -> None:
    kube_node.four_ways(**THREE, backend=kube_node.backend)
    wanted = kube_node.saves()
    assert "--probability 0.33333333349" in wanted["ipv4"]
    lines = [line.replace("0.33333333349", "0.33333") for line in wanted["ipv4"].splitlines()
             if line.startswith(f"-A {SVC}")]
    kube_node.load("ipv4", "\n".join(["*nat", f":{SVC} - [0:0]", *lines, "COMMIT", ""]))
    result = kube_node.four_ways(**THREE)
    assert result["plan"]["chains"] == {"added": 0, "changed": 1, "removed": 0}
    assert kube_node.saves() == wanted


def test_f016_counters_are_no_difference(kube_node: Node) -> None:
    kube_node.four_ways(**THREE, backend=kube_node.backend)
    dump = kube_node.exec(kube_node.tool("ipv4", "-save"), "-c")
    counted = re.sub(r"\[\d+:\d+\]", "[7:700]", dump)
    kube_node.exec(kube_node.tool("ipv4", "-restore"), *LOCK, "--counters", text=counted)
    assert "[7:700] -A KUBE-SERVICES" in kube_node.exec(kube_node.tool("ipv4", "-save"), "-c")
    assert not kube_node.module(check=True, **THREE)["changed"]


@pytest.mark.parametrize("edit", [
    ("-D", SVC, "1"),
    ("-A", "KUBE-POSTROUTING", "-j", "RETURN"),
    ("-F", "KUBE-MARK-MASQ"),
    ("-I", "KUBE-NODEPORTS", "-p", "tcp", "--dport", "30999", "-j", "KUBE-MARK-MASQ"),
])
def test_f038_one_rule_altered_by_hand_is_a_change_and_put_back(kube_node: Node, edit: tuple[str, ...]) -> None:
    kube_node.four_ways(**THREE, backend=kube_node.backend)
    wanted = kube_node.saves()
    kube_node.iptables("-t", "nat", *edit)
    assert kube_node.four_ways(**THREE)["plan"]["chains"]["changed"] == 1
    assert kube_node.saves() == wanted


def test_a_rule_behind_the_node_port_jump_is_a_change(kube_node: Node) -> None:
    """F070: the last rule must be the last."""
    kube_node.four_ways(**THREE, backend=kube_node.backend)
    wanted = kube_node.saves()
    kube_node.iptables("-t", "nat", "-A", "KUBE-SERVICES", "-d", "10.96.7.7", "-p", "tcp", "--dport", "80", "-j", SVC)
    kube_node.four_ways(**THREE)
    assert kube_node.saves() == wanted


def test_f040_what_is_only_of_ipv4_is_not_given_to_ipv6(kube_node: Node) -> None:
    six = service(clusterIP="fd00:96::10", clusterIPs=["fd00:96::10"], ipFamilies=["IPv6"])
    kube_node.four_ways(services=[six], endpoint_slices=[], backend=kube_node.backend)
    dump = kube_node.save("ipv6")
    assert "--reject-with icmp6-port-unreachable" in dump
    assert "127.0.0.0/8" not in dump
    assert "127.0.0.0/8" in kube_node.save("ipv4")


def test_f047_f048_other_spellings_of_addresses_converge(kube_node: Node) -> None:
    objects = {
        "services": [service(externalIPs=["198.051.100.007"]),
                     service(name="six", clusterIP="FD00:96:0:0::10", clusterIPs=["FD00:96:0:0::10"],
                             ipFamilies=["IPv6"])],
        "endpoint_slices": [endpoint_slice("10.244.001.005"),
                            endpoint_slice("fd00::10.0.0.34", name="six-a", service_name="six", address_type="IPv6")],
    }
    result = kube_node.four_ways(**objects, backend=kube_node.backend)
    assert "-d 198.51.100.7/32" in kube_node.save("ipv4")
    assert "--to-destination [fd00::a00:22]:8080" in kube_node.save("ipv6")
    assert any("198.051.100.007" in warning and "default/web" in warning for warning in result["warnings"])


def test_f054_the_longest_names_converge(kube_node: Node) -> None:
    namespace, name, port = "n" * 63, "s" * 63, "p" * 15
    objects = {
        "services": [service(name=name, namespace=namespace, type="LoadBalancer", lb=["198.51.100.5"],
                             ports=[{"name": port, "port": 80, "protocol": "TCP", "nodePort": 30080}],
                             externalTrafficPolicy="Local", sessionAffinity="ClientIP")],
        "endpoint_slices": [endpoint_slice("10.244.1.5", namespace=namespace, service_name=name, port_name=port)],
    }
    assert kube_node.four_ways(**objects, backend=kube_node.backend)["changed"]
    assert namespace + "/" + name in kube_node.save("ipv4")


@pytest.mark.parametrize("layout", ["1.24", "1.30", "1.36"])
def test_f076_no_rule_writes_the_whole_mark(kube_node: Node, layout: str) -> None:
    kube_node.four_ways(**THREE, layout=layout, masquerade_bit=18, backend=kube_node.backend)
    dump = "".join(kube_node.saves().values())
    assert "--set-xmark 0x40000/0x40000" in dump
    assert "0xffffffff" not in dump
