# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules for Calico's state have in common: their arguments, and their part in a run."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils import agents
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.conntrack import FlowSelector
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.iptables import Iptables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Desired, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.reconcile import Hooks
from ansible_collections.metal.nodenet.plugins.module_utils.states import Manager, common_arguments

#: The family and whether its iptables knows --random-fully, to what should be and what a user should be told.
Wanted = Callable[[str, bool], "tuple[Desired, list[str]]"]
Stale = Callable[[Tables, Desired], list[FlowSelector]]

_PROGRAMS = ("calico-node", "calico-felix")


def calico_arguments() -> dict[str, dict[str, Any]]:
    """The argument spec that every module for Calico starts from; the fragment ``calico`` documents it."""
    return {
        **common_arguments(),
        "calico_version": {"type": "str", "default": "3.33"},
        "rule_hashes": {"type": "bool", "default": True},
        "insert_mode": {"type": "str", "choices": ["insert", "append"], "default": "insert"},
    }


def calico_manager(params: dict[str, Any], wanted: Wanted, nothing: Callable[[str], Desired],
                   stale: Stale = lambda _tables, _desired: []) -> Manager:
    """A module's part in a run, with the look-out for a Felix that does the same work."""
    warnings: list[str] = []

    def desired(family: str, tool: Iptables | None) -> Desired:
        state, found = wanted(family, tool is None or tool.random_fully)
        warnings.extend(found)
        return state

    def hooks() -> Hooks:
        found = opponents()
        if found and not params["takeover"]:
            warnings.append(_describe(found) + "; writing here would need takeover: true")
        return Hooks(refuse=lambda: _refuse(found, params["takeover"]), stale=stale)

    return Manager(desired, lambda family, _current: nothing(family), hooks, warnings)


def opponents() -> list[agents.Agent]:
    """Programs at work in this network namespace that write Calico's state."""
    found = agents.running(_PROGRAMS)
    if "calico" in agents.nft_tables():
        found.append(agents.Agent("Calico in nftables mode", "nftables table calico"))
    if "bpfin.cali" in agents.interfaces():
        found.append(agents.Agent("Calico's eBPF dataplane", "interface bpfin.cali"))
    return found


def _describe(found: list[agents.Agent]) -> str:
    return "Calico's state is looked after here by " + ", ".join(f"{one.name} ({one.sign})" for one in found)


def _refuse(found: list[agents.Agent], takeover: bool) -> None:
    if found and not takeover:
        raise NetfilterError(_describe(found) + "; it would undo what is written here. Stop it, or set takeover: true")
