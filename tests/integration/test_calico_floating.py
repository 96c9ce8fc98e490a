# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Floating IPs on a real kernel, and the flows that a change leaves behind."""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import calico_masq, floating_ip
from support.calico import MASQ, everything, four_ways, rules, shown
from support.flows import flows, make_flow
from support.node import Node, Result


def mapped(*pairs: str, **options: Any) -> dict[str, Any]:
    """``external > internal``, each."""
    return {"mappings": [dict(zip(("external", "internal"), pair.split(" > "))) for pair in pairs], **options}


ONE = mapped("198.51.100.10 > 10.65.0.2")


def run(one: Node, **arguments: Any) -> Result:
    return four_ways(one, floating_ip, backend=one.backend, **arguments)


def bare(one: Node, *chains: str, family: str = "ipv4") -> list[str]:
    """The rules of our chains without their ids."""
    return [" ".join(word for word in rule.split() if word not in ("-m", "comment", "--comment")
                     and not word.startswith('"cali:')) for rule in rules(one, "nat", *chains, family=family)]


TIES = ["198.51.100.10 > 10.65.0.2", "198.51.100.9 > 10.65.0.2", "198.51.100.11 > 10.65.0.10",
        "198.51.100.11 > 10.65.0.2"]


@pytest.mark.parametrize("order", list(itertools.permutations(TIES))[::5], ids=lambda order: order[0])
def test_f097_ties_are_broken_by_text_whatever_the_order(nft_node: Node, order: Sequence[str]) -> None:
    result = run(nft_node, **mapped(*order))
    assert bare(nft_node, "cali-fip-dnat", "cali-fip-snat") == [
        "-A cali-fip-dnat -d 198.51.100.10/32 -j DNAT --to-destination 10.65.0.2",
        "-A cali-fip-dnat -d 198.51.100.11/32 -j DNAT --to-destination 10.65.0.10",
        "-A cali-fip-dnat -d 198.51.100.9/32 -j DNAT --to-destination 10.65.0.2",
        "-A cali-fip-snat -s 10.65.0.10/32 -d 10.65.0.10/32 -j SNAT --to-source 198.51.100.11 --random-fully",
        "-A cali-fip-snat -s 10.65.0.2/32 -d 10.65.0.2/32 -j SNAT --to-source 198.51.100.10 --random-fully",
    ]
    assert [warning for warning in result["warnings"] if "198.51.100.11" in warning and "10.65.0.10" in warning]
    assert [warning for warning in result["warnings"] if "198.51.100.10, 198.51.100.9" in warning]
    assert nft_node.module(module=floating_ip, **mapped(*reversed(order)))["diff"] == []


PARTS = {
    "hook of PREROUTING": ["-t nat -D PREROUTING 1"],
    "hook of OUTPUT": ["-t nat -D OUTPUT 1"],
    "hook of POSTROUTING": ["-t nat -D POSTROUTING 1"],
    "entry of PREROUTING": ["-t nat -F cali-PREROUTING"],
    "entry of OUTPUT": ["-t nat -F cali-OUTPUT"],
    "entry of POSTROUTING": ["-t nat -D cali-POSTROUTING 1"],
    "rule of dnat": ["-t nat -F cali-fip-dnat"],
    "rule of snat": ["-t nat -F cali-fip-snat"],
    "chain of dnat": ["-t nat -F cali-PREROUTING", "-t nat -F cali-OUTPUT", "-t nat -F cali-fip-dnat",
                      "-t nat -X cali-fip-dnat"],
    "chain of snat": ["-t nat -D cali-POSTROUTING 1", "-t nat -F cali-fip-snat", "-t nat -X cali-fip-snat"],
    "shared chain": ["-t nat -D OUTPUT 1", "-t nat -F cali-OUTPUT", "-t nat -X cali-OUTPUT"],
    "source of snat too wide": ["-t nat -R cali-fip-snat 1 -s 10.65.0.2/32 -j SNAT --to-source 198.51.100.10"],
    "destination of dnat too wide": [
        "-t nat -R cali-fip-dnat 1 -d 198.51.100.0/24 -j DNAT --to-destination 10.65.0.2"],
    "everything": ["-t nat -F", "-t nat -X"],
}


@pytest.mark.parametrize("part", PARTS)
@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_f098_each_chain_and_each_hook_is_looked_at_and_put_right(kube_node: Node, part: str, family: str) -> None:
    arguments = ONE if family == "ipv4" else mapped("2001:db8:3::2 > 2001:db8:2::2")
    run(kube_node, **arguments)
    assert bare(kube_node, family="ipv4" if family == "ipv4" else "ipv6")
    wanted = everything(kube_node)
    for command in PARTS[part]:
        words = command
        if family == "ipv6":
            for four, six in (("10.65.0.2/32", "2001:db8:2::2/128"), ("198.51.100.0/24", "2001:db8:3::/64"),
                              ("10.65.0.2", "2001:db8:2::2"), ("198.51.100.10", "2001:db8:3::2")):
                words = words.replace(four, six)
        kube_node.iptables(*words.split(), family=family)
    assert everything(kube_node) != wanted
    result = run(kube_node, **arguments)
    assert [entry["after_header"] for entry in result["diff"]] == [f"{family} nat"]
    assert everything(kube_node) == wanted


REFUSED = [
    ("198.51.100.0/24 > 10.65.0.2", ["mappings[0]", "198.51.100.0/24", "without a prefix length"]),
    ("198.51.100.10/24 > 10.65.0.2", ["mappings[0]", "198.51.100.10/24"]),
    ("198.51.100.10/32 > 10.65.0.2", ["mappings[0]", "198.51.100.10/32"]),
    ("web.example.net > 10.65.0.2", ["mappings[0]", "external", "web.example.net"]),
    (" > 10.65.0.2", ["mappings[0]", "external"]),
    ("198.51.100.10 > 10.65.0.2/32", ["mappings[0]", "internal", "10.65.0.2/32"]),
    ("198.51.100.10 > 10.65.0.2:80", ["mappings[0]", "internal", "10.65.0.2:80"]),
    ("2001:db8:3::2 > 10.65.0.2", ["mappings[0]", "2001:db8:3::2", "family"]),
    ("::ffff:198.51.100.10 > 10.65.0.2", ["mappings[0]", "::ffff:198.51.100.10"]),
]


@pytest.mark.parametrize(("pair", "words"), REFUSED, ids=[pair for pair, _words in REFUSED])
def test_f098_a_network_or_anything_but_an_address_is_refused(nft_node: Node, pair: str, words: list[str]) -> None:
    run(nft_node, **ONE)
    before = everything(nft_node)
    result = nft_node.module(module=floating_ip, **mapped(pair))
    assert result["failed"]
    assert result["changed"] is False
    for word in words:
        assert word in result["msg"]
    assert everything(nft_node) == before


def test_f049_an_ipv6_target_has_no_brackets_where_it_has_no_port(kube_node: Node) -> None:
    run(kube_node, **mapped("2001:DB8:3:0::2 > 2001:db8:2::0:2"))
    assert bare(kube_node, "cali-fip-dnat", family="ipv6") == [
        "-A cali-fip-dnat -d 2001:db8:3::2/128 -j DNAT --to-destination 2001:db8:2::2"]


METADATA = "-A cali-PREROUTING -d 169.254.169.254/32 -p tcp -m multiport --dports 80 -j DNAT --to-destination "


def test_the_metadata_rule_comes_changes_and_goes_in_ipv4_alone(kube_node: Node) -> None:
    run(kube_node, **ONE)
    without = everything(kube_node)
    for address, target in (("10.0.0.1:1234", "10.0.0.1:1234"), ("127.0.0.1", "127.0.0.1:8775")):
        result = run(kube_node, **ONE, metadata_address=address)
        assert [entry["after_header"] for entry in result["diff"]] == ["ipv4 nat"]
        assert bare(kube_node, "cali-PREROUTING") == [
            "-A cali-PREROUTING -j cali-fip-dnat", (METADATA + target).replace("-m multiport", "multiport")]
        assert "169.254.169.254" not in kube_node.save("ipv6")
    run(kube_node, **ONE)
    assert everything(kube_node) == without


def test_the_metadata_rule_has_felixs_id(kube_node: Node) -> None:
    run(kube_node, **ONE, metadata_address="10.0.0.1:1234")
    assert '"cali:tHOkDa2Fvy8wABlv"' in rules(kube_node, "nat", "cali-PREROUTING")[1]


@pytest.mark.parametrize("address", ["metadata.example.net", "10.0.0.1:", "10.0.0.1:0", "10.0.0.1:99999", "1.1.1.1:1:2",
                                     "[2001:db8::1]:80", "2001:db8::1", "10.0.0.1/32"])
def test_a_bad_metadata_address_is_refused(nft_node: Node, address: str) -> None:
    result = nft_node.module(module=floating_ip, **ONE, metadata_address=address)
    assert result["failed"]
    assert f"metadata_address: '{address}'" in result["msg"]
    assert "cali" not in nft_node.save("ipv4")


def test_not_enabled_empties_the_chains_and_leaves_them_in_place(kube_node: Node) -> None:
    run(kube_node, **ONE)
    filled = rules(kube_node, "nat")
    result = run(kube_node, **ONE, enabled=False)
    assert rules(kube_node, "nat") == [rule for rule in filled if not rule.startswith("-A cali-fip-")]
    dump = kube_node.save("ipv4")
    assert ":cali-fip-dnat - [0:0]" in dump
    assert ":cali-fip-snat - [0:0]" in dump
    assert [warning for warning in result["warnings"] if "enabled" in warning]


def endpoint(orchestrator: str, name: str, **spec: Any) -> dict[str, Any]:
    return {"apiVersion": "projectcalico.org/v3", "kind": "WorkloadEndpoint",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"orchestrator": orchestrator, "node": "n1", "ipNetworks": ["10.65.0.2/32"], **spec}}


def pod(name: str, node_name: str, address: str, external: Sequence[str], **status: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default",
                         "annotations": {"cni.projectcalico.org/floatingIPs": json.dumps(external)}},
            "spec": {"nodeName": node_name}, "status": {"podIPs": [{"ip": address}], "phase": "Running", **status}}


def test_not_enabled_leaves_those_of_openstack(kube_node: Node) -> None:
    objects = [endpoint("openstack", "vm", ipNATs=[{"internalIP": "10.65.0.2", "externalIP": "198.51.100.10"}]),
               endpoint("k8s", "pod", ipNATs=[{"internalIP": "10.65.0.3", "externalIP": "198.51.100.11"}])]
    run(kube_node, objects=objects, node_name="n1", enabled=False)
    assert bare(kube_node, "cali-fip-dnat") == [
        "-A cali-fip-dnat -d 198.51.100.10/32 -j DNAT --to-destination 10.65.0.2"]


def test_of_the_clusters_pods_those_of_this_node_that_run_count(kube_node: Node) -> None:
    objects = {"kind": "List", "apiVersion": "v1", "items": [
        pod("here", "n1", "10.65.0.2", ["198.51.100.10", "2001:db8:3::2"]),
        pod("there", "n2", "10.65.0.3", ["198.51.100.11"]),
        pod("done", "n1", "10.65.0.4", ["198.51.100.12"], phase="Succeeded")]}
    result = run(kube_node, objects=[objects], node_name="n1")
    assert bare(kube_node, "cali-fip-dnat") == [
        "-A cali-fip-dnat -d 198.51.100.10/32 -j DNAT --to-destination 10.65.0.2"]
    assert [warning for warning in result["warnings"] if "Pod default/here" in warning and "2001:db8:3::2" in warning]


TWO = mapped("198.51.100.10 > 10.65.0.2", "198.51.100.11 > 10.65.0.3", "2001:db8:3::2 > 2001:db8:2::2")

#: What the node may have of flows: of both floating IPs, and of what only looks like one.
FLOWS = [("tcp", "198.51.100.10", "10.65.0.2"), ("udp", "198.51.100.10", "10.65.0.2"),
         ("tcp", "198.51.100.11", "10.65.0.3"), ("udp", "198.51.100.11", "10.65.0.3"),
         ("tcp", "198.51.100.77", "10.65.0.2"), ("udp", "10.65.0.2", "10.65.0.2"),
         ("tcp", "2001:db8:3::2", "2001:db8:2::2"), ("udp", "2001:db8:3::2", "2001:db8:2::2")]


def listed(*chosen: int) -> list[str]:
    return sorted(f"{protocol} {destination} > {answering}"
                  for at, (protocol, destination, answering) in enumerate(FLOWS) if at in chosen)


CHANGES: dict[str, tuple[dict[str, Any], list[str], list[int]]] = {
    "moved": (mapped("198.51.100.10 > 10.65.0.9", "198.51.100.11 > 10.65.0.3", "2001:db8:3::2 > 2001:db8:2::2"),
              ["198.51.100.10"], [2, 3, 4, 5, 6, 7]),
    "removed": (mapped("198.51.100.11 > 10.65.0.3", "2001:db8:3::2 > 2001:db8:2::2"),
                ["198.51.100.10"], [2, 3, 4, 5, 6, 7]),
    "removed in ipv6": (mapped("198.51.100.10 > 10.65.0.2", "198.51.100.11 > 10.65.0.3"),
                        ["2001:db8:3::2"], [0, 1, 2, 3, 4, 5]),
    "not enabled": ({**TWO, "enabled": False}, ["198.51.100.10", "198.51.100.11", "2001:db8:3::2"], [4, 5]),
    "absent": ({"state": "absent"}, ["198.51.100.10", "198.51.100.11", "2001:db8:3::2"], [4, 5]),
    "another one comes": ({"mappings": [*TWO["mappings"], {"external": "198.51.100.12", "internal": "10.65.0.2"}]},
                          [], [0, 1, 2, 3, 4, 5, 6, 7]),
}


@pytest.mark.parametrize("change", CHANGES)
def test_flows_of_a_floating_ip_that_is_gone_or_moved_go_and_others_stay(kube_node: Node, change: str) -> None:
    run(kube_node, **TWO)
    for protocol, destination, answering in FLOWS:
        make_flow(kube_node, protocol, destination, answering)
    arguments, addresses, left = CHANGES[change]
    predicted = kube_node.module(check=True, module=floating_ip, **arguments)
    assert flows(kube_node) == listed(*range(len(FLOWS)))
    result = kube_node.module(module=floating_ip, **arguments)
    assert result["changed"]
    assert (result["stale_flows"], result["plan"]) == (predicted["stale_flows"], predicted["plan"])
    assert sorted(address for one in result["stale_flows"] for address in one["destinations"]) == addresses
    assert result["plan"]["flows"] == {"added": 0, "changed": 0, "removed": len(FLOWS) - len(left)}
    assert flows(kube_node) == listed(*left)


def test_flows_that_the_new_pod_answers_already_stay(kube_node: Node) -> None:
    run(kube_node, **ONE)
    make_flow(kube_node, "tcp", "198.51.100.10", "10.65.0.2")
    make_flow(kube_node, "tcp", "198.51.100.10", "10.65.0.9")
    run(kube_node, **mapped("198.51.100.10 > 10.65.0.9"))
    assert flows(kube_node) == ["tcp 198.51.100.10 > 10.65.0.9"]


def test_a_run_without_change_and_one_without_cleanup_delete_no_flow(kube_node: Node) -> None:
    run(kube_node, **ONE)
    make_flow(kube_node, "tcp", "198.51.100.10", "10.65.0.77")
    result = run(kube_node, **ONE)
    assert (result["changed"], result["stale_flows"]) == (False, [])
    result = kube_node.module(module=floating_ip, state="absent", conntrack_cleanup=False)
    assert (result["changed"], result["stale_flows"]) == (True, [])
    assert flows(kube_node) == ["tcp 198.51.100.10 > 10.65.0.77"]


def test_in_ebpf_there_is_only_the_chain_for_pods_that_talk_to_themselves(kube_node: Node) -> None:
    four_ways(kube_node, calico_masq, **MASQ, dataplane="bpf", backend=kube_node.backend)
    run(kube_node, **ONE, dataplane="bpf")
    assert [rule.split(" -j ")[1] for rule in rules(kube_node, "nat", "POSTROUTING", "cali-POSTROUTING")] == [
        "cali-POSTROUTING", "MASQUERADE --random-fully", "cali-fip-snat", "cali-nat-outgoing"]
    assert '"cali:ggLCSZ9_r9uXnHIo"' in kube_node.save("ipv4")
    for gone in ("cali-fip-dnat", "cali-PREROUTING", "cali-OUTPUT"):
        assert gone not in kube_node.save("ipv4")
    result = run(kube_node, **ONE)
    assert "+:cali-fip-dnat - [0:0]" in shown(result, "ipv4 nat")
