# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An old state and a new one, for a node that is guarded between them."""

from __future__ import annotations

from typing import Any

from ansible_collections.metal.nodenet.plugins.modules import calico_masq, floating_ip, kube_nat_chains

from support.agent import Agent
from support.builders import endpoint_slice, service
from support.calico import FLOATING, LOOPS, MASQ, MODULES, everything
from support.foreign import load_foreign

OLD: dict[str, Any] = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5")]}
NEW: dict[str, Any] = {"services": [service(), service(name="new", clusterIP="10.96.0.11")],
                       "endpoint_slices": [endpoint_slice("10.244.1.9", "10.244.2.9"),
                                           endpoint_slice("10.244.1.9", name="n", service_name="new")]}
OTHER_MASQ: dict[str, Any] = {"pools": [{"cidr": "10.250.0.0/16", "masquerade": True}]}
OTHER_FLOATING: dict[str, Any] = {"mappings": [{"external": "198.51.100.11", "internal": "10.244.1.6"}]}


def run(agent: Agent, module: Any = kube_nat_chains, guard: str | None = "run-1", **arguments: Any) -> dict[str, Any]:
    """A module's run under a guard, which must succeed."""
    under = {"guard": guard} if guard else {}
    result = agent.node.module(module=module, **agent.options, backend=agent.node.backend, **under, **arguments)
    assert not result.get("failed"), result["msg"]
    return result


def old_state(agent: Agent) -> dict[str, Any]:
    """The node with its old state in force and remembered."""
    load_foreign(agent.node)
    run(agent, **OLD, guard=None)
    run(agent, calico_masq, **MASQ, guard=None)
    run(agent, floating_ip, **FLOATING, guard=None)
    return everything(agent.node)


def new_state(agent: Agent) -> dict[str, Any]:
    """The same node changed under a guard."""
    run(agent, **NEW)
    run(agent, calico_masq, **OTHER_MASQ)
    run(agent, floating_ip, state="absent")
    for module, arguments in MODULES.items():
        if arguments is LOOPS:
            run(agent, module, **arguments)
    return everything(agent.node)
