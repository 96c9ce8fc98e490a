# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Killed at any moment, a guarded change leaves the old state or the new one: by real kills, and step by step."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import random
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import calico_masq, kube_nat_chains
from support.agent import Agent
from support.builders import endpoint_slice, service
from support.calico import MASQ, everything
from support.guarded import OTHER_MASQ
from support.shims import Shims

SIZE = 150


def cluster(pods: str, size: int = SIZE) -> dict[str, Any]:
    """Enough services for a load to take some time."""
    names = [f"s{number}" for number in range(size)]
    return {"services": [service(name=name, clusterIP=f"10.96.0.{number + 1}") for number, name in enumerate(names)],
            "endpoint_slices": [endpoint_slice(f"{pods}.{number + 1}", name=name, service_name=name)
                                for number, name in enumerate(names)]}


OLD, NEW = cluster("10.244.1"), cluster("10.244.2", SIZE + 20)


def start(action: Callable[[], object]) -> int:
    """Do something in a process group of its own; its number."""
    child = os.fork()
    if child:
        with contextlib.suppress(OSError):
            os.setpgid(child, child)
        return child
    os.setpgid(0, 0)
    try:
        action()
    finally:
        os._exit(0)


def kill(group: int, after: float) -> bool:
    """Kill the whole group; whether it was still at work."""
    time.sleep(after)
    done, _state = os.waitpid(group, os.WNOHANG)
    if done:
        return False
    os.killpg(group, signal.SIGKILL)
    os.waitpid(group, 0)
    return True


def prepare(agent: Agent) -> dict[str, Any]:
    for module, arguments in ((kube_nat_chains, OLD), (calico_masq, MASQ)):
        result = agent.node.module(module=module, **arguments, **agent.options, backend=agent.node.backend)
        assert not result.get("failed"), result["msg"]
    return everything(agent.node)


def change(agent: Agent) -> None:
    for module, arguments in ((kube_nat_chains, NEW), (calico_masq, OTHER_MASQ)):
        agent.node.module(module=module, **arguments, **agent.options, guard="run-1")


def applied(agent: Agent) -> dict[str, bytes]:
    return {name: content for name, content in agent.files().items() if name.startswith(("applied/", "pending/"))}


def settled(agent: Agent) -> None:
    """Nothing of a guard is left."""
    assert {name for name in agent.files() if not name.startswith(("applied/", "previous/", "cache/"))} <= {
        "guard/last.json"}


@pytest.mark.parametrize("part", range(8))
def test_a_killed_apply_is_rolled_back_to_the_old_state(agent: Agent, part: int) -> None:
    old = prepare(agent)
    documents = applied(agent)
    agent.armed()
    group = start(lambda: change(agent))
    killed = kill(group, part * 0.15 + random.Random(part).random() * 0.15)
    agent.ok("roll-back", "--run", "run-1")
    assert everything(agent.node) == old, killed
    assert applied(agent) == documents
    settled(agent)
    agent.wait_until_disarmed()


@pytest.mark.parametrize("part", range(8))
def test_a_killed_roll_back_is_done_by_the_next_one(agent: Agent, part: int) -> None:
    """The program and what it started, all at once; the timer has been killed before."""
    old = prepare(agent)
    documents = applied(agent)
    agent.armed()
    change(agent)
    for process in agent.waiting():
        os.kill(process, signal.SIGKILL)
    group = start(lambda: agent.run("roll-back", "--run", "run-1"))
    kill(group, part * 0.1 + random.Random(part).random() * 0.1)
    agent.ok("restore")
    assert everything(agent.node) == old
    assert applied(agent) == documents
    settled(agent)


@pytest.mark.parametrize("who", ["parent", "child"])
def test_a_roll_back_survives_the_death_of_one_of_its_processes(agent: Agent, who: str) -> None:
    old = prepare(agent)
    agent.armed()
    change(agent)
    for process in agent.waiting():
        os.kill(process, signal.SIGKILL)
    with subprocess.Popen(["ip", "netns", "exec", agent.node.name, "python3", str(agent.sent), "--state-dir",
                           str(agent.folder), "roll-back", "--run", "run-1"], stderr=subprocess.PIPE) as process:
        end = time.monotonic() + 60
        while not children(process.pid):
            assert time.monotonic() < end
            time.sleep(0.005)
        time.sleep(0.05)
        os.kill(process.pid if who == "parent" else children(process.pid)[0], signal.SIGKILL)
        assert process.stderr
        logged = process.stderr.read().decode()
    assert ("starting again" in logged) is (who == "child")
    agent.wait_until_disarmed()
    assert everything(agent.node) == old


@pytest.mark.parametrize("part", range(6))
def test_a_killed_confirmation_leaves_the_old_state_or_the_new_one(nft_agent: Agent, part: int) -> None:
    agent = nft_agent
    old = prepare(agent)
    documents = applied(agent)
    agent.armed()
    change(agent)
    new = everything(agent.node)
    for process in agent.waiting():
        os.kill(process, signal.SIGKILL)
    kill(start(lambda: agent.guard("confirmed", "run-1")), part * 0.02)
    agent.ok("restore")
    now = everything(agent.node)
    assert now in (old, new)
    assert (now == old) is (applied(agent) == documents)
    assert agent.status()["last"]["outcome"] == ("rolled_back" if now == old else "confirmed")
    settled(agent)


@pytest.mark.parametrize("part", range(4))
def test_a_killed_return_to_the_previous_state_is_finished(nft_agent: Agent, part: int) -> None:
    agent = nft_agent
    old = prepare(agent)
    documents = applied(agent)
    agent.armed()
    change(agent)
    new = everything(agent.node)
    agent.guard("confirmed", "run-1")
    kill(start(lambda: agent.guard("rolled_back")), 0.15 + part * 0.1)
    agent.ok("heal")
    now = everything(agent.node)
    assert now in (old, new)
    assert (now == old) is (applied(agent) == documents)
    settled(agent)


class Killed(Exception):
    """Stands for a kill right before a step."""


#: What every step of the life of a guard goes through, and so what a kill can come before.
STEPS = ("write", "move", "remove")


def steps_until(limit: int, action: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> int:
    """Do something until its step number ``limit``; how many it had."""
    from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import StateDir

    count = 0

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def step(*arguments: Any) -> Any:
            nonlocal count
            count += 1
            if count > limit:
                raise Killed
            return real(*arguments)
        return step

    with monkeypatch.context() as patch:
        for name in STEPS:
            patch.setattr(StateDir, name, counted(getattr(StateDir, name)))
        with contextlib.suppress(Killed):
            action()
    return count


@pytest.mark.parametrize("how", ["restore", "heal", "confirmed again", "another run"])
def test_a_confirmation_that_stopped_before_any_step_is_whole_afterwards(
        nft_agent: Agent, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    from ansible_collections.metal.nodenet.plugins.module_utils.node import confirmation, guard

    agent = nft_agent
    prepare(agent)
    agent.armed()
    change(agent)
    new = everything(agent.node)
    kept = tmp_path / "kept"
    shutil.copytree(agent.folder, kept)
    armed = guard.read_armed(agent.state)
    assert armed

    def confirm() -> None:
        confirmation.confirm(agent.state, armed)

    total = steps_until(999, confirm, monkeypatch)
    whole = {name: content for name, content in agent.files().items() if name != "guard/last.json"}
    assert total > 6
    for limit in range(1, total):
        shutil.rmtree(agent.folder)
        shutil.copytree(kept, agent.folder)
        assert steps_until(limit, confirm, monkeypatch) == limit + 1
        if how == "confirmed again":
            assert not agent.guard("confirmed", "run-1").get("failed")
        elif how == "another run":
            assert not agent.node.module(**NEW, **agent.options)["changed"]
        else:
            agent.ok(how)
        assert {name: content for name, content in agent.files().items() if name != "guard/last.json"} == whole, limit
        assert agent.status()["last"]["outcome"] == "confirmed"
        assert everything(agent.node) == new


def test_arming_that_stopped_before_any_step_is_no_guard_or_one_that_is_over_once(
        nft_agent: Agent, monkeypatch: pytest.MonkeyPatch) -> None:
    from ansible_collections.metal.nodenet.plugins.module_utils.node import rollback, timer

    agent = nft_agent
    old = prepare(agent)
    documents = applied(agent)
    agent.install()
    monkeypatch.setattr(timer, "start", lambda *_arguments: None)

    def arm(limit: int) -> None:
        steps_until(limit, lambda: rollback.arm(agent.state, "run-1", 5, str(agent.sent), "tests", 10), monkeypatch)

    for limit in range(8):
        agent.node.run_inside(functools.partial(arm, limit))
        status = agent.status()
        if status["guard"]:
            path = agent.folder / "guard/armed.json"
            path.write_text(json.dumps({**json.loads(path.read_text()), "deadline": time.time() - 100}))
        result = agent.armed("run-2")
        assert bool(result["warnings"]) is bool(status["guard"])
        agent.guard("rolled_back", "run-2")
        assert everything(agent.node) == old
        assert applied(agent) == documents
        settled(agent)


def test_a_tool_that_outlives_a_killed_run_is_over_before_the_roll_back_begins(nft_agent: Agent, shims: Shims) -> None:
    agent = nft_agent
    old = prepare(agent)
    agent.armed()
    for name in ("iptables", "iptables-nft"):
        shims.add(name + "-restore", 'cat >"$HERE/input"; touch "$HERE/started"; sleep 2; "$REAL" "$@" <"$HERE/input"; '
                                     'touch "$HERE/done"')
    arguments = {**NEW, **agent.options, "guard": "run-1", "environment": shims.environment}
    group = start(lambda: agent.node.module(**arguments))
    end = time.monotonic() + 20
    while not (shims.folder / "started").exists():
        assert time.monotonic() < end
        time.sleep(0.01)
    # Only the run itself, not what it has started.
    for process in [*children(group), group]:
        os.kill(process, signal.SIGKILL)
    os.waitpid(group, 0)
    assert not (shims.folder / "done").exists()
    assert everything(agent.node) == old
    agent.ok("roll-back", "--run", "run-1")
    assert (shims.folder / "done").exists()
    assert everything(agent.node) == old
    settled(agent)


def children(process: int) -> list[int]:
    """The processes that one has started."""
    return [int(word) for word in Path(f"/proc/{process}/task/{process}/children").read_text().split()]
