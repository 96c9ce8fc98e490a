# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a guard asks of systemd. That systemd does it is shown on containers, by the scenario commit_confirm."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.node import timer
from support.agent import Agent
from support.guarded import NEW, OLD, run
from support.shims import Shims


@pytest.fixture
def units(tmp_path: Path, shims: Shims, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for units, and tools of systemd that only write down what they are asked."""
    for name in ("systemd-run", "systemctl"):
        (shims.folder / name).write_text(f'#!/bin/sh\necho "{name} $@" >>{shims.folder}/log\n')
        (shims.folder / name).chmod(0o755)
    monkeypatch.setattr(timer, "_UNITS", str(tmp_path / "units"))
    monkeypatch.setattr(timer, "kind", lambda: timer.SYSTEMD)
    return tmp_path / "units"


@pytest.mark.parametrize("end", ["confirmed", "rolled_back"])
def test_a_timer_and_a_boot_unit_as_long_as_the_guard_is_armed(nft_agent: Agent, shims: Shims, units: Path,
                                                               end: str) -> None:
    run(nft_agent, **OLD, guard=None)
    assert nft_agent.armed(timeout=90, environment=shims.environment)["guard"]["timer"] == "systemd"
    started = shims.log("log")[0]
    for word in ("systemd-run --unit=nodenet-guard-run-1 ", "--on-active=90 ", "AccuracySec=1s ", "/agent/",
                 "roll-back --run run-1"):
        assert word in started
    text = (units / "nodenet-guard.service").read_text()
    assert f"ConditionPathExists={nft_agent.folder}/guard/armed.json\n" in text
    assert "Before=kubelet.service\n" in text
    assert f"--state-dir {nft_agent.folder} restore\n" in text
    assert (units / "multi-user.target.wants/nodenet-guard.service").resolve() == units / "nodenet-guard.service"
    run(nft_agent, **NEW)
    result = nft_agent.guard(end, "run-1", environment=shims.environment)
    assert not result.get("failed"), result["msg"]
    assert shims.log("log")[1:] == ["systemctl stop nodenet-guard-run-1.timer"]
    assert not [path for path in units.rglob("*") if not path.is_dir()]
    assert nft_agent.waiting() == []


def test_a_boot_unit_of_another_directory_stays(nft_agent: Agent, shims: Shims, units: Path) -> None:
    units.mkdir()
    (units / "nodenet-guard.service").write_text("ExecStart=/usr/bin/python3 x.pyz --state-dir /srv/other restore\n")
    nft_agent.install()
    assert nft_agent.install(state="absent", environment=shims.environment)["changed"]
    assert (units / "nodenet-guard.service").exists()


def test_a_timer_that_does_not_start_is_no_guard(nft_agent: Agent, shims: Shims, units: Path) -> None:
    (shims.folder / "systemd-run").write_text("#!/bin/sh\necho no bus >&2\nexit 1\n")
    result = nft_agent.guard("armed", "run-1", environment=shims.environment)
    assert result["failed"]
    assert "no bus" in result["msg"]
    assert nft_agent.status()["guard"] is None
    assert not (nft_agent.folder / "guard/snapshot.json").exists()
    assert not [path for path in units.rglob("*") if not path.is_dir()]
