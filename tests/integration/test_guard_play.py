# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Guards and the agent as a user has them: through Ansible, its action plugins and a connection."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.agent import Agent
from support.builders import endpoint_slice, service
from support.node import Node
from support.plays import Done, changed, run_plays

COLLECTION = "metal.nodenet."
CLUSTER: dict[str, Any] = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5")]}


def play(one: Node, folder: Path, tasks: list[dict[str, Any]], *words: str) -> Done:
    """Run tasks on the node; what they left in ``ansible_remote_tmp`` is in ``folder/remote``."""
    (folder / "remote").mkdir(exist_ok=True)
    return run_plays(folder, [{"hosts": "all", "tasks": tasks}], {"node-1": one}, *words,
                     ansible_remote_tmp=str(folder / "remote"))


def task(module: str, **arguments: Any) -> dict[str, Any]:
    return {COLLECTION + module: arguments}


def test_the_agent_is_sent_once(nft_agent: Agent, tmp_path: Path) -> None:
    tasks = [task("node_agent", state_dir=str(nft_agent.folder))]
    assert changed(play(nft_agent.node, tmp_path, tasks, "--check")) == {"node-1": 1}
    assert not nft_agent.folder.exists()
    assert changed(play(nft_agent.node, tmp_path, tasks)) == {"node-1": 1}
    done = play(nft_agent.node, tmp_path, tasks, "-vvv")
    assert changed(done) == {"node-1": 0}
    assert ".pyz TO " not in done.stdout
    assert list((tmp_path / "remote").iterdir()) == []


def test_a_guard_outlives_the_run_that_armed_it_and_is_confirmed_by_the_next(nft_agent: Agent, tmp_path: Path) -> None:
    state_dir = {"state_dir": str(nft_agent.folder)}
    first = [task("commit_guard", state="armed", run_id="run-1", **state_dir),
             task("kube_nat_chains", node_name="node-1", guard="run-1", remember=True, **CLUSTER, **state_dir)]
    assert changed(play(nft_agent.node, tmp_path, first)) == {"node-1": 2}
    assert "@" in nft_agent.status()["guard"]["controller"]
    assert len(nft_agent.waiting()) == 1
    done = play(nft_agent.node, tmp_path, [task("commit_guard", state="confirmed", run_id="run-1", **state_dir)])
    assert changed(done) == {"node-1": 1}
    assert "WARNING" not in done.stdout + done.stderr
    nft_agent.wait_until_disarmed()
    assert nft_agent.status()["applied"] == ["kube_nat_chains"]
    assert nft_agent.status()["last"]["outcome"] == "confirmed"


def test_a_controller_that_is_gone_does_not_keep_the_node_from_rolling_back(nft_agent: Agent, tmp_path: Path) -> None:
    before = nft_agent.node.saves()
    state_dir = {"state_dir": str(nft_agent.folder)}
    tasks = [task("commit_guard", state="armed", run_id="run-1", timeout=25, **state_dir),
             task("kube_nat_chains", node_name="node-1", guard="run-1", remember=True, **CLUSTER, **state_dir)]
    assert changed(play(nft_agent.node, tmp_path, tasks)) == {"node-1": 2}
    assert nft_agent.node.saves() != before
    nft_agent.wait_until_disarmed()
    assert not [line for line in "".join(nft_agent.node.saves().values()).splitlines() if "KUBE-" in line]
    assert nft_agent.status()["applied"] == []
