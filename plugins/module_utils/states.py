# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options and states that all modules share; their documentation is the fragment ``netfilter``."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.apply import Target
from ansible_collections.metal.nodenet.plugins.module_utils.clock import Clock
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.backend import (
    AUTO,
    Handle,
    Tools,
    find_tools,
    node_families,
    open_family,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import BackendError, NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ipset import Ipset
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.iptables import BACKENDS, Iptables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, IPV4, Desired, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.set_plan import set_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.state_text import gathered, rendered, set_text
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import DEFAULT_PATH
from ansible_collections.metal.nodenet.plugins.module_utils.reconcile import Hooks, reconcile

#: The version of a tool.
Version = tuple[int, ...]

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
        "diff_limit": {"type": "int", "default": 5000},
        "state_dir": {"type": "path", "default": DEFAULT_PATH},
        "remember": {"type": "bool", "default": False},
        "guard": {"type": "str"},
        "expect_plan": {"type": "str"},
    }


class Manager(NamedTuple):
    """What a module brings: its desired state, its leftovers, its part in a run."""

    #: (family, its tools or None where there is no node) to the state that should be.
    desired: Callable[[str, Iptables | None], Desired]
    #: (family, what was read) to the state that has none of ours.
    nothing: Callable[[str, Tables], Desired]
    hooks: Callable[[], Hooks]
    #: What the module has found worth saying; grows during the run.
    warnings: Sequence[str]


class Recall(NamedTuple):
    """That the same question was asked before, and that nothing was to be done then."""

    #: Whether the rules are what they were then.
    same: Callable[[Sequence[Handle]], bool]
    warnings: list[str]


class Escort(NamedTuple):
    """Who wants to know how a run goes."""

    #: Called before the first write; raises to refuse it.
    before_write: Callable[[], None] = lambda: None
    #: Told what was read and what should be, before anything is written.
    planned: Callable[[Sequence[Target]], None] = lambda _targets: None
    #: What is known of an earlier run.
    recall: Recall | None = None
    #: Told the warnings of a run that found nothing to do.
    settled: Callable[[Sequence[str]], None] = lambda _warnings: None


ALONE = Escort()


def run(params: dict[str, Any], check_mode: bool, tables: Sequence[str], build: Callable[[dict[str, Any]], Manager],
        warn: Callable[[str], None], escort: Escort = ALONE) -> dict[str, Any]:
    """Carry out ``state`` and return the module's result; warnings go to ``warn``.

    Raises ``NetfilterError``, and what ``build`` raises for bad input.
    """
    check_numbers(params)
    if params["state"] == "rendered":
        manager = build(params)
        return _with_warnings(manager, [], warn, lambda _warnings: _rendered(params, manager))
    clock = Clock()
    warnings: list[str] = []
    with clock.phase("read"):
        tools = _find_tools(params, warnings)
    early: dict[tuple[str, Version], Desired] = {}
    if escort.recall:
        handles = _read_node(params, tools, tables, warnings, clock)
        if escort.recall.same(handles):
            for warning in dict.fromkeys([*escort.recall.warnings, *warnings]):
                warn(warning)
            return reconcile([], check_mode=True, verify=False, diff_limit=0, hooks=Hooks(), clock=clock).result()
        manager = _build(params, build, clock)
    else:
        with ThreadPoolExecutor(max_workers=1) as reader:
            # The save tool takes its time on a large node, and so does what can be done without its answer.
            reading = reader.submit(_read_node, params, tools, tables, warnings, clock)
            manager = _build(params, build, clock)
            early = _render_early(params, tools, manager, clock)
            handles = reading.result()
    return _with_warnings(manager, warnings, warn,
                          lambda found: _run(params, check_mode, manager, handles, early, found, clock, escort))


def check_numbers(params: dict[str, Any]) -> None:
    """Refuse numbers that options of several modules cannot be. Raises ``NetfilterError``."""
    if params["lock_timeout"] < 1:
        raise NetfilterError(f"lock_timeout: {params['lock_timeout']} is not a number of seconds from 1 on")
    if params["diff_limit"] < 0:
        raise NetfilterError(f"diff_limit: {params['diff_limit']} is not a number of lines")


def _build(params: dict[str, Any], build: Callable[[dict[str, Any]], Manager], clock: Clock) -> Manager:
    with clock.phase("input"):
        return build(params)


def _render_early(params: dict[str, Any], tools: Sequence[Tools], manager: Manager,
                  clock: Clock) -> dict[tuple[str, Version], Desired]:
    """What should be, by family and version, for the tools that will be used if the node holds no surprise."""
    if params["state"] != "present":
        return {}
    with clock.phase("render"):
        likely = [found.likely(params["backend"]) for found in tools]
        return {(tool.family, tool.version): manager.desired(tool.family, tool) for tool in likely}


def _with_warnings(manager: Manager, warnings: list[str], warn: Callable[[str], None],
                   action: Callable[[list[str]], dict[str, Any]]) -> dict[str, Any]:
    """Say what was found, whether the action succeeds or not."""
    try:
        return action(warnings)
    finally:
        for warning in dict.fromkeys([*manager.warnings, *warnings]):
            warn(warning)


def _read_node(params: dict[str, Any], tools: Sequence[Tools], tables: Sequence[str], warnings: list[str],
               clock: Clock) -> list[Handle]:
    """Read every family once, before anything is decided."""
    both = params["state"] != "present"
    with clock.phase("read"):
        handles = [handle for found in tools for handle in open_family(found, params["backend"], tables, both)]
    warnings += [notice for handle in handles for notice in handle.dump.notices]
    return handles


def _run(params: dict[str, Any], check_mode: bool, manager: Manager, handles: list[Handle],
         early: Mapping[tuple[str, Version], Desired], warnings: list[str], clock: Clock,
         escort: Escort) -> dict[str, Any]:
    if params["state"] == "gathered":
        return _gathered(handles, manager, clock)
    with clock.phase("render"):
        wanted = [early.get((handle.tool.family, handle.tool.version)) or _wanted(params["state"], handle, manager)
                  for handle in handles]
    with clock.phase("read"):
        targets = _targets(handles, wanted)
    escort.planned(targets)
    outcome = reconcile(targets, check_mode=check_mode, verify=params["verify"], diff_limit=params["diff_limit"],
                        hooks=manager.hooks(), clock=clock, expected=params.get("expect_plan"),
                        before_write=escort.before_write)
    warnings += outcome.warnings
    if not outcome.changed:
        escort.settled([*manager.warnings, *warnings])
    return outcome.result()


def _wanted(state: str, handle: Handle, manager: Manager) -> Desired:
    family = handle.tool.family
    return manager.desired(family, handle.tool) if state == "present" else manager.nothing(family, handle.dump.tables)


def _targets(handles: Sequence[Handle], wanted: Sequence[Desired]) -> list[Target]:
    """What was read with what should be. Sets know no backend: only the first handle of a family has them."""
    ipset = Ipset()
    targets: list[Target] = []
    for handle, desired in zip(handles, wanted):
        if any(target.desired.family == desired.family for target in targets):
            desired = desired._replace(sets=(), owned_sets=frozenset())
        target = Target(handle, desired, {}, ipset)
        targets.append(target._replace(sets=ipset.read(target.set_names, needed=bool(desired.sets))))
    return targets


def _rendered(params: dict[str, Any], manager: Manager) -> dict[str, Any]:
    states = [manager.desired(family, None) for family in params["families"] or FAMILIES]
    out: dict[str, Any] = {state.family: rendered(state) for state in states}
    sets = {one.name: set_text(one.name, one.type, set_family(state.family), one.maxelem, one.members)
            for state in states for one in state.sets}
    return {"changed": False, "rendered": {**out, "sets": sets} if sets else out}


def _gathered(handles: Sequence[Handle], manager: Manager, clock: Clock) -> dict[str, Any]:
    nothing = [manager.nothing(handle.tool.family, handle.dump.tables) for handle in handles]
    found: dict[str, Any] = {handle.label: gathered(handle.dump.tables, ours)
                             for handle, ours in zip(handles, nothing)}
    sets = {name: set_text(name, state.type, state.family, state.maxelem, state.members)
            for target in _targets(handles, nothing) for name, state in sorted(target.sets.items())}
    if sets:
        found["sets"] = sets
    return {"changed": False, "gathered": found, "timings": clock.timings}


def _find_tools(params: dict[str, Any], warnings: list[str]) -> list[Tools]:
    found: list[Tools] = []
    for family in dict.fromkeys(params["families"] or _default_families(params["state"])):
        try:
            found.append(find_tools(family, params["backend"], params["lock_timeout"]))
        except BackendError as error:
            if params["families"] or family == IPV4 or not error.missing:
                raise
            # As kube-proxy: without ip6tables a node is a node of one family.
            warnings.append(f"{error}; this node is treated as one without IPv6")
    return found


def _default_families(state: str) -> tuple[str, ...]:
    """The families that are switched on; for removal and reading also one that was switched off since."""
    return node_families() if state == "present" else node_families(even_if_disabled=True)
