# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing that hostile texts ask for may run; and a long run says at its end how much of it there was."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fuzz.budget import LONG, counts
from fuzz.hostile import MARKER

#: The files that commands in hostile texts make.
_MADE = (MARKER, "x", "y")


@pytest.fixture(autouse=True)
def _nothing_runs(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Each test has a working directory of its own, and no command of a hostile text made a file there."""
    folder = tmp_path_factory.mktemp("nothing-runs")
    monkeypatch.chdir(folder)
    yield
    assert [name for name in _MADE if (folder / name).exists()] == []


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The number of examples, by property."""
    if not LONG or not counts:
        return
    terminalreporter.section("examples")
    for name, number in sorted(counts.items()):
        terminalreporter.write_line(f"{number:>8}  {name}")
    terminalreporter.write_line(f"{sum(counts.values()):>8}  in all")
