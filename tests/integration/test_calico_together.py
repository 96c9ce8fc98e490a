# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Modules that share chains: any of them, in any order, with anybody else's rules around them."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import (
    calico_host_ips,
    calico_masq,
    floating_ip,
    kube_nat_chains,
    service_loop_block,
)
from support import foreign
from support.builders import endpoint_slice, service
from support.calico import MODULES, apply, changed, everything, foreign_parts, four_ways, rules, settle
from support.felix import ARGUMENTS, load_felix
from support.node import Node, node

SHARING = (calico_masq, floating_ip, service_loop_block)
CLUSTER = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5", "10.244.2.5")]}

SUBSETS = [subset for size in (1, 2, 3) for subset in itertools.combinations(SHARING, size)]


def short(modules: Sequence[ModuleType]) -> str:
    return " ".join(module.__name__.rpartition(".")[2] for module in modules)


def with_interface(one: Node) -> Node:
    one.add_interface("eth0", ["192.0.2.11/24", "2001:db8::11/64"])
    settle(one)
    return one


@pytest.mark.parametrize("backend", ["nft", "legacy"])
@pytest.mark.parametrize("modules", SUBSETS, ids=short)
def test_any_order_ends_in_the_same_state(backend: str, modules: Sequence[ModuleType]) -> None:
    """The fourth module shares nothing, so where it comes makes no difference: it takes turns."""
    states = []
    for turn, order in enumerate(itertools.permutations(modules)):
        mixed = list(order)
        mixed.insert(turn % (len(order) + 1), calico_host_ips)
        with node(backend) as one:
            with_interface(one)
            apply(one, mixed)
            states.append(everything(one))
            for module in mixed:
                assert not changed(one, module=module, **MODULES[module]), short(order)
    assert all(state == states[0] for state in states)
    assert "cali-" in states[0]["ipv4"]


@pytest.mark.parametrize("gone", MODULES, ids=lambda module: short([module]))
def test_absent_of_one_leaves_the_others_whole(kube_node: Node, gone: ModuleType) -> None:
    settle(kube_node)
    others = [module for module in MODULES if module is not gone]
    apply(kube_node, others)
    wanted = everything(kube_node)
    four_ways(kube_node, gone, **MODULES[gone])
    assert everything(kube_node) != wanted
    assert four_ways(kube_node, gone, state="absent")["changed"]
    assert everything(kube_node) == wanted
    for module in others:
        assert not changed(kube_node, module=module, **MODULES[module])


@pytest.mark.parametrize("order", list(itertools.permutations(SHARING)), ids=short)
def test_a_shared_chain_and_its_hook_go_with_their_last_entry(kube_node: Node, order: Sequence[ModuleType]) -> None:
    before = foreign.load_foreign(kube_node)
    apply(kube_node, SHARING)
    for module in order:
        assert foreign_parts(kube_node) == before
        four_ways(kube_node, module, state="absent")
        left = [other for other in SHARING if f"-j {own_chain(other)}" in kube_node.save("ipv4")]
        nat = [other for other in left if other is not service_loop_block]
        assert ("-j cali-POSTROUTING" in kube_node.save("ipv4")) == bool(nat)
        assert ("-j cali-PREROUTING" in kube_node.save("ipv4")) == (floating_ip in left)
        assert ("-j cali-FORWARD" in kube_node.save("ipv4")) == (service_loop_block in left)
    assert "cali-" not in "".join(kube_node.saves().values())
    assert foreign_parts(kube_node) == before
    assert kube_node.exec("ipset", "list", "-name") == ""


def own_chain(module: ModuleType) -> str:
    return {calico_masq: "cali-nat-outgoing", floating_ip: "cali-fip-dnat", service_loop_block: "cali-cidr-block"}[
        module]


@pytest.mark.parametrize("insert_mode", ["insert", "append"])
def test_f020_f029_f041_foreign_rules_are_the_same_after_apply_change_and_removal(kube_node: Node,
                                                                                  insert_mode: str) -> None:
    before = foreign.load_foreign(kube_node)
    changed: dict[ModuleType, dict[str, Any]] = {
        calico_masq: {"pools": [{"cidr": "10.9.0.0/16", "masquerade": True}], "nat_port_range": "1024:65535"},
        floating_ip: {"mappings": [{"external": "198.51.100.77", "internal": "10.9.1.5"}]},
        service_loop_block: {"cidrs": ["10.97.0.0/16"], "action": "reject"},
        calico_host_ips: {"forward_check": True, "nodeport_ranges": ["30000:32000"]}}
    settle(kube_node)
    for arguments in (MODULES, changed, dict.fromkeys(MODULES, {"state": "absent"})):
        for module in MODULES:
            result = four_ways(kube_node, module, **arguments[module], insert_mode=insert_mode,
                               backend=kube_node.backend)
            assert result["changed"], (short([module]), arguments[module])
            assert foreign_parts(kube_node) == before


def test_f042_absent_cleans_both_families_and_what_an_older_version_named_otherwise(kube_node: Node) -> None:
    kube_node.module(module=calico_masq, **MODULES[calico_masq], calico_version="3.27", backend=kube_node.backend)
    assert "cali40all-ipam-pools" in kube_node.exec("ipset", "list", "-name")
    assert "cali60all-ipam-pools" in kube_node.exec("ipset", "list", "-name")
    four_ways(kube_node, calico_masq, state="absent")
    assert kube_node.exec("ipset", "list", "-name") == ""
    assert "cali-" not in "".join(kube_node.saves().values())


def test_an_upgrade_of_calico_swaps_the_sets_name_and_the_old_set_goes(kube_node: Node) -> None:
    kube_node.module(module=calico_masq, **MODULES[calico_masq], calico_version="3.27", backend=kube_node.backend)
    result = four_ways(kube_node, calico_masq, **MODULES[calico_masq])
    assert result["changed"]
    assert kube_node.exec("ipset", "list", "-name").split() == [
        "cali40masq-ipam-pools", "cali60masq-ipam-pools", "cali40network-ip-pools", "cali60network-ip-pools"]
    assert "all-ipam-pools" not in kube_node.save("ipv4")


@pytest.mark.parametrize("order", [(kube_nat_chains, *SHARING), (*SHARING, kube_nat_chains),
                                   (floating_ip, kube_nat_chains, calico_masq, service_loop_block)],
                         ids=["kube first", "calico first", "kube between"])
@pytest.mark.parametrize("insert_mode", ["insert", "append"])
def test_services_and_calico_converge_in_any_order(kube_node: Node, order: Sequence[ModuleType],
                                                   insert_mode: str) -> None:
    calico = {"insert_mode": insert_mode, "backend": kube_node.backend}
    arguments: dict[ModuleType, dict[str, Any]] = {module: {**MODULES[module], **calico} for module in SHARING}
    arguments[kube_nat_chains] = {**CLUSTER, "backend": kube_node.backend}
    for module in order:
        result = kube_node.module(module=module, **arguments[module])
        assert result["changed"], result
    state = everything(kube_node)
    for module in order:
        for check in (True, False):
            result = kube_node.module(check=check, module=module, **arguments[module])
            assert not result["changed"], result["diff"]
    assert everything(kube_node) == state
    assert targets(kube_node, "nat", "POSTROUTING") == ["KUBE-POSTROUTING", "cali-POSTROUTING"]
    if insert_mode == "insert":
        assert targets(kube_node, "nat", "PREROUTING") == ["cali-PREROUTING", "KUBE-SERVICES"]
        assert targets(kube_node, "nat", "OUTPUT") == ["cali-OUTPUT", "KUBE-SERVICES"]
        assert targets(kube_node, "filter", "FORWARD")[0] == "cali-FORWARD"


def targets(one: Node, table: str, chain: str) -> list[str]:
    return [rule.split(" -j ")[1] for rule in rules(one, table, chain)]


def test_services_beside_a_whole_felix_stand_behind_it_and_leave_it_alone(kube_node: Node) -> None:
    settle(kube_node)
    load_felix(kube_node)
    felix = [line for line in kube_node.save("ipv4").splitlines() if "cali" in line]
    kube_node.four_ways(**CLUSTER)
    for module, arguments in ARGUMENTS.items():
        assert not changed(kube_node, module=module, **arguments)
    assert [line for line in kube_node.save("ipv4").splitlines() if "cali" in line] == felix
    kube_node.four_ways(state="absent")
    assert [line for line in kube_node.save("ipv4").splitlines() if "cali" in line] == felix
