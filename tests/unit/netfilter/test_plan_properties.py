# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plan, transactions and undo on any state of a node. The kernel model refuses what a kernel would refuse."""

from __future__ import annotations

from collections import Counter

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain, Table, TableDesired, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan, plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.undo import undo
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from support.kernel_model import BUILT_IN, Kernel, ModelError, reachable, target
from unit.netfilter.states import ENTRIES, World, kernel, our_name, saved, steps, worlds

MANY = settings(max_examples=400)


def applied(world: World) -> tuple[Tables, FamilyPlan]:
    """The node after the plan, and the plan."""
    node = kernel(world.current)
    plan = plan_family(world.current, world.desired)
    for block in steps(plan, world.batch):
        node.restore_block(block)
    return node.tables, plan


# --- what the plan leads to ---

@MANY
@given(worlds())
def test_applied_plan_leaves_nothing_to_do(world: World) -> None:
    after, plan = applied(world)
    again = plan_family(after, world.desired)
    assert not again, again
    assert again.warnings == plan.warnings


@MANY
@given(worlds())
def test_applied_plan_gives_every_wanted_chain(world: World) -> None:
    after, _plan = applied(world)
    for name, wanted in world.desired.tables.items():
        for chain in wanted.chains.values():
            rules = after[name].chains[chain.name]
            if not chain.exists_only:
                assert _in_order(rules, chain) == _in_order(list(map(saved, chain.rules)), chain)


def _in_order(rules: list[str], chain: Chain) -> object:
    if chain.ordered:
        return rules
    body = len(rules) - chain.tail
    return Counter(rules[:body]), Counter(rules[body:])


@MANY
@given(worlds())
def test_applied_plan_gives_every_wanted_jump_once_and_no_other_to_our_entries(world: World) -> None:
    after, _plan = applied(world)
    for name, wanted in world.desired.tables.items():
        for parent in {*BUILT_IN[name], *(jump.parent for jump in wanted.jumps)}:
            found = [rule for rule in after[name].chains[parent] if target(rule) in ENTRIES]
            assert Counter(found) == Counter(saved(jump.rule) for jump in wanted.jumps if jump.parent == parent)


@MANY
@given(worlds())
def test_what_stays_of_ours_is_empty_used_by_others_and_warned_about(world: World) -> None:
    after, plan = applied(world)
    for name, wanted in world.desired.tables.items():
        table = after[name]
        for chain in table.chains:
            if our_name(chain) and chain not in wanted.chains:
                users = [user for user, rules in table.chains.items() if any(target(rule) == chain for rule in rules)]
                assert table.chains[chain] == []
                assert any(not our_name(user) for user in users)
                assert any(f"{name}: {chain} is no longer needed" in warning for warning in plan.warnings)


@MANY
@given(worlds())
def test_f002_f041_rules_chains_and_policies_of_others_stay_as_they_are(world: World) -> None:
    after, _plan = applied(world)
    for name, before in world.current.items():
        assert after[name].policies == before.policies
        wanted = world.desired.tables.get(name)
        assert _of_others(after[name], wanted, after[name]) == _of_others(before, wanted, after[name])


def _of_others(table: Table, wanted: TableDesired | None, after: Table) -> dict[str, list[str]]:
    """The chains of others with the rules of others, in a table that we manage or do not."""
    if wanted is None:
        return table.chains
    parents = {*table.policies, *(jump.parent for jump in wanted.jumps)}
    made = {chain.name for chain in wanted.chains.values() if chain.exists_only}
    out = {}
    for chain, rules in table.chains.items():
        if our_name(chain):
            continue
        kept = [rule for rule in rules if chain not in parents or not _is_ours(rule, after)]
        if kept or chain not in made:
            out[chain] = kept
    return out


def _is_ours(rule: str, after: Table) -> bool:
    """In a chain where we have jumps: a rule for an entry of ours, or for a chain of ours that goes."""
    name = target(rule)
    return name in ENTRIES or (our_name(name) and name not in after.chains)


# --- on the way ---

@MANY
@given(worlds())
def test_packets_see_the_old_or_the_new_rules_of_a_table_after_every_commit(world: World) -> None:
    after, plan = applied(world)
    node = kernel(world.current)
    switched = set()
    for block in steps(plan, world.batch):
        node.restore_block(block)
        for name, table in node.tables.items():
            seen = reachable(table)
            if seen != reachable(world.current.get(name, Kernel().tables[name])):
                switched.add(name)
            if name in switched:
                assert seen == reachable(after[name])


@MANY
@given(worlds())
def test_f020_only_chains_of_ours_are_declared_and_each_once_in_a_block(world: World) -> None:
    _after, plan = applied(world)
    made = {(name, chain.name) for name, wanted in world.desired.tables.items()
            for chain in wanted.chains.values() if chain.exists_only}
    for block in steps(plan, world.batch):
        table, *lines = block.splitlines()
        declared = [line[1:].split(" ")[0] for line in lines if line.startswith(":")]
        assert len(declared) == len(set(declared))
        for chain in declared:
            new = chain not in world.current.get(table[1:], Table({}, {})).chains
            assert our_name(chain) or (new and (table[1:], chain) in made)


# --- and back ---

@st.composite
def interrupted(draw: st.DrawFn) -> tuple[World, FamilyPlan, Kernel]:
    """A node, the plan for it, and the node after any number of the plan's commits."""
    world = draw(worlds())
    plan = plan_family(world.current, world.desired)
    node = kernel(world.current)
    forward = steps(plan, world.batch)
    for block in forward[:draw(st.integers(0, len(forward)))]:
        node.restore_block(block)
    return world, plan, node


@MANY
@given(interrupted())
def test_undo_after_any_number_of_commits_brings_back_exactly_the_old_state(
        case: tuple[World, FamilyPlan, Kernel]) -> None:
    world, plan, node = case
    back = undo(plan, node.tables)
    for block in steps(back, world.batch):
        node.restore_block(block)
    assert {name: node.tables[name] for name in world.current} == world.current
    assert back.warnings == []
    assert not undo(plan, node.tables)


@MANY
@given(interrupted(), st.data())
def test_undo_keeps_what_others_added_meanwhile(case: tuple[World, FamilyPlan, Kernel], data: st.DataObject) -> None:
    world, plan, node = case
    name = data.draw(st.sampled_from(sorted(world.desired.tables)))
    there = node.tables[name].chains
    # In any chain that is not ours, for any chain that the plan has made or found there.
    parent = data.draw(st.sampled_from(sorted(chain for chain in there if not our_name(chain))))
    to = data.draw(st.sampled_from(sorted(chain for chain in there if our_name(chain)) + ["RETURN"]))
    added = f"-s 203.0.113.9/32 -j {to}"
    old = world.current[name].chains
    try:
        node.restore(f"*{name}\n-I {parent} {data.draw(st.integers(1, len(there[parent]) + 1))} {added}\nCOMMIT\n")
        if parent in old and (to in old or not our_name(to)):
            kernel(world.current).restore(f"*{name}\n-A {parent} {added}\nCOMMIT\n")
    except ModelError:
        reject()  # a loop, now or in the old state
    back = undo(plan, node.tables)
    for block in steps(back, world.batch):
        node.restore_block(block)
    after = node.tables[name].chains
    assert after[parent].count(added) == 1
    assert {chain: [rule for rule in rules if rule != added] for chain, rules in after.items()} == {
        **old, parent: old.get(parent, []), **({to: old.get(to, [])} if our_name(to) else {})}
    assert bool(back.warnings) == (our_name(to) and to not in old)
    assert not undo(plan, node.tables)
