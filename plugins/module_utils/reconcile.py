# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Read, plan, show, apply, verify, undo: one order for every module.

Both families are read and planned before either is written. After writing (``apply.py``), the kernel is read again and
must have become what was planned; if not, or if a write fails, everything that was written is undone and the failure
says what happened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.apply import Planned, ReconcileError, Target, apply_all
from ansible_collections.metal.nodenet.plugins.module_utils.clock import Clock
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.conntrack import (
    FlowSelector,
    delete_flows,
    find_flows,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.difference import differences, set_differences
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import FlowError, NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Desired, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import counts, plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan_hash import plan_hash
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.set_plan import count_members, plan_sets, release


class Hooks(NamedTuple):
    """What a module adds to the run."""

    #: Called before the first write; raises to refuse it.
    refuse: Callable[[], None] = lambda: None
    #: (what was read, desired) to the flows that are stale then. Only asked where anything changes.
    stale: Callable[[Tables, Desired], list[FlowSelector]] = lambda _tables, _desired: []
    #: Names, for people, of chains that go: from name to rules, to name to title.
    titles: Callable[[Mapping[str, Sequence[str]]], dict[str, str]] = lambda _removals: {}


class Outcome(NamedTuple):
    """What a run found and did; ``result()`` has it in the form of a module's result."""

    changed: bool
    diff: list[dict[str, str]]
    plan: dict[str, dict[str, int]]
    #: Stands for the whole plan, ``""`` where nothing changes.
    plan_sha256: str
    stale_flows: list[dict[str, Any]]
    warnings: list[str]
    timings: dict[str, float]

    def result(self) -> dict[str, Any]:
        """As keyword arguments for ``exit_json``; warnings go their own way."""
        return {name: value for name, value in self._asdict().items() if name != "warnings"}


def reconcile(targets: Sequence[Target], *, check_mode: bool, verify: bool, diff_limit: int, hooks: Hooks,
              clock: Clock, expected: str | None = None, before_write: Callable[[], None] = lambda: None) -> Outcome:
    """Bring the node to the desired state, or only say what that would take.

    ``expected``: the only plan, by its hash, that may be carried out. ``before_write``: called as the last thing before
    the first write; it may refuse, too.

    Raises ``NetfilterError`` before anything is written, ``ReconcileError`` after; the old state is back then, or the
    message says what is not.
    """
    with clock.phase("plan"):
        warnings: list[str] = []
        planned = [_plan(target, warnings) for target in targets]
        changed = any(planned)
        if changed and expected is not None and _hash(planned) != expected:
            raise NetfilterError("expect_plan: the node or the input has changed since the plan "
                                 f"{expected or '(nothing to change)'}: this run would be {_hash(planned)}. Nothing "
                                 "was written; plan again and look at the difference")
        selectors = [selector for item in planned if changed
                     for selector in hooks.stale(item.target.handle.dump.tables, item.target.desired)]
    with clock.phase("flows"):
        # Before anything is written: a table of flows that cannot be read must not be found out half-way.
        flows = find_flows(selectors)

    def outcome() -> Outcome:
        with clock.phase("difference"):
            diff = [entry for item in planned if item for entry in _differences(item, hooks, diff_limit)]
            totals = {**counts([item.plan for item in planned]),
                      "set_members": count_members([change for item in planned for change in item.sets]),
                      "flows": {"added": 0, "changed": 0, "removed": len(flows)}}
            return Outcome(changed, diff, totals, _hash(planned), [_shown(selector) for selector in selectors],
                           warnings, clock.timings)

    if check_mode or not changed:
        return outcome()
    hooks.refuse()
    before_write()
    written = apply_all([item for item in planned if item], verify, clock, outcome, exactly=expected is not None)
    with clock.phase("flows"):
        _clean(selectors)
    return written


def _hash(planned: Sequence[Planned]) -> str:
    return plan_hash([(item.target.handle.label, item.plan, item.sets) for item in planned])


def _plan(target: Target, warnings: list[str]) -> Planned:
    plan = plan_family(target.handle.dump.tables, target.desired)
    warnings += plan.warnings
    warnings += [f"set {name} cannot be read and is built anew: {state.unreadable}"
                 for name, state in target.sets.items() if state.unreadable]
    return Planned(target, plan, release(plan_sets(target.sets, target.desired), plan, warnings))


def _differences(item: Planned, hooks: Hooks, limit: int) -> list[dict[str, str]]:
    label = item.target.handle.label
    going = {name: rules for table in item.plan.tables for name, rules in table.removals.items()}
    titles = {} if 0 < limit < len(going) else hooks.titles(going)
    return [*set_differences(item.sets, label, limit), *differences(item.plan, titles, label, limit)]


def _shown(selector: FlowSelector) -> dict[str, Any]:
    return {"family": selector.family, "protocol": selector.protocol_name, "destinations": sorted(selector.addresses),
            "port": selector.port, "service": selector.service, "reason": selector.reason,
            "kept_endpoints": sorted(_endpoint(ip, port) for ip, port in selector.keep)}


def _endpoint(ip: str, port: int) -> str:
    if not port:
        return ip
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def _clean(selectors: Sequence[FlowSelector]) -> None:
    try:
        # Asked again: flows came and went since the plan, and until now packets could still make stale ones.
        delete_flows(find_flows(selectors))
    except FlowError as error:
        details = {"changed": True, "rolled_back": False, "stale_flows": [_shown(selector) for selector in selectors]}
        raise ReconcileError(f"the rules are in place and stay, but {error}; delete the flows that stale_flows lists "
                             "by hand, for a later run may not see them", details) from None
