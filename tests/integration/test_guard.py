# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A guard and what becomes of it: confirmed, rolled back by hand or by its timer, or in the way of another run."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import time
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import (
    calico_masq,
    commit_guard,
    floating_ip,
    kube_nat_chains,
)
from support.agent import Agent
from support.calico import MASQ, everything
from support.foreign import load_foreign
from support.guarded import NEW, OLD, OTHER_FLOATING, OTHER_MASQ, new_state, old_state, run
from support.node import Node, node


def test_a_confirmed_run_stays_and_the_way_back_is_kept(agent: Agent) -> None:
    old = old_state(agent)
    documents = agent.files()
    assert agent.guard("armed", "run-1", check=True)["changed"]
    assert agent.files() == documents
    armed = agent.armed()
    assert armed["guard"]["timer"] == "process"
    assert len(agent.waiting()) == 1
    assert not agent.armed()["changed"]
    new = new_state(agent)
    assert agent.status()["pending"] == ["calico_masq", "floating_ip", "kube_nat_chains", "service_loop_block"]
    assert agent.guard("confirmed", "run-1", check=True)["changed"]
    assert agent.guard("confirmed", "run-1")["changed"]
    assert not agent.guard("confirmed", "run-1")["changed"]
    agent.wait_until_disarmed()
    assert everything(agent.node) == new
    assert agent.status() == {
        "guard": None, "written": False, "unfinished": [], "pending": [], "previous": True,
        "applied": ["calico_masq", "kube_nat_chains", "service_loop_block"], "last": agent.status()["last"]}
    assert set(agent.files()) == {"applied/calico_masq.json", "applied/kube_nat_chains.json",
                                  "applied/service_loop_block.json", "guard/last.json", "previous/snapshot.json",
                                  "previous/written.json"}
    predicted = agent.guard("rolled_back", check=True)
    assert everything(agent.node) == new
    back = agent.guard("rolled_back")
    assert (back["changed"], back["restored"], back["diff"]) == (True, predicted["restored"], predicted["diff"])
    assert back["diff"]
    assert everything(agent.node) == old
    assert {name: content for name, content in agent.files().items() if name.startswith("applied/")} == documents
    assert not agent.guard("rolled_back")["changed"]


def test_rolled_back_at_once(agent: Agent) -> None:
    old = old_state(agent)
    documents = agent.files()
    agent.armed()
    new = new_state(agent)
    predicted = agent.guard("rolled_back", "run-1", check=True)
    assert everything(agent.node) == new
    result = agent.guard("rolled_back", "run-1")
    assert not result.get("failed"), result["msg"]
    assert result["diff"] == predicted["diff"]
    assert everything(agent.node) == old
    agent.wait_until_disarmed()
    files = agent.files()
    assert json.loads(files.pop("guard/last.json"))["outcome"] == "rolled_back"
    assert files == documents
    assert not agent.guard("rolled_back", "run-1")["changed"]
    failed = agent.guard("confirmed", "run-1")
    assert failed["failed"]
    assert "the node has its old state" in failed["msg"]


def test_nobody_confirms_and_the_node_rolls_back_by_itself(agent: Agent) -> None:
    old = old_state(agent)
    documents = agent.files()
    agent.armed(timeout=30)
    new_state(agent)
    for family in ("ipv4", "ipv6"):
        agent.node.iptables("-A", "FORWARD", "-p", "tcp", "--dport", "4", "-j", "DROP", family=family)
    agent.wait_until_disarmed()
    for family in ("ipv4", "ipv6"):
        # What others wrote meanwhile is there.
        agent.node.iptables("-D", "FORWARD", "-p", "tcp", "--dport", "4", "-j", "DROP", family=family)
    assert everything(agent.node) == old
    files = agent.files()
    files.pop("guard/last.json")
    assert files == documents
    failed = agent.guard("confirmed", "run-1")
    assert failed["failed"]
    assert "fired at" in failed["msg"]
    late = agent.node.module(**NEW, **agent.options, guard="run-1")
    assert late["failed"]
    assert "fired at" in late["msg"]


def test_a_first_apply_is_rolled_back_to_nothing(agent: Agent) -> None:
    foreign = load_foreign(agent.node)
    before = everything(agent.node)
    agent.armed()
    new_state(agent)
    run(agent, floating_ip, **OTHER_FLOATING)
    result = agent.guard("rolled_back", "run-1")
    assert not result.get("failed"), result["msg"]
    assert everything(agent.node) == before
    assert foreign
    assert not (agent.folder / "applied").exists() or not list((agent.folder / "applied").iterdir())


def test_a_node_restarted_while_armed_comes_back_with_the_old_state(agent: Agent) -> None:
    run(agent, **OLD, guard=None)
    run(agent, calico_masq, **MASQ, guard=None)
    old = everything(agent.node)
    agent.armed()
    new_state(agent)
    for process in agent.waiting():
        os.kill(process, signal.SIGKILL)
    with node(agent.node.backend) as fresh:
        fresh.add_interface("eth0", ["192.0.2.11/24", "2001:db8::11/64"])
        after = agent.on(fresh)
        logged = after.ok("restore")
        assert "rolling back run run-1" in logged
        assert everything(fresh) == old
        assert after.status()["guard"] is None
        assert after.status()["last"]["outcome"] == "rolled_back"
        after.ok("restore")
        assert everything(fresh) == old


def test_a_restart_while_armed_brings_back_what_the_run_had_not_written_too(agent: Agent) -> None:
    run(agent, **OLD, guard=None)
    run(agent, calico_masq, **MASQ, guard=None)
    old = everything(agent.node)
    for path in (agent.folder / "applied").iterdir():
        # Nothing else rebuilds it.
        path.unlink()
    for number, written in enumerate((True, False)):
        agent.armed(f"run-{number}")
        if written:
            assert agent.node.module(**NEW, backend=agent.node.backend, state_dir=str(agent.folder),
                                     guard=f"run-{number}")["changed"]
        for process in agent.waiting():
            os.kill(process, signal.SIGKILL)
        with node(agent.node.backend) as fresh:
            fresh.add_interface("eth0", ["192.0.2.11/24", "2001:db8::11/64"])
            agent.on(fresh).ok("restore")
            assert everything(fresh) == old
        if written:
            agent.node.module(**OLD, backend=agent.node.backend, state_dir=str(agent.folder))


def test_a_restart_while_armed_leaves_what_an_agent_has_made_since(agent: Agent) -> None:
    run(agent, calico_masq, **MASQ, guard=None)
    for path in (agent.folder / "applied").iterdir():
        path.unlink()
    agent.armed()
    run(agent, **NEW)
    for process in agent.waiting():
        os.kill(process, signal.SIGKILL)
    with node(agent.node.backend) as fresh:
        fresh.add_interface("eth0", ["192.0.2.11/24", "2001:db8::11/64"])
        fresh.load("ipv4", "*nat\n:cali-nat-outgoing - [0:0]\n-A cali-nat-outgoing -j ACCEPT\nCOMMIT\n")
        agent.on(fresh).ok("restore")
        saved = fresh.save("ipv4")
        assert [line for line in saved.splitlines() if "-A" in line] == ["-A cali-nat-outgoing -j ACCEPT"]
        # The other family has nobody who makes it.
        assert "-j cali-nat-outgoing" in fresh.save("ipv6")


def test_a_process_that_waits_for_an_earlier_guard_of_a_run_leaves_the_next_one_alone(agent: Agent) -> None:
    old_state(agent)
    agent.armed(timeout=10)
    first, = agent.waiting()
    while "nanosleep" not in Path(f"/proc/{first}/wchan").read_text():
        time.sleep(0.05)
    # Between two looks of it, the guard ends and another one of the same name begins.
    os.kill(first, signal.SIGSTOP)
    agent.guard("confirmed", "run-1")
    agent.armed(timeout=600)
    new = new_state(agent)
    second, = (process for process in agent.waiting() if process != first)
    os.kill(first, signal.SIGCONT)
    end = time.monotonic() + 60
    while first in agent.waiting():
        assert time.monotonic() < end
        time.sleep(0.05)
    assert agent.waiting() == [second]
    assert agent.status()["guard"]["run_id"] == "run-1"
    assert everything(agent.node) == new
    assert agent.guard("confirmed", "run-1")["changed"]
    agent.wait_until_disarmed()


def test_two_runs_do_not_collide(agent: Agent) -> None:
    old_state(agent)
    agent.armed("run-1", controller="alice@control")
    for state in ("armed", "confirmed"):
        for check in (False, True):
            result = agent.guard(state, "run-2", check=check)
            assert result["failed"]
            for word in ("run-1", "alice@control", "until"):
                assert word in result["msg"]
    assert not agent.guard("rolled_back", "run-2")["changed"]
    before = everything(agent.node)
    assert agent.node.module(**NEW, **agent.options, guard="run-2")["failed"]
    assert agent.node.module(**NEW, **agent.options)["failed"]
    assert agent.install(state="absent")["failed"]
    assert everything(agent.node) == before


@pytest.mark.parametrize("who", ["the next run", "the healer"])
def test_a_guard_whose_timer_was_killed_is_rolled_back_by(agent: Agent, who: str) -> None:
    old = old_state(agent)
    agent.armed()
    new = new_state(agent)
    for process in agent.waiting():
        os.kill(process, signal.SIGKILL)
    expire(agent, 60)
    assert agent.guard("confirmed", "run-1")["failed"]
    assert everything(agent.node) == new
    if who == "the healer":
        assert "rolling back run run-1" in agent.ok("heal")
    else:
        predicted = agent.guard("armed", "run-2", check=True)
        assert everything(agent.node) == new
        result = agent.armed("run-2")
        assert "run-1" in result["warnings"][0]
        assert predicted["changed"]
    assert everything(agent.node) == old


def expire(agent: Agent, seconds: float) -> None:
    """Move the deadline of the guard into the past."""
    path = agent.folder / "guard/armed.json"
    armed = json.loads(path.read_text())
    path.write_text(json.dumps({**armed, "deadline": time.time() - seconds}))


def test_a_guard_that_saw_no_write_leaves_the_way_back_as_it_was(agent: Agent) -> None:
    old = old_state(agent)
    agent.armed()
    new_state(agent)
    agent.guard("confirmed", "run-1")
    agent.armed("run-2")
    assert not run(agent, **NEW, guard="run-2")["changed"]
    agent.guard("confirmed", "run-2")
    agent.guard("rolled_back")
    assert everything(agent.node) == old


def test_a_flush_while_armed_is_rolled_back_too_and_not_healed(agent: Agent) -> None:
    old = old_state(agent)
    agent.armed()
    new_state(agent)
    for family in ("ipv4", "ipv6"):
        for table in ("nat", "mangle"):
            for word in ("-F", "-X"):
                agent.node.iptables("-t", table, word, family=family)
    flushed = everything(agent.node)
    assert agent.ok("heal") == ""
    assert everything(agent.node) == flushed
    agent.guard("rolled_back", "run-1")
    now = everything(agent.node)
    for family in ("ipv4", "ipv6"):
        assert [line for line in now[family].splitlines() if "KUBE-" in line or "cali" in line] == [
            line for line in old[family].splitlines() if "KUBE-" in line or "cali" in line]
    assert now["sets"] == old["sets"]


def test_nothing_to_go_back_to(agent: Agent) -> None:
    old_state(agent)
    result = agent.guard("rolled_back")
    assert result["failed"]
    assert "nothing to go back to" in result["msg"]


@pytest.mark.parametrize(("arguments", "words"), [
    ({"run_id": "a b"}, ["a b"]), ({"run_id": "x" * 65}, ["run id"]), ({"run_id": "-x"}, ["-x"]),
    ({"run_id": "r", "timeout": 4}, ["timeout", "4"]), ({"run_id": "r", "timeout": 100000}, ["timeout", "100000"]),
    ({"run_id": "r", "agent_sha256": "0" * 64}, ["agent", "0000"]),
])
def test_bad_arguments_are_refused_by_name(nft_agent: Agent, arguments: dict[str, Any], words: list[str]) -> None:
    result = nft_agent.node.module(module=commit_guard, state="armed",
                                   **{"state_dir": str(nft_agent.folder), "agent": str(nft_agent.sent),
                                      "agent_sha256": nft_agent.sha256, **arguments})
    assert result["failed"]
    for word in words:
        assert word in result["msg"]
    assert nft_agent.status()["guard"] is None


def test_a_snapshot_that_is_gone_or_damaged_is_an_error_and_the_guard_stays(agent: Agent) -> None:
    old_state(agent)
    agent.armed()
    run(agent, **NEW)
    path = agent.folder / "guard/snapshot.json"
    whole = path.read_text()
    for content in (None, whole[:-10], "{}", whole.replace('"version":1', '"version":2')):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_text(content)
        result = agent.guard("rolled_back", "run-1")
        assert result["failed"]
        assert str(path) in result["msg"]
        assert agent.status()["guard"]
    path.write_text(whole)
    written = agent.folder / "guard/written.json"
    whole = written.read_text()
    for content in ("{}", whole.replace("kube_nat_chains", "unknown_module"), whole[:-4]):
        written.write_text(content)
        result = agent.guard("rolled_back", "run-1")
        assert result["failed"]
        assert agent.status()["guard"]
    written.write_text(whole)
    assert agent.guard("rolled_back", "run-1")["changed"]


def test_state_that_moved_to_the_other_backend_moves_back(tmp_path: Any) -> None:
    with node("legacy") as one:
        one.add_interface("eth0", ["192.0.2.11/24", "2001:db8::11/64"])
        agent = Agent(one, tmp_path)
        try:
            for module, arguments in ((kube_nat_chains, OLD), (calico_masq, MASQ)):
                assert one.module(module=module, backend="legacy", **arguments)["changed"]
            old = everything(one)
            agent.armed()
            for module in (kube_nat_chains, calico_masq):
                one.module(module=module, state="absent", **agent.options, guard="run-1")
            for module, arguments in ((kube_nat_chains, NEW), (calico_masq, OTHER_MASQ)):
                moved = one.module(module=module, backend="nft", **agent.options, guard="run-1", **arguments)
                assert not moved.get("failed"), moved["msg"]
            result = agent.guard("rolled_back", "run-1")
            assert not result.get("failed"), result["msg"]
            assert everything(one) == old
            assert "KUBE-" not in one.exec("iptables-nft-save")
            assert "cali" not in one.exec("iptables-nft-save")
        finally:
            for process in agent.waiting():
                with contextlib.suppress(ProcessLookupError):
                    os.kill(process, signal.SIGKILL)


def test_a_kubelets_chains_stay(kube_node: Node, agent: Agent) -> None:
    for family in ("ipv4", "ipv6"):
        kube_node.load(family, "*mangle\n:KUBE-KUBELET-CANARY - [0:0]\n:KUBE-IPTABLES-HINT - [0:0]\nCOMMIT\n"
                               "*filter\n:KUBE-FIREWALL - [0:0]\n-A INPUT -j KUBE-FIREWALL\n"
                               "-A KUBE-FIREWALL -m mark --mark 0x8000/0x8000 -j DROP\nCOMMIT\n")
    before = everything(kube_node)
    agent.armed()
    run(agent, **OLD)
    agent.guard("rolled_back", "run-1")
    assert everything(kube_node) == before
