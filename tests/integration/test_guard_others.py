# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a roll-back does to flows, to what others have made use of, and when it cannot write."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter import ipset
from ansible_collections.metal.nodenet.plugins.modules import (
    calico_masq,
    floating_ip,
    kube_nat_chains,
)
from support.agent import Agent
from support.builders import endpoint_slice, service
from support.calico import FLOATING, MASQ, everything
from support.flows import flows, make_flow
from support.guarded import NEW, OLD, OTHER_FLOATING, new_state, old_state, run
from support.shims import Shims


def test_flows_that_a_roll_back_leaves_behind_are_deleted(agent: Agent) -> None:
    def dns(*pods: str) -> dict[str, Any]:
        ports = [{"name": "dns", "port": 53, "protocol": "UDP"}]
        return {"services": [service(name="dns", ports=ports)],
                "endpoint_slices": [endpoint_slice(*pods, name="dns-a", service_name="dns", port=5353, port_name="dns",
                                                   protocol="UDP")]}

    run(agent, **dns("10.244.1.5"), guard=None)
    run(agent, floating_ip, **FLOATING, guard=None)
    agent.armed()
    run(agent, **dns("10.244.1.5", "10.244.2.5"))
    run(agent, floating_ip, mappings=[{"external": "198.51.100.10", "internal": "10.244.1.7"}])
    for pod in ("10.244.1.5", "10.244.2.5"):
        make_flow(agent.node, "udp", "10.96.0.10", pod, 53, 5353)
    make_flow(agent.node, "tcp", "198.51.100.10", "10.244.1.7")
    make_flow(agent.node, "udp", "10.96.0.99", "10.244.2.5", 53, 5353)
    agent.guard("rolled_back", "run-1")
    assert flows(agent.node) == ["udp 10.96.0.10 > 10.244.1.5", "udp 10.96.0.99 > 10.244.2.5"]


def test_an_entry_of_felixs_in_a_shared_chain_keeps_its_text(agent: Agent) -> None:
    """Our entries are before it and change its neighbours; what a roll-back restores is the whole text of before."""
    for family in ("ipv4", "ipv6"):
        agent.node.load(family, "*nat\n:cali-POSTROUTING - [0:0]\n:cali-other - [0:0]\n"
                                "-A POSTROUTING -m comment --comment \"cali:O3lYWMrLQYEMJtB5\" -j cali-POSTROUTING\n"
                                "-A cali-POSTROUTING -m comment --comment \"cali:Z-c7XtVd2Bq7s_hA\" -j cali-other\n"
                                "-A cali-POSTROUTING -p tcp -j RETURN\nCOMMIT\n")
    before = everything(agent.node)
    agent.armed()
    new_state(agent)
    run(agent, floating_ip, **OTHER_FLOATING)
    agent.guard("rolled_back", "run-1")
    assert everything(agent.node) == before
    run(agent, calico_masq, **MASQ, guard=None)
    second = everything(agent.node)
    agent.armed("run-2")
    run(agent, calico_masq, state="absent", guard="run-2")
    run(agent, floating_ip, **OTHER_FLOATING, guard="run-2")
    agent.guard("rolled_back", "run-2")
    assert everything(agent.node) == second


def test_what_no_module_has_written_is_left_to_its_agent(agent: Agent) -> None:
    """Services of ours beside a Felix, and pools of ours beside a kube-proxy, which change their own meanwhile."""
    felix = ("*nat\n:cali-fip-dnat - [0:0]\n:cali-nat-outgoing - [0:0]\n-A cali-fip-dnat -d 198.51.100.9/32 -j DNAT "
             "--to-destination 10.244.1.9\n")
    proxy = ("*nat\n:KUBE-SVC-XPGD46QRK7WJZT7O - [0:0]\n:KUBE-SERVICES - [0:0]\n"
             "-A KUBE-SERVICES -d 10.96.9.9/32 -j KUBE-SVC-XPGD46QRK7WJZT7O\n")
    later = "-A cali-nat-outgoing -j ACCEPT\nCOMMIT\n", "-A KUBE-SVC-XPGD46QRK7WJZT7O -j ACCEPT\nCOMMIT\n"
    for loaded, change, module, arguments, ours in (
            (felix, later[0], kube_nat_chains, NEW, "KUBE-"), (proxy, later[1], calico_masq, MASQ, "cali-")):
        agent.node.load("ipv4", "*nat\nCOMMIT\n*filter\nCOMMIT\n*mangle\nCOMMIT\n", flush=True)
        agent.node.load("ipv4", loaded + "COMMIT\n")
        run(agent, module, guard=None, state="absent")
        agent.armed(ours + "run")
        run(agent, module, guard=ours + "run", **arguments)
        agent.node.load("ipv4", "*nat\n" + change)
        theirs = [line for line in agent.node.save("ipv4").splitlines() if ours not in line]
        assert any("-j ACCEPT" in line for line in theirs)
        for confirmed in (False, True):
            if confirmed:
                agent.armed(ours + "again")
                run(agent, module, guard=ours + "again", **arguments)
                assert agent.guard("confirmed", ours + "again")["changed"]
            result = agent.guard("rolled_back", None if confirmed else ours + "run")
            assert result["changed"], result
            assert [line for line in agent.node.save("ipv4").splitlines() if ours not in line] == theirs
            assert ours not in agent.node.save("ipv4")


def test_a_set_that_a_rule_of_others_names_stays_and_that_is_said(agent: Agent) -> None:
    agent.armed()
    run(agent, calico_masq, **MASQ)
    agent.node.iptables("-A", "FORWARD", "-m", "set", "--match-set", "cali40masq-ipam-pools", "src", "-j", "ACCEPT")
    result = agent.guard("rolled_back", "run-1")
    assert not result.get("failed"), result["msg"]
    assert any("cali40masq-ipam-pools" in text for text in result["messages"])
    assert "cali40masq-ipam-pools src -j ACCEPT" in agent.node.save("ipv4")
    assert agent.status()["guard"] is None


def test_a_roll_back_that_cannot_write_says_what_is_left_and_stays_armed(agent: Agent, shims: Shims) -> None:
    old = old_state(agent)
    agent.armed()
    new_state(agent)
    for name in ("ip6tables", f"ip6tables-{agent.node.backend}"):
        shims.add(name + "-restore", "echo no >&2; exit 1")
    result = agent.guard("rolled_back", "run-1", environment=shims.environment)
    assert result["failed"]
    for word in ("NOT all back", "ipv6", "nat cali-fip-dnat"):
        assert word in result["msg"]
    # The other family has its old rules.
    assert result["changed"]
    assert any("rolling back run run-1" in text for text in result["messages"])
    assert agent.status()["guard"]["run_id"] == "run-1"
    assert agent.guard("rolled_back", "run-1")["changed"]
    assert everything(agent.node) == old


def test_nobody_writes_while_a_way_back_is_not_finished(agent: Agent, shims: Shims) -> None:
    old = old_state(agent)
    agent.armed()
    new_state(agent)
    agent.guard("confirmed", "run-1")
    for name in ("ip6tables", f"ip6tables-{agent.node.backend}"):
        shims.add(name + "-restore", "echo no >&2; exit 1")
    assert agent.guard("rolled_back", environment=shims.environment)["failed"]
    assert agent.status()["unfinished"] == ["return"]
    refused = agent.node.module(**NEW, **agent.options)
    assert refused["failed"]
    assert "interrupted" in refused["msg"]
    kept = agent.install(state="absent")
    assert kept["failed"]
    assert "interrupted" in kept["msg"]
    agent.ok("heal")
    assert agent.status()["unfinished"] == []
    assert everything(agent.node) == old


def test_a_node_without_ipset_can_be_guarded(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ipset, "find_tool", lambda _name: None)
    run(agent, **OLD, guard=None)
    old = agent.node.saves()
    agent.armed()
    run(agent, **NEW)
    result = agent.guard("rolled_back", "run-1")
    assert not result.get("failed"), result["msg"]
    assert agent.node.saves() == old
