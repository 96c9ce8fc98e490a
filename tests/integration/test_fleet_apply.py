# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The whole way of a change on two namespaces, from the plan to the last trace; and how apply.yml stops."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.fleet import Fleet, cluster, make_nodes
from support.foreign import foreign_part, load_foreign
from support.node import Node

HOSTS = ["node1", "node2"]
CALICO = {"node_calico_nat": True, "calico_nat_floating_ip_mappings": [],
          "calico_nat_service_loop_block_cidrs": ["10.96.0.0/12"]}
PLAN = {"nodenet_plan": ".nodenet/plan.json"}


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    """Two nodes with rules of somebody else, and a cluster with one service."""
    nodes = make_nodes(HOSTS)
    try:
        for one in nodes.values():
            furnish(one)
        fleet = Fleet(tmp_path, nodes, nodenet_cluster_file="cluster.json", node_name="{{ inventory_hostname }}",
                      node_prerequisites=False, persistence_units="never")
        fleet.write("cluster.json", cluster(["10.244.1.5"]))
        yield fleet
    finally:
        for one in nodes.values():
            one.close()


def furnish(one: Node) -> None:
    """An interface, whose addresses do not come later, and rules of somebody else."""
    one.exec("sysctl", "-q", "-w", "net.ipv6.conf.default.addr_gen_mode=1")
    one.add_interface("eth0", ["192.0.2.11/24", "2001:db8::11/64"])
    load_foreign(one)


def foreign(fleet: Fleet) -> dict[str, Any]:
    """The whole dumps, for removal leaves nothing of ours; without tables that hold nothing."""
    return {host: {family: foreign_part(dump) for family, dump in dumps.items()}
            for host, dumps in fleet.saves().items()}


def agent(fleet: Fleet, host: str, command: str) -> subprocess.CompletedProcess[str]:
    """The agent on a node, by hand."""
    state = fleet.state_dir(host)
    return subprocess.run(["ip", "netns", "exec", fleet.nodes[host].name, sys.executable,
                           str(state / "agent/nodenet.pyz"), "--state-dir", str(state), command],
                          capture_output=True, text=True, check=False)


def test_the_whole_way(fleet: Fleet) -> None:
    fleet.set(**CALICO, nodenet_cluster_file="cluster.json", node_name="{{ inventory_hostname }}",
              node_prerequisites=False, persistence_units="never")
    start, before = foreign(fleet), fleet.saves()
    # Whoever has nodenet_plan in the inventory plans and audits with it, too.
    fleet.playbook("plan", **PLAN).ok()
    assert fleet.saves() == before, "the plan wrote something"

    applied = fleet.playbook("apply", **PLAN).ok()
    assert applied.changed("node1") and applied.changed("node2")
    text = fleet.nodes["node1"].save("ipv4")
    for part in ("KUBE-SVC-", "cali-nat-outgoing", "cali-cidr-block"):
        assert part in text
    fleet.playbook("verify").ok()
    full = fleet.saves()
    again = fleet.playbook("apply").ok()
    assert not again.changed(), again.text
    assert fleet.saves() == full

    # Somebody flushes a node; its agent, which a timer calls where there is systemd, rebuilds it.
    node1 = fleet.nodes["node1"]
    for family in ("ipv4", "ipv6"):
        for table in ("nat", "filter", "mangle"):
            node1.iptables("-t", table, "-F", family=family)
    fleet.playbook("verify").failed("Drift on: node1.")
    healed = agent(fleet, "node1", "heal")
    assert "KUBE-SVC-" in node1.save("ipv4"), healed.stderr

    # A reboot: the kernel has nothing, and the boot unit calls the agent.
    node1.close()
    node1.open()
    furnish(node1)
    assert ":KUBE-" not in node1.save("ipv4")
    restored = agent(fleet, "node1", "restore")
    assert "KUBE-SVC-" in node1.save("ipv4"), restored.stderr
    fleet.playbook("verify").ok()

    # Another service, and back again.
    one_service = fleet.saves()
    fleet.write("cluster.json", cluster(["10.244.1.5"], services=2))
    fleet.playbook("plan").ok()
    fleet.playbook("apply", **PLAN).ok()
    assert fleet.saves() != one_service
    rolled_back = fleet.playbook("rollback").ok()
    assert rolled_back.changed("node1") and rolled_back.changed("node2")
    assert fleet.saves() == one_service

    fleet.playbook("remove").ok()
    left = "".join(text for dumps in fleet.saves().values() for text in dumps.values())
    assert ":KUBE-" not in left and ":cali-" not in left
    assert not any(fleet.state_dir(host).exists() for host in HOSTS)
    assert foreign(fleet) == start
    assert not fleet.playbook("remove").ok().changed()


def test_a_plan_whose_input_has_changed_is_refused_before_any_node(fleet: Fleet) -> None:
    fleet.playbook("plan").ok()
    fleet.write("cluster.json", cluster(["10.244.1.5", "10.244.2.6"]))
    before = fleet.saves()
    run = fleet.playbook("apply", **PLAN).failed("The input has changed since the plan", "No node was touched")
    assert "Reach the node" not in run.stdout
    assert fleet.saves() == before


def test_with_the_planned_input_what_was_reviewed_is_what_happens(fleet: Fleet) -> None:
    fleet.playbook("plan").ok()
    fleet.write("cluster.json", cluster(["10.244.1.5", "10.244.2.6"], services=2))
    fleet.playbook("apply", **PLAN, nodenet_planned_input=True).ok()
    for one in fleet.nodes.values():
        rules = one.save("ipv4")
        assert "10.244.1.5" in rules
        assert "10.244.2.6" not in rules


def test_a_plan_of_another_state_of_one_node_is_refused_before_any_node(fleet: Fleet) -> None:
    fleet.role("kube_nat", kube_nat_cluster=str(fleet.folder / "cluster.json")).ok()
    fleet.write("cluster.json", cluster(["10.244.1.5"], services=2))
    fleet.playbook("plan").ok()
    fleet.nodes["node2"].iptables("-t", "nat", "-D", "KUBE-SERVICES", "1")
    before = fleet.saves()
    fleet.playbook("apply", **PLAN).failed("expect_plan", "node2: not as planned")
    assert fleet.saves() == before


def test_a_node_that_is_not_in_the_plan_is_refused(fleet: Fleet) -> None:
    fleet.playbook("plan", "--limit", "node1").ok()
    before = fleet.saves()
    fleet.playbook("apply", **PLAN).failed("this node is not in .nodenet/plan.json", "node2: not as planned")
    assert fleet.saves() == before
    fleet.playbook("apply", "--limit", "node1", **PLAN).ok()


def test_a_failed_probe_rolls_back_at_once_and_stops_the_run(fleet: Fleet) -> None:
    before = foreign(fleet)
    probe = {"name": "never", "command": ["false"], "retries": 1, "delay": 0}
    run = fleet.playbook("apply", nodenet_probes=[probe]).failed("node1: ", "The node was rolled back.")
    assert foreign(fleet) == before
    assert ":KUBE-" not in fleet.nodes["node1"].save("ipv4")
    # The canary failed, so the second node was never asked.
    assert "node2" not in run.stdout.partition("PLAY [Apply]")[2].partition("PLAY RECAP")[0]
    # Nothing is armed any more.
    fleet.playbook("apply").ok()


def test_in_one_batch_each_node_stands_by_itself_and_the_next_batch_is_not_begun(fleet: Fleet) -> None:
    (fleet.folder / "probe.yml").write_text(yaml.safe_dump([{
        "name": "Fail on the first", "ansible.builtin.assert": {"that": "inventory_hostname != 'node1'"}}]))
    fleet.playbook("apply", nodenet_serial=[2], nodenet_probe_tasks="probe.yml").failed(
        "node1: Fail on the first", "The node was rolled back.")
    assert ":KUBE-" not in fleet.nodes["node1"].save("ipv4")
    assert ":KUBE-SVC-" in fleet.nodes["node2"].save("ipv4")
    assert json.loads(agent(fleet, "node2", "status").stdout)["guard"] is None


def test_a_node_that_a_probe_does_not_reach_is_rolled_back(fleet: Fleet) -> None:
    name = fleet.nodes["node1"].name
    elsewhere = f"{{{{ 'nodenet-test-none' if (nodenet_probe | default({{}})).tcp is defined else '{name}' }}}}"
    probe = {"name": "over TCP", "tcp": {"host": "127.0.0.1", "port": 9}, "retries": 1, "delay": 1}
    fleet.playbook("apply", "--limit", "node1", nodenet_probes=[probe], ansible_netns_name=elsewhere).failed(
        "probe over TCP: node1 was not reached", "The node was rolled back.")
    assert ":KUBE-" not in fleet.nodes["node1"].save("ipv4")


def test_a_node_that_a_task_of_the_user_does_not_reach_is_not_confirmed_and_stops_the_run(fleet: Fleet) -> None:
    name = fleet.nodes["node2"].name
    elsewhere = f"{{{{ 'nodenet-test-none' if inventory_hostname == 'node1' else '{name}' }}}}"
    (fleet.folder / "probe.yml").write_text(yaml.safe_dump([{
        "name": "Look around", "ansible.builtin.command": "true",
        "vars": {"ansible_netns_name": elsewhere}}]))
    fleet.playbook("apply", nodenet_serial=[2], nodenet_probe_tasks="probe.yml").failed("node1: lost in a task")
    assert json.loads(agent(fleet, "node1", "status").stdout)["guard"] is not None
    assert json.loads(agent(fleet, "node2", "status").stdout)["guard"] is None
    fleet.playbook("rollback", "--limit", "node1").ok()
    assert ":KUBE-" not in fleet.nodes["node1"].save("ipv4")


def test_apply_shows_differences_and_leaves_no_answers_on_the_controller(
        fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    temporary = fleet.folder / "tmp"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    fleet.playbook("plan").ok()
    assert "+-A KUBE-SERVICES " in fleet.playbook("apply", "--diff", **PLAN).ok().stdout
    assert list(temporary.glob("nodenet-*")) == []


def test_probes_from_node_and_controller_and_tasks_of_the_user(fleet: Fleet) -> None:
    (fleet.folder / "probe.yml").write_text(yaml.safe_dump([
        {"name": "Write down that it was called", "ansible.builtin.copy": {
            "content": "{{ inventory_hostname }}", "dest": str(fleet.folder) + "/called-{{ inventory_hostname }}"}}]))
    name = fleet.nodes["node1"].name
    where = "test \"$(ip netns identify)\" = "
    probes = [{"name": "from the node", "command": ["sh", "-c", f"{where} '{name}'"]},
              {"name": "from the controller", "from": "controller", "command": ["sh", "-c", f"{where} ''"]}]
    fleet.playbook("apply", "--limit", "node1", nodenet_probes=probes, nodenet_probe_tasks="probe.yml").ok()
    assert (fleet.folder / "called-node1").exists()


def test_in_check_mode_nothing_is_armed_written_or_probed(fleet: Fleet) -> None:
    before = fleet.saves()
    probe = {"name": "never", "command": ["false"], "retries": 1, "delay": 0}
    run = fleet.playbook("apply", "--check", nodenet_probes=[probe]).ok()
    assert run.changed("node1") and run.changed("node2")
    assert fleet.saves() == before
    assert not (fleet.state_dir("node1") / "guard").exists()


def test_without_commit_confirm_no_guard_is_armed(fleet: Fleet) -> None:
    fleet.playbook("apply", nodenet_commit_confirm=False).ok()
    assert "KUBE-SVC-" in fleet.nodes["node2"].save("ipv4")
    assert not (fleet.state_dir("node2") / "guard").exists()
