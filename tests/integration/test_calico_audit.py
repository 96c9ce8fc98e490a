# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a node where Felix has converged, an audit finds nothing; where one thing is wrong, it finds exactly that."""

from __future__ import annotations

from types import ModuleType

import pytest
from ansible_collections.metal.nodenet.plugins.modules import (
    calico_host_ips,
    calico_masq,
    floating_ip,
    service_loop_block,
)
from support.calico import everything, four_ways, settle, shown
from support.felix import ARGUMENTS, load_felix
from support.node import Node


@pytest.fixture
def felix_node(kube_node: Node) -> Node:
    """A node on which Felix has converged."""
    settle(kube_node)
    load_felix(kube_node)
    return kube_node


@pytest.mark.parametrize("rule_hashes", [True, False])
@pytest.mark.parametrize("insert_mode", ["insert", "append"])
def test_an_audit_of_felix_reports_no_change(felix_node: Node, rule_hashes: bool, insert_mode: str) -> None:
    before = everything(felix_node)
    for check in (True, False):
        for module, arguments in ARGUMENTS.items():
            result = felix_node.module(check=check, module=module, rule_hashes=rule_hashes, insert_mode=insert_mode,
                                       **arguments)
            assert not result.get("failed"), result["msg"]
            assert (module.__name__, result["changed"], result["diff"]) == (module.__name__, False, [])
            assert not any(sum(count.values()) for count in result["plan"].values())
    assert everything(felix_node) == before


MEMBERS = [
    (calico_masq, "del cali40network-ip-pools 10.246.0.0/16", "ipv4 sets",
     ["+add cali40network-ip-pools 10.246.0.0/16"]),
    (calico_masq, "del cali40masq-ipam-pools 10.245.0.7", "ipv4 sets", ["+add cali40masq-ipam-pools 10.245.0.7"]),
    (calico_masq, "add cali60masq-ipam-pools 2001:db8:7::/64", "ipv6 sets",
     ["-add cali60masq-ipam-pools 2001:db8:7::/64"]),
    (calico_host_ips, "del cali40this-host 127.0.0.0", "ipv4 sets", ["+add cali40this-host 127.0.0.0"]),
    (calico_host_ips, "add cali60this-host 2001:db8::77", "ipv6 sets", ["-add cali60this-host 2001:db8::77"]),
]


@pytest.mark.parametrize(("module", "command", "header", "difference"), MEMBERS,
                         ids=[command for _module, command, *_rest in MEMBERS])
def test_one_member_that_differs_is_shown_and_put_right(felix_node: Node, module: ModuleType, command: str,
                                                        header: str, difference: list[str]) -> None:
    before = everything(felix_node)
    felix_node.exec("ipset", *command.split())
    result = four_ways(felix_node, module, **ARGUMENTS[module])
    assert [entry["after_header"] for entry in result["diff"]] == [header]
    assert shown(result, header) == difference
    assert result["plan"]["set_members"] == {"added": int(difference[0][0] == "+"), "changed": 0,
                                             "removed": int(difference[0][0] == "-")}
    assert everything(felix_node) == before


PREROUTING_JUMP = '-A PREROUTING -m comment --comment "cali:6gwbT8clXdHdC1b1" -j cali-PREROUTING'
OUTPUT_JUMP = '-A OUTPUT -m comment --comment "cali:tVnHkvAo15HuiPy0" -j cali-OUTPUT'
POSTROUTING_JUMP = '-A POSTROUTING -m comment --comment "cali:0i8pjzKKPyA34aQD" -j cali-POSTROUTING'
FORWARD_JUMP = '-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD'
FIP_SNAT = '-A cali-POSTROUTING -m comment --comment "cali:Z-c7XtVd2Bq7s_hA" -j cali-fip-snat'
OUTGOING = '-A cali-POSTROUTING -m comment --comment "cali:nYKhEzDlr11Jccal" -j cali-nat-outgoing'
BLOCK = '-A cali-FORWARD -m comment --comment "cali:rnKNH2WxGcRQcIlD" -j cali-cidr-block'
FIRST_DNAT = '-A cali-fip-dnat -d 172.16.1.3/32 -m comment --comment "cali:tNLwGk9z1UZNPNbW" -j DNAT ' \
             "--to-destination 10.0.240.2"
LAST_BLOCK = '-A cali-cidr-block -d 203.0.113.0/24 -m comment --comment "cali:rDJfk4lDuSLAme9I" -j DROP'
MASQUERADE = ('-A cali-nat-outgoing -m comment --comment "cali:W_qq_N2KSTWyCvrX" -m set --match-set '
              "cali40masq-ipam-pools src -m set ! --match-set cali40network-ip-pools dst -j MASQUERADE --random-fully")

MISSING = [
    (floating_ip, "nat", PREROUTING_JUMP, "  # position 1"),
    (floating_ip, "nat", OUTPUT_JUMP, "  # position 1"),
    (floating_ip, "nat", POSTROUTING_JUMP, "  # position 1"),
    (calico_masq, "nat", POSTROUTING_JUMP, "  # position 1"),
    (service_loop_block, "filter", FORWARD_JUMP, "  # position 1"),
    (floating_ip, "nat", FIP_SNAT, "  # position 1"),
    (calico_masq, "nat", OUTGOING, "  # position 2"),
    (service_loop_block, "filter", BLOCK, "  # position 6"),
    (floating_ip, "nat", FIRST_DNAT, ""),
    (calico_masq, "nat", MASQUERADE, ""),
    (service_loop_block, "filter", LAST_BLOCK, ""),
]


def names(cases: list[tuple[ModuleType, str, str, str]]) -> list[str]:
    return [f"{module.__name__.rpartition('.')[2]} {rule.split()[1]}" for module, _table, rule, _place in cases]


@pytest.mark.parametrize(("module", "table", "rule", "place"), MISSING, ids=names(MISSING))
def test_one_rule_or_hook_that_is_missing_is_shown_and_put_right(felix_node: Node, module: ModuleType, table: str,
                                                                 rule: str, place: str) -> None:
    before = everything(felix_node)
    felix_node.load("ipv4", f"*{table}\n-D{rule[2:]}\nCOMMIT\n")
    result = four_ways(felix_node, module, **ARGUMENTS[module])
    assert [entry["after_header"] for entry in result["diff"]] == [f"ipv4 {table}"]
    assert shown(result, f"ipv4 {table}") == [f"+{rule}{place}"]
    assert result["plan"]["chains"] == {"added": 0, "changed": 1, "removed": 0}
    assert result["plan"]["rules"] == {"added": 1, "changed": 0, "removed": 0}
    assert everything(felix_node) == before


MISPLACED = [
    (floating_ip, "nat", "cali-POSTROUTING", FIP_SNAT, 2, 1),
    (floating_ip, "nat", "cali-POSTROUTING", FIP_SNAT, 4, 1),
    (calico_masq, "nat", "cali-POSTROUTING", OUTGOING, 4, 2),
    (service_loop_block, "filter", "cali-FORWARD", BLOCK, 1, 6),
    (service_loop_block, "filter", "cali-FORWARD", BLOCK, 4, 6),
]


@pytest.mark.parametrize(("module", "table", "chain", "rule", "wrong", "right"), MISPLACED,
                         ids=[f"{rule.split()[-1]} at {wrong}" for *_others, rule, wrong, _right in MISPLACED])
def test_one_entry_in_the_wrong_place_is_moved(felix_node: Node, module: ModuleType, table: str, chain: str,
                                               rule: str, wrong: int, right: int) -> None:
    before = everything(felix_node)
    text = rule.removeprefix(f"-A {chain} ")
    felix_node.load("ipv4", f"*{table}\n-D {chain} {text}\n-I {chain} {wrong} {text}\nCOMMIT\n")
    result = four_ways(felix_node, module, **ARGUMENTS[module])
    assert shown(result, f"ipv4 {table}") == [f"-{rule}  # position {wrong}", f"+{rule}  # position {right}"]
    assert result["plan"]["rules"] == {"added": 0, "changed": 1, "removed": 0}
    assert everything(felix_node) == before


COPIES = [
    (floating_ip, "nat", "cali-POSTROUTING", FIP_SNAT, 1),
    (floating_ip, "nat", "cali-POSTROUTING", FIP_SNAT, 5),
    (calico_masq, "nat", "cali-POSTROUTING", OUTGOING, 2),
    (service_loop_block, "filter", "cali-FORWARD", BLOCK, 1),
    (service_loop_block, "filter", "cali-FORWARD", BLOCK, 7),
]


@pytest.mark.parametrize(("module", "table", "chain", "rule", "place"), COPIES,
                         ids=[f"{rule.split()[-1]} at {place}" for *_rest, rule, place in COPIES])
def test_a_second_copy_of_an_entry_goes(felix_node: Node, module: ModuleType, table: str, chain: str, rule: str,
                                        place: int) -> None:
    before = everything(felix_node)
    felix_node.load("ipv4", f"*{table}\n-I {chain} {place} {rule.removeprefix(f'-A {chain} ')}\nCOMMIT\n")
    result = four_ways(felix_node, module, **ARGUMENTS[module])
    assert result["plan"]["rules"] == {"added": 0, "changed": 0, "removed": 1}
    assert everything(felix_node) == before


def test_a_foreign_rule_inside_of_a_chain_of_ours_goes(felix_node: Node) -> None:
    before = everything(felix_node)
    felix_node.iptables("-I", "cali-cidr-block", "-s", "203.0.113.5", "-j", "RETURN")
    result = four_ways(felix_node, service_loop_block, **ARGUMENTS[service_loop_block])
    assert shown(result, "ipv4 filter") == ["--A cali-cidr-block -s 203.0.113.5/32 -j RETURN"]
    assert everything(felix_node) == before


def test_a_second_copy_of_a_hook_goes(felix_node: Node) -> None:
    before = everything(felix_node)
    for operation in ("-A", "-I"):
        felix_node.iptables("-t", "nat", operation, "PREROUTING", "-m", "comment", "--comment", "cali:6gwbT8clXdHdC1b1",
                            "-j", "cali-PREROUTING")
    result = four_ways(felix_node, floating_ip, **ARGUMENTS[floating_ip])
    assert result["plan"]["rules"] == {"added": 0, "changed": 0, "removed": 2}
    assert everything(felix_node) == before


def test_a_hook_of_an_old_version_at_the_head_goes(felix_node: Node) -> None:
    felix_node.iptables("-t", "nat", "-I", "POSTROUTING", "-s", "10.9.0.0/16", "-j", "MASQUERADE")
    before = everything(felix_node)
    four_ways(felix_node, floating_ip, **ARGUMENTS[floating_ip])
    assert everything(felix_node) == before
    felix_node.iptables("-t", "nat", "-I", "POSTROUTING", "-m", "comment", "--comment", "cali:O3lYWMrLQYEMJtB5",
                        "-j", "cali-POSTROUTING")
    four_ways(felix_node, floating_ip, **ARGUMENTS[floating_ip])
    assert everything(felix_node) == before


def test_f030_what_a_firewall_reload_flushed_comes_back_and_sets_were_never_gone(felix_node: Node) -> None:
    """The chains of the four modules only: Felix's own come back with Felix."""
    wanted = everything(felix_node)
    felix_node.iptables("-t", "nat", "-F")
    felix_node.iptables("-t", "nat", "-X")
    for module in (calico_masq, floating_ip):
        result = four_ways(felix_node, module, **ARGUMENTS[module])
        assert [entry["after_header"] for entry in result["diff"]] == ["ipv4 nat"]
    after = everything(felix_node)
    tunnels = [line for line in wanted["ipv4"].splitlines() if "vxlan.calico" in line]
    assert len(tunnels) == 2
    assert after["ipv4"].splitlines() == [line for line in wanted["ipv4"].splitlines() if line not in tunnels]
    assert (after["ipv6"], after["sets"]) == (wanted["ipv6"], wanted["sets"])


def test_absent_takes_ours_out_of_felixs_chains_and_leaves_the_rest(felix_node: Node) -> None:
    mangle = felix_node.exec(felix_node.tool("ipv4", "-save"), "-t", "mangle")
    for module in ARGUMENTS:
        four_ways(felix_node, module, state="absent")
    dump = felix_node.save("ipv4")
    for chain in ("cali-fip-dnat", "cali-fip-snat", "cali-nat-outgoing", "cali-cidr-block", "cali-PREROUTING"):
        assert chain not in dump
    assert "-A cali-POSTROUTING -o vxlan.calico -p udp" in dump
    assert POSTROUTING_JUMP in dump
    assert FORWARD_JUMP in dump
    assert "-A cali-FORWARD -m comment --comment \"cali:hQ7Oc16wmUtLuneJ\" -j cali-to-hep-forward" in dump
    assert "cali-INPUT" in dump
    assert mangle.count("--match-set") == dump.count("--match-set") - 1 == 3
