# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What on a node belongs to the collection, whichever module wrote it, and the way back to a snapshot of it.

That is a plan which was never carried out, for the engine to undo (``undo.py``): it restores what is ours as it was and
leaves alone what others wrote meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.calico import names as calico_names
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import split_id
from ansible_collections.metal.nodenet.plugins.module_utils.kube.names import FIREWALL, MARK_DROP
from ansible_collections.metal.nodenet.plugins.module_utils.kube.nat import KUBELET_CHAINS
from ansible_collections.metal.nodenet.plugins.module_utils.managers import MANAGERS
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ipset import SetState
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    Chain,
    SharedChain,
    Table,
    TableDesired,
    Tables,
    Units,
    target_of,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import (
    EMPTY_TABLE,
    ChainWrite,
    FamilyPlan,
    ParentEdit,
    TablePlan,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.set_plan import SetChange

#: The tables that any module has chains in.
TABLES = tuple(dict.fromkeys(table for part in MANAGERS.values() for table in part.tables))

#: Chains that a kubelet has, too, and what of their rules may be ours.
_SHARED_WITH_KUBELET = (FIREWALL, MARK_DROP)
_OUR_PARTS = ('"block incoming localnet connections"', '"kubernetes firewall for dropping marked packets"',
              "-j MARK --set-xmark 0x8000/0x8000")


class _Shared(NamedTuple):
    """A shared chain and the ranks of all our entries in it."""

    chain: SharedChain
    ranks: frozenset[int]

    def ours(self, rules: Sequence[str]) -> list[str]:
        """Our entries among the rules."""
        return [rule for rule in rules if self.chain.rank_of(rule) in self.ranks]


class Ours:
    """What is ours in one family: all modules', or only what some of them own."""

    def __init__(self, family: str, modules: Collection[str] = tuple(MANAGERS)) -> None:
        self.family = family
        nothing = [part.nothing(family) for name, part in MANAGERS.items() if name in modules]
        self._tables: dict[str, list[TableDesired]] = {table: [] for table in TABLES}
        for state in nothing:
            for table, wanted in state.tables.items():
                self._tables[table].append(wanted)
        self.sets = frozenset(name for state in nothing for name in state.owned_sets)
        self._all_hosts = calico_names.set_name(family, calico_names.ALL_HOSTS)

    def relevant(self, tables: Tables) -> Tables:
        """What a snapshot must hold: our chains, and those that our rules may stand in."""
        out = {}
        for name in TABLES:
            table = tables.get(name, EMPTY_TABLE)
            shared = self._shared(name)
            out[name] = Table({chain: rules for chain, rules in table.chains.items()
                               if chain in table.policies or chain in shared or self._owns(name, chain)},
                              table.policies)
        return out

    def way_back(self, before: Tables, now: Tables) -> FamilyPlan:
        """The plan to undo, for what is ours to become what it was ``before``."""
        kubelet = any(chain in table.chains for tables in (before, now) for table in tables.values()
                      for chain in KUBELET_CHAINS)
        return FamilyPlan(self.family, [
            self._table(name, before.get(name, EMPTY_TABLE), now.get(name, EMPTY_TABLE), kubelet)
            for name in TABLES], [])

    def set_changes(self, before: Mapping[str, SetState], chains: Sequence[Tables]) -> list[SetChange]:
        """The changes of sets to undo. ``chains``: the state before and now, which tell whose the set of hosts is."""
        return [SetChange(name, before.get(name), None, "swap") for name in sorted(self.sets)
                if name != self._all_hosts or self._mentions(name, chains)]

    def chains(self, tables: Tables) -> dict[str, dict[str, list[str]]]:
        """Our chains by table."""
        return {name: {chain: rules for chain, rules in table.chains.items() if self._owns(name, chain)}
                for name, table in tables.items() if name in self._tables}

    def _owns(self, table: str, chain: str) -> bool:
        return any(wanted.owns(chain) for wanted in self._tables[table])

    def _shared(self, table: str) -> dict[str, _Shared]:
        found: dict[str, _Shared] = {}
        for wanted in self._tables[table]:
            for shared in wanted.shared:
                known = found.get(shared.name)
                found[shared.name] = _Shared(shared, shared.ranks | (known.ranks if known else frozenset()))
        return found

    def _mentions(self, name: str, chains: Sequence[Tables]) -> bool:
        words = f"--match-set {name} "
        return any(words in rule for tables in chains for table in self.chains(tables).values()
                   for rules in table.values() for rule in rules)

    def _table(self, name: str, before: Table, now: Table, kubelet: bool) -> TablePlan:
        old: dict[str, Sequence[str]] = {chain: rules for chain, rules in before.chains.items()
                                         if self._owns(name, chain)}
        new = [chain for chain, rules in now.chains.items() if self._owns(name, chain) and chain not in old
               and not (kubelet and chain in _SHARED_WITH_KUBELET and not _all_ours(rules))]
        writes = [ChainWrite(Chain(chain), None) for chain in new]
        leads = {*old, *new, *(chain for wanted in self._tables[name] for chain in wanted.entries)}
        if kubelet:
            leads -= {chain for chain in _SHARED_WITH_KUBELET if chain not in old and chain not in new}
        edits = []
        for shared in self._shared(name).values():
            found = self._shared_chain(shared, before, now)
            if found is None:
                continue
            leads.add(shared.chain.name)
            if isinstance(found, ParentEdit):
                edits.append(found)
            elif found:
                old[shared.chain.name] = found
            else:
                writes.append(ChainWrite(Chain(shared.chain.name), None))
        edits += self._parents(before, now, leads)
        return TablePlan(name, writes, old, edits, self._units(name))

    def _units(self, table: str) -> Units:
        parts = [wanted.units for wanted in self._tables[table]]
        return lambda chains: {chain: unit for units in parts for chain, unit in units(chains).items()}

    def _parents(self, before: Table, now: Table, leads: set[str]) -> Iterator[ParentEdit]:
        for parent in dict.fromkeys((*before.policies, *now.policies)):
            rules = before.chains.get(parent, [])
            going = frozenset(rule for rule in (*rules, *now.chains.get(parent, ())) if target_of(rule) in leads)
            if going:
                yield ParentEdit(parent, rules, rules, going)

    def _shared_chain(self, shared: _Shared, before: Table, now: Table) -> ParentEdit | list[str] | None:
        """How a shared chain gets back: entries in it, the whole of it (empty: it goes), or None: it is not ours."""
        name = shared.chain.name
        old, new = before.chains.get(name), now.chains.get(name)
        old_ours, new_ours = shared.ours(old or ()), shared.ours(new or ())
        if not old_ours and not new_ours:
            return None
        if new is None:
            # Entries of others lead to chains that may be gone, too: whose they are makes them again.
            return list(old or ()) if len(old_ours) == len(old or ()) else shared.chain.stamp(old_ours)
        if old is None:
            others = [rule for rule in new if rule not in new_ours]
            return ParentEdit(name, others, others, frozenset(new_ours)) if others else []
        return ParentEdit(name, old, old, frozenset((*old_ours, *new_ours, *_restamped(old, new))))


def _restamped(old: Sequence[str], new: Sequence[str]) -> Iterator[str]:
    """Rules of others that differ in nothing but the id that our own entries changed."""
    bare_old, bare_new = {split_id(rule)[0] for rule in old}, {split_id(rule)[0] for rule in new}
    yield from (rule for rule in new if rule not in old and split_id(rule)[0] in bare_old)
    yield from (rule for rule in old if rule not in new and split_id(rule)[0] in bare_new)


def _all_ours(rules: Sequence[str]) -> bool:
    return all(any(part in rule for part in _OUR_PARTS) for rule in rules)
