# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes that only have the name of an agent: enough to be taken for one."""

from __future__ import annotations

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.node import Node


@contextmanager
def running(name: str, one: Node, folder: Path) -> Iterator[None]:
    """A process called ``name`` in the node's namespace."""
    program = folder / name
    shutil.copy(shutil.which("sleep") or "", program)
    process = subprocess.Popen(["ip", "netns", "exec", one.name, str(program), "600"])
    try:
        command = Path(f"/proc/{process.pid}/comm")
        deadline = time.monotonic() + 10
        while command.read_text().strip() != name:
            assert time.monotonic() < deadline, f"{name} did not start"
            time.sleep(0.01)
        yield
    finally:
        process.kill()
        process.wait()
