# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Says at the end of a long run how much of it there was."""

from __future__ import annotations

from typing import Any

from fuzz.budget import LONG, counts


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The number of examples, by property."""
    if not LONG or not counts:
        return
    terminalreporter.section("examples")
    for name, number in sorted(counts.items()):
        terminalreporter.write_line(f"{number:>8}  {name}")
    terminalreporter.write_line(f"{sum(counts.values()):>8}  in all")
