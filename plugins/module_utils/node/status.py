# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node remembers and what is armed on it."""

from __future__ import annotations

from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.node import guard
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import (
    APPLIED,
    PENDING,
    PREVIOUS,
    StateDir,
)


def status(state: StateDir) -> dict[str, Any]:
    """Names of documents, the guard that is armed, how the last one ended, and whether there is a way back."""
    armed = guard.read_armed(state)
    return {
        "guard": described(armed),
        "last": state.read_json(*guard.LAST),
        "written": state.there(*guard.WRITTEN),
        "unfinished": [name for name, path in (("confirmation", guard.CONFIRMED), ("return", guard.RETURNING))
                       if state.there(*path)],
        "applied": [name.partition(".")[0] for name in state.names(APPLIED)],
        "pending": [name.partition(".")[0] for name in state.names(PENDING)],
        "previous": state.there(PREVIOUS, "snapshot.json"),
    }


def described(armed: guard.Armed | None) -> dict[str, Any] | None:
    """A guard as modules return it; None where there is none."""
    if armed is None:
        return None
    return {"run_id": armed.run_id, "armed_since": guard.clock(armed.since), "deadline": guard.clock(armed.deadline),
            "timer": armed.timer, "controller": armed.controller}
