# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node that remembers: its state directory, its agent, and guards on it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import StateDir
from ansible_collections.metal.nodenet.plugins.modules import commit_guard, node_agent
from ansible_collections.metal.nodenet.plugins.plugin_utils.agent_archive import agent_archive

from support.node import Node, Result

_SBIN = "/usr/local/sbin:/usr/sbin:/sbin"


class Agent:
    """The state directory ``folder/state`` of a node, and the agent that is sent to it."""

    def __init__(self, one: Node, folder: Path) -> None:
        self.node = one
        self.folder = folder / "state"
        self.state = StateDir(str(self.folder))
        data, self.sha256 = agent_archive()
        self.sent = folder / "sent.pyz"
        self.sent.write_bytes(data)
        #: For every module: remember, there.
        self.options: dict[str, Any] = {"state_dir": str(self.folder), "remember": True}

    def on(self, one: Node) -> Agent:
        """The same directory on another node: what a node is after a reboot."""
        return Agent(one, self.folder.parent)

    def run(self, *words: str, environment: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        """Run the agent as a unit would: with a Python that has nothing but its standard library."""
        return subprocess.run(
            ["ip", "netns", "exec", self.node.name, sys.executable, "-I", "-S", str(self.sent), "--state-dir",
             str(self.folder), *words], capture_output=True, text=True, check=False,
            env={**os.environ, "PATH": f"{os.environ['PATH']}:{_SBIN}", **(environment or {})})

    def ok(self, *words: str, environment: Mapping[str, str] | None = None) -> str:
        """The same, which must succeed; what it logged."""
        done = self.run(*words, environment=environment)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stderr

    def status(self) -> dict[str, Any]:
        """What the agent says of the node."""
        found: dict[str, Any] = json.loads(self.run("status").stdout)
        return found

    def install(self, check: bool = False, **arguments: Any) -> Result:
        """Run the module ``node_agent``."""
        return self.node.module(module=node_agent, check=check, state_dir=str(self.folder), agent=str(self.sent),
                                agent_sha256=self.sha256, **arguments)

    def guard(self, state: str, run_id: str | None = None, check: bool = False, **arguments: Any) -> Result:
        """Run the module ``commit_guard``."""
        arguments = {**({"run_id": run_id} if run_id else {}), **arguments}
        if state == "armed":
            arguments.update(agent=str(self.sent), agent_sha256=self.sha256)
        return self.node.module(module=commit_guard, check=check, state=state, state_dir=str(self.folder), **arguments)

    def armed(self, run_id: str = "run-1", **arguments: Any) -> Result:
        """Arm a guard, which must succeed."""
        result = self.guard("armed", run_id, **arguments)
        assert not result.get("failed"), result["msg"]
        return result

    def waiting(self) -> list[int]:
        """The processes that wait for a deadline of this directory."""
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    words = (entry / "cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if b"roll-back" in words and str(self.folder).encode() in words:
                    found.append(int(entry.name))
        return found

    def wait_until_disarmed(self, seconds: float = 60) -> None:
        """Until no guard is armed and no process waits any more."""
        end = time.monotonic() + seconds
        while (self.folder / "guard/armed.json").exists() or self.waiting():
            assert time.monotonic() < end, (self.folder / "guard.log").read_text()
            time.sleep(0.05)

    def files(self) -> dict[str, bytes]:
        """Every file that is part of what the node remembers, and its content."""
        return {str(path.relative_to(self.folder)): path.read_bytes() for path in sorted(self.folder.rglob("*"))
                if path.is_file() and path.name not in ("lock", "guard.log") and "agent" not in path.parts}
