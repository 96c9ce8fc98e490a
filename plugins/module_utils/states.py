# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options and states that all modules share; their documentation is the fragment ``netfilter``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.backend import (
    AUTO,
    Handle,
    node_families,
    open_family,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import BackendError, NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.iptables import BACKENDS, Iptables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, IPV4, Desired, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.snapshot import gathered, rendered
from ansible_collections.metal.nodenet.plugins.module_utils.reconcile import Clock, Hooks, Target, reconcile

STATES = ("present", "absent", "rendered", "gathered")


def common_arguments() -> dict[str, dict[str, Any]]:
    """The argument spec that every module starts from."""
    return {
        "state": {"type": "str", "choices": list(STATES), "default": "present"},
        "families": {"type": "list", "elements": "str", "choices": list(FAMILIES)},
        "backend": {"type": "str", "choices": [AUTO, *BACKENDS], "default": AUTO},
        "lock_timeout": {"type": "int", "default": 10},
        "takeover": {"type": "bool", "default": False},
        "verify": {"type": "bool", "default": True},
    }


class Manager(NamedTuple):
    """What a module brings: its tables, its desired state, its leftovers, its part in a run."""

    tables: Sequence[str]
    #: (family, its tools or None where there is no node) to the state that should be.
    desired: Callable[[str, Iptables | None], Desired]
    #: (family, what was read) to the state that has none of ours.
    nothing: Callable[[str, Tables], Desired]
    hooks: Callable[[], Hooks]
    #: What the module has found worth saying; grows during the run.
    warnings: Sequence[str]


def run(params: dict[str, Any], check_mode: bool, manager: Manager, warn: Callable[[str], None]) -> dict[str, Any]:
    """Carry out ``state`` and return the module's result; warnings go to ``warn``. Raises ``NetfilterError``."""
    warnings: list[str] = []
    try:
        return _run(params, check_mode, manager, warnings)
    finally:
        for warning in dict.fromkeys([*manager.warnings, *warnings]):
            warn(warning)


def _run(params: dict[str, Any], check_mode: bool, manager: Manager, warnings: list[str]) -> dict[str, Any]:
    if params["lock_timeout"] < 1:
        raise NetfilterError(f"lock_timeout: {params['lock_timeout']} is not a number of seconds from 1 on")
    if params["state"] == "rendered":
        return _rendered(params, manager)
    clock = Clock()
    with clock.phase("read"):
        handles = _open(params, manager.tables, warnings)
    warnings += [notice for handle in handles for notice in handle.dump.notices]
    if params["state"] == "gathered":
        return _gathered(handles, manager, clock)
    with clock.phase("render"):
        targets = [Target(handle, _wanted(params["state"], handle, manager)) for handle in handles]
    outcome = reconcile(targets, check_mode=check_mode, verify=params["verify"], hooks=manager.hooks(), clock=clock)
    warnings += outcome.warnings
    return outcome.result()


def _wanted(state: str, handle: Handle, manager: Manager) -> Desired:
    family = handle.tool.family
    return manager.desired(family, handle.tool) if state == "present" else manager.nothing(family, handle.dump.tables)


def _rendered(params: dict[str, Any], manager: Manager) -> dict[str, Any]:
    families = params["families"] or FAMILIES
    return {"changed": False,
            "rendered": {family: rendered(manager.desired(family, None)) for family in families}}


def _gathered(handles: Sequence[Handle], manager: Manager, clock: Clock) -> dict[str, Any]:
    found = {handle.label: gathered(handle.dump.tables, manager.nothing(handle.tool.family, handle.dump.tables))
             for handle in handles}
    return {"changed": False, "gathered": found, "timings": clock.timings}


def _open(params: dict[str, Any], tables: Sequence[str], warnings: list[str]) -> list[Handle]:
    """Read every family once, before anything is decided."""
    handles: list[Handle] = []
    both = params["state"] != "present"
    for family in params["families"] or _default_families(params["state"]):
        try:
            handles += open_family(family, params["backend"], tables, params["lock_timeout"], both)
        except BackendError as error:
            if params["families"] or family == IPV4 or not error.missing:
                raise
            # As kube-proxy: without ip6tables a node is a node of one family.
            warnings.append(f"{error}; this node is treated as one without IPv6")
    return handles


def _default_families(state: str) -> tuple[str, ...]:
    """The families that are switched on; for removal and reading also one that was switched off since."""
    return node_families() if state == "present" else node_families(even_if_disabled=True)
