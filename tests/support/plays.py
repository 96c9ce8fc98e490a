# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of ansible-playbook over test nodes, each a host with a state directory of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from support.node import Node

Done = subprocess.CompletedProcess[str]


def state_dir(folder: Path, host: str) -> Path:
    """Where a host of a run in ``folder`` keeps its state: namespaces share the files of the machine."""
    return folder / "state" / host


def run_plays(folder: Path, plays: Sequence[dict[str, Any]], nodes: Mapping[str, Node], *flags: str,
              environment: Mapping[str, str] | None = None, **variables: Any) -> Done:
    """Run plays over nodes, by their names as hosts. ``variables`` are extra variables."""
    (folder / "playbook.yml").write_text(yaml.safe_dump(
        [{"gather_facts": False, "module_defaults": {"group/metal.nodenet.nodenet": {
            "state_dir": "{{ test_state_dir }}"}}, **play} for play in plays]))
    (folder / "inventory.yml").write_text(yaml.safe_dump({"all": {"hosts": {
        name: {"ansible_connection": "metal.nodenet.netns", "ansible_netns_name": node.name,
               "ansible_python_interpreter": sys.executable, "test_state_dir": str(state_dir(folder, name))}
        for name, node in nodes.items()}}}))
    return subprocess.run(
        [sys.executable, "-m", "ansible", "playbook", "-i", str(folder / "inventory.yml"), "-e", json.dumps(variables),
         *flags, str(folder / "playbook.yml")],
        capture_output=True, text=True, check=False, cwd=folder, env={**os.environ, **(environment or {})})


def changed(done: Done) -> dict[str, int]:
    """How many tasks changed something, by host. Fails the test if the run failed."""
    assert done.returncode == 0, done.stdout + done.stderr
    return {host: int(count) for host, count in re.findall(r"(?m)^(\S+) +: ok=\d+ +changed=(\d+)", done.stdout)}


def failure(done: Done) -> str:
    """Everything that a failed run said, in one line."""
    assert done.returncode != 0, done.stdout
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return re.sub(r"\s+", " ", done.stdout + done.stderr)
