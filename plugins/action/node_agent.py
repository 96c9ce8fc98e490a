# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of ``node_agent``."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.plugin_utils.agent_action import AgentAction


class ActionModule(AgentAction):
    """Sends the agent that is to be installed."""

    needs_agent = "present"
    default_state = "present"
