# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A large update of chains in use is cut between units: a packet for one of them finds its old or its new rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from random import Random

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    IPV4,
    Chain,
    Desired,
    Jump,
    Table,
    TableDesired,
    Tables,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan, plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.undo import undo
from support.kernel_model import BUILT_IN, Kernel, target

Chains = dict[str, tuple[str, ...]]


def units(chains: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """OUR-<unit>-<anything> is of that unit; a chain with another name is of none."""
    return {name: name.split("-")[1] for name in chains if name.count("-") == 2}


def service(number: int, *ends: str) -> Chains:
    """The chains of a unit: two that packets come in by, and the ends that both lead to."""
    jumps = tuple(f"-j OUR-{number}-{end}" for end in ends)
    chains: Chains = {f"OUR-{number}-IN": jumps, f"OUR-{number}-EXT": ("-j OUR-MARK", *jumps)}
    chains.update((f"OUR-{number}-{end}", (f"-s 192.0.2.{number}/32 -j ACCEPT",)) for end in ends)
    return chains


def all_chains(*services: Chains) -> Chains:
    """The chains of services, the chain that leads to all of them, and the one that all of them lead to."""
    return {"OUR-ALL": tuple(f"-d 10.0.0.{name.split('-')[1]}/32 -j {name}" for chains in services for name in chains
                             if name.endswith(("-IN", "-EXT"))),
            "OUR-MARK": ("-j RETURN",), **{name: rules for chains in services for name, rules in chains.items()}}


def desired(chains: Chains) -> Desired:
    wanted = {name: Chain(name, rules, ordered=name != "OUR-ALL") for name, rules in chains.items()}
    return Desired(IPV4, {"nat": TableDesired(wanted, (Jump("PREROUTING", "-j OUR-ALL"),),
                                              lambda name: name.startswith("OUR-"), frozenset({"OUR-ALL"}),
                                              units=units)})


def state(chains: Chains) -> Tables:
    built_in = {chain: ["-j OUR-ALL"] if chain == "PREROUTING" and chains else [] for chain in BUILT_IN["nat"]}
    return {"nat": Table({**built_in, **{name: list(rules) for name, rules in chains.items()}},
                         dict.fromkeys(built_in, "ACCEPT"))}


def declared(text: str) -> list[str]:
    return [line[1:].split()[0] for line in text.splitlines() if line.startswith(":")]


def steps(before: Chains, after: Chains, batch: int) -> list[list[str]]:
    plan = plan_family(state(before), desired(after))
    return [declared(one.text) for one in transactions(plan, batch)]


def test_chains_in_use_change_unit_by_unit_and_before_the_rest() -> None:
    before = all_chains(service(1, "A"), service(2, "A"), service(3, "A"))
    after = all_chains(service(1, "B"), service(2, "B"), service(3, "B"))
    assert steps(before, after, 3) == [
        ["OUR-1-B", "OUR-2-B", "OUR-3-B"], ["OUR-1-IN", "OUR-1-EXT"], ["OUR-2-IN", "OUR-2-EXT"],
        ["OUR-3-IN", "OUR-3-EXT"], ["OUR-1-A", "OUR-2-A", "OUR-3-A"]]
    assert steps(before, after, 5) == [
        ["OUR-1-B", "OUR-2-B", "OUR-3-B"],
        ["OUR-1-IN", "OUR-1-EXT", "OUR-2-IN", "OUR-2-EXT"],
        ["OUR-3-IN", "OUR-3-EXT"],
        ["OUR-1-A", "OUR-2-A", "OUR-3-A"]]


def test_a_unit_is_never_cut() -> None:
    before = all_chains(service(1, "A"), service(2, "A"))
    after = all_chains(service(1, "A", "B"), service(2, "A", "B"))
    assert steps(before, after, 1) == [["OUR-1-B"], ["OUR-2-B"], ["OUR-1-IN", "OUR-1-EXT"], ["OUR-2-IN", "OUR-2-EXT"]]


def test_a_unit_whose_way_in_changes_changes_with_it() -> None:
    before = all_chains(service(1, "A"), service(2, "A"), service(3, "A"))
    after = all_chains(service(1, "A", "B"), service(2, "A", "B"), service(3, "A", "B"))
    after["OUR-ALL"] = tuple(rule.replace("10.0.0.2", "10.0.9.2") for rule in after["OUR-ALL"])
    *_new, early, second, switch = steps(before, after, 2)
    assert [early, second] == [["OUR-1-IN", "OUR-1-EXT"], ["OUR-3-IN", "OUR-3-EXT"]]
    assert sorted(switch) == ["OUR-2-EXT", "OUR-2-IN", "OUR-ALL"]


def test_chains_of_no_unit_change_in_one_restore() -> None:
    before = {"OUR-ALL": ("-j OUR-A", "-j OUR-B"), "OUR-A": (), "OUR-B": ()}
    after = {"OUR-ALL": ("-j OUR-B", "-j OUR-A"), "OUR-A": ("-j RETURN",), "OUR-B": ("-j RETURN",)}
    assert steps(before, after, 1) == [["OUR-A", "OUR-B"]]


@pytest.mark.parametrize("seed", range(60))
def test_every_commit_leaves_each_unit_in_its_old_or_its_new_state_on_the_way_and_back(seed: int) -> None:
    pick = Random(seed)
    before, after = _random(pick), _random(pick)
    batch = pick.choice((1, 2, 3, 5))
    plan = plan_family(state(before), desired(after))
    kernel = Kernel(state(before))
    texts = [one.text for one in transactions(plan, batch)]
    for text in texts[:pick.choice((len(texts), pick.randint(0, len(texts))))]:
        kernel.restore(text)
        _assert_whole(kernel.tables, before, after)
    _assert_undone(kernel, plan, before, after, batch)
    kernel = Kernel(state(before))
    for text in texts:
        kernel.restore(text)
    assert not plan_family(kernel.tables, desired(after))


def _random(pick: Random) -> Chains:
    services = [service(number, *pick.sample("ABCD", pick.randint(1, 3))) for number in range(1, 9)
                if pick.random() < 0.8]
    chains = all_chains(*services)
    if pick.random() < 0.5:
        chains["OUR-MARK"] = ("-j ACCEPT",)
    ways = list(chains["OUR-ALL"])
    chains["OUR-ALL"] = tuple(rule.replace("10.0.0", "10.0.9") if pick.random() < 0.2 else rule for rule in ways)
    return chains


def _assert_undone(kernel: Kernel, plan: FamilyPlan, before: Chains, after: Chains, batch: int) -> None:
    for one in transactions(undo(plan, kernel.tables), batch):
        kernel.restore(one.text)
        _assert_whole(kernel.tables, before, after)
    assert kernel.tables["nat"].chains == state(before)["nat"].chains


def _assert_whole(tables: Tables, before: Chains, after: Chains) -> None:
    """What a packet for each unit meets from the ways in on, as one picture."""
    now = {name: tuple(rules) for name, rules in tables["nat"].chains.items()}
    for number in map(str, range(1, 9)):
        assert _picture(now, number) in (_picture(before, number), _picture(after, number))


def _picture(chains: Mapping[str, tuple[str, ...]], number: str) -> object:
    ways = sorted(rule for rule in chains.get("OUR-ALL", ()) if target(rule).startswith(f"OUR-{number}-"))
    seen: dict[str, tuple[str, ...]] = {}
    waiting = [target(rule) for rule in ways]
    while waiting:
        name = waiting.pop()
        if name in chains and name not in seen and name != "OUR-MARK":
            seen[name] = chains[name]
            waiting += map(target, chains[name])
    return ways, seen
