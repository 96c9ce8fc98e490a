# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One writer at a time, whatever happens to the file that says so."""

from __future__ import annotations

import os
import shutil
import threading
import time
from pathlib import Path

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.node import lock
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import StateDir
from ansible_collections.metal.nodenet.plugins.module_utils.node.lock import LockedError, locked


def test_who_waited_while_the_directory_went_keeps_the_next_one_out(tmp_path: Path) -> None:
    state = StateDir(str(tmp_path / "state"))
    inside, go = threading.Event(), threading.Event()

    def wait_and_hold() -> None:
        with locked(state, "the one that waited", wait=30):
            inside.set()
            go.wait(30)

    waiting = threading.Thread(target=wait_and_hold)
    with locked(state, "the one that removes everything"):
        waiting.start()
        while not _opened_twice(state):
            time.sleep(0.01)
        shutil.rmtree(state.path)
    try:
        assert inside.wait(30)
        with pytest.raises(LockedError, match="the one that waited"), locked(state, "the next one", wait=0):
            pass
    finally:
        go.set()
        waiting.join(30)


def _opened_twice(state: StateDir) -> bool:
    paths = []
    for handle in os.listdir("/proc/self/fd"):
        try:
            paths.append(os.readlink(f"/proc/self/fd/{handle}"))
        except OSError:
            continue
    return paths.count(state.file("lock")) > 1


def test_a_full_disk_keeps_nobody_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_arguments: object) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(lock.os, "pwrite", full)
    with locked(StateDir(str(tmp_path / "state")), "a roll-back"):
        pass
