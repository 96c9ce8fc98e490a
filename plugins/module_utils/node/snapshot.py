# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A picture of everything of ours on a node, and the way back to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.apply import Planned, Target, take_back
from ansible_collections.metal.nodenet.plugins.module_utils.calico import names as calico_names
from ansible_collections.metal.nodenet.plugins.module_utils.calico import stale as calico_stale
from ansible_collections.metal.nodenet.plugins.module_utils.kube import stale as kube_stale
from ansible_collections.metal.nodenet.plugins.module_utils.managers import MANAGERS
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.addresses import local_addresses
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.backend import (
    AUTO,
    Handle,
    find_tools,
    node_families,
    open_family,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.conntrack import (
    FlowSelector,
    delete_flows,
    find_flows,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.difference import differences, set_differences
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import (
    BackendError,
    FlowError,
    NetfilterError,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ipset import Ipset, SetState
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    IPV4,
    Desired,
    Table,
    TableDesired,
    Tables,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.set_plan import SetChange, undo_sets
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.undo import undo
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import StateError
from ansible_collections.metal.nodenet.plugins.module_utils.node.ours import TABLES, Ours

VERSION = 1
LOCK_TIMEOUT = 30

Log = Callable[[str], None]


class Step(NamedTuple):
    """One family on one backend: what is to be undone, and what that would be right now."""

    item: Planned
    back: FamilyPlan
    sets: list[SetChange]
    selectors: list[FlowSelector]


def take(lock_timeout: int = LOCK_TIMEOUT) -> dict[str, Any]:
    """Everything of ours as the node has it now, as JSON can hold it. Raises ``NetfilterError``."""
    families: dict[str, Any] = {}
    ipset = Ipset()
    for family in node_families(even_if_disabled=True):
        ours = Ours(family)
        handles = _open(family, AUTO, lock_timeout)
        families[family] = {
            "backends": {handle.tool.backend: _dumped(ours.relevant(handle.dump.tables)) for handle in handles},
            "sets": {name: _set(state) for name, state in ipset.read(sorted(ours.sets), needed=False).items()},
        }
    return {"version": VERSION, "families": families}


def steps_to(snapshot: Mapping[str, Any], where: str, modules: Sequence[str], lock_timeout: int = LOCK_TIMEOUT,
             restarted: bool = False) -> list[Step]:
    """What it takes for the node to have that again; reads the node, writes nothing.

    ``where``: the snapshot's file. ``modules``: those that have written; what others own stays as it is now, for
    kube-proxy or Felix may look after it. ``restarted``: the node may have lost everything, so what nobody has made
    again since comes back, too. Raises ``StateError`` where something is damaged, ``NetfilterError`` where
    the node cannot be read.
    """
    families = _parsed(snapshot, where)
    unknown = [name for name in modules if name not in MANAGERS]
    if unknown:
        raise StateError(f"{where}: another release wrote it: there is no module {', '.join(unknown)} here")
    return [step for family in dict.fromkeys((*families, *node_families(even_if_disabled=True)))
            for step in _family(family, modules, *families.get(family, ({}, {})), lock_timeout, restarted)]


def _family(family: str, modules: Sequence[str], backends: Mapping[str, Tables], sets: Mapping[str, SetState],
            lock_timeout: int, restarted: bool) -> Iterator[Step]:
    ipset = Ipset()
    handles = {handle.tool.backend: handle for handle in _open(family, AUTO, lock_timeout)}
    if restarted:
        modules = [name for name in MANAGERS
                   if name in modules or not _there(Ours(family, (name,)), handles.values(), ipset)]
    ours = Ours(family, modules)
    for backend, tables in backends.items():
        if backend not in handles and any(ours.chains(tables).values()):
            handles.update({one.tool.backend: one for one in _open(family, backend, lock_timeout)})
            if backend not in handles:
                raise BackendError(f"{family}: the state was in backend {backend}, which this node does not have")
    everything = [*backends.values(), *(handle.dump.tables for handle in handles.values())]
    changes = ours.set_changes(sets, everything)
    # What goes makes room for what comes back. Sets know no backend: they come before all rules and go after them.
    ordered = sorted(handles.values(), key=lambda one: one.tool.backend in backends)
    for handle in ordered:
        here = [change for change in changes
                if handle is (ordered[0] if change.before is not None else ordered[-1])]
        yield _step(ours, handle, backends.get(handle.tool.backend, {}), handle.dump.tables, here, ipset)


def _there(ours: Ours, handles: Iterable[Handle], ipset: Ipset) -> bool:
    """Whether the node has any chain or set of these."""
    return (any(chains for handle in handles for chains in ours.chains(handle.dump.tables).values())
            or bool(ipset.read(sorted(ours.sets), needed=False)))


def _step(ours: Ours, handle: Handle, before: Tables, now: Tables, changes: list[SetChange], ipset: Ipset) -> Step:
    plan = ours.way_back(before, now)
    tables = {name: TableDesired({}, (), lambda _chain: False) for name in TABLES}
    found = ipset.read((change.name for change in changes), needed=any(change.before for change in changes))
    # A node without the tool has none of these, and needs it for none.
    changes = [change for change in changes if change.before is not None or change.name in found]
    target = Target(handle, Desired(ours.family, tables), found, ipset)
    back = undo(plan, now)
    return Step(Planned(target, plan, changes), back, undo_sets(changes, found),
                _stale(ours, now, before) if back else [])


def _stale(ours: Ours, now: Tables, before: Tables) -> list[FlowSelector]:
    old, new = ours.chains(now), ours.chains(before)
    fip = calico_names.FIP_DNAT
    return [*kube_stale.between(old, new, ours.family, local_addresses()),
            *calico_stale.between(old.get("nat", {}).get(fip, ()), new.get("nat", {}).get(fip, ()), ours.family)]


def differs(step: Step) -> bool:
    """Whether a step has anything to do."""
    return bool(step.back) or bool(step.sets)


def difference(steps: Sequence[Step], limit: int) -> list[dict[str, str]]:
    """What the steps would change, as modules show it."""
    return [entry for step in steps for entry in (
        *set_differences(step.sets, step.item.target.handle.label, limit),
        *differences(step.back, {}, step.item.target.handle.label, limit))]


def carry_out(steps: Sequence[Step], log: Log) -> list[str]:
    """Go the way back; what was written. All steps are tried; raises ``NetfilterError`` that says what is left."""
    written: list[str] = []
    failures: list[str] = []
    for step in steps:
        label = step.item.target.handle.label
        if not differs(step):
            continue
        notes: list[str] = []
        try:
            written += take_back(step.item, notes)
        except NetfilterError as error:
            failures.append(f"{label}: {error}. Left: {_left(step)}")
        for note in notes:
            log(f"{label}: {note}")
    if failures:
        raise NetfilterError("the old state is NOT all back: " + "; ".join(failures))
    try:
        gone = delete_flows(find_flows([selector for step in steps for selector in step.selectors]))
        if gone:
            log(f"{gone} stale flows deleted")
    except FlowError as error:
        log(f"warning: {error}")
    return written


def _left(step: Step) -> str:
    """What still differs, as far as that can be read."""
    target = step.item.target
    try:
        back = undo(step.item.plan, target.handle.tool.save(TABLES).tables)
        sets = undo_sets(step.item.sets, target.ipset.read(change.name for change in step.item.sets))
    except NetfilterError as error:
        return f"unknown, the node cannot be read: {error}"
    names = [f"{table.table} {name}" for table in back.tables for name in (
        *(write.chain.name for write in table.writes), *table.removals, *(edit.parent for edit in table.parents))]
    names += [f"set {change.name}" for change in sets]
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "") if names else "nothing"


def _open(family: str, backend: str, lock_timeout: int) -> list[Handle]:
    try:
        return open_family(find_tools(family, backend, lock_timeout), backend, TABLES, both=True)
    except BackendError as error:
        if family == IPV4 or not error.missing:
            raise
        return []


def _dumped(tables: Tables) -> dict[str, Any]:
    return {name: {"chains": table.chains, "policies": table.policies} for name, table in tables.items()
            if table.chains}


def _set(state: SetState) -> dict[str, Any]:
    return {**state._asdict(), "members": sorted(state.members)}


def _parsed(snapshot: Mapping[str, Any], where: str) -> dict[str, tuple[dict[str, Tables], dict[str, SetState]]]:
    if snapshot.get("version") != VERSION:
        raise StateError(f"{where}: version {snapshot.get('version')!r} is not {VERSION}: another release wrote it")
    try:
        return {family: (
            {backend: {name: Table(dict(table["chains"]), dict(table["policies"])) for name, table in tables.items()}
             for backend, tables in content["backends"].items()},
            {name: SetState(**{**state, "members": frozenset(state["members"])})
             for name, state in content["sets"].items()},
        ) for family, content in snapshot["families"].items()}
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StateError(f"{where} is damaged: {error!r}") from None
