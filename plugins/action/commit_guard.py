# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of ``commit_guard``."""

from __future__ import annotations

from typing import Any

from ansible.plugins.connection import ConnectionBase
from ansible_collections.metal.nodenet.plugins.plugin_utils.agent_action import AgentAction, controller


class ActionModule(AgentAction):
    """Sends the agent that will roll back, and confirms over a connection that is made for it."""

    needs_agent = "armed"

    def before(self, state: str) -> None:
        """A connection that was open before the change says nothing about the node after it."""
        # A connection without a reset of its own is made anew for every command.
        can_reset = type(self._connection).reset is not ConnectionBase.reset
        if state == "confirmed" and can_reset and not self._task.check_mode:
            self._connection.reset()

    def arguments(self) -> dict[str, Any]:
        """The task's arguments, with the name of who arms."""
        return {"controller": controller(), **self._task.args}
