# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The order of rules for the legacy tool: fast for it, and without any effect on what it makes."""

from __future__ import annotations

import itertools
import random

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import PlanError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.line_order import rule_lines
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import (
    ChainWrite,
    FamilyPlan,
    TablePlan,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions


def _endpoint_name(at: int) -> str:
    return "KUBE-SEP-" + "".join(random.Random(at).choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=16))


def _list_in_the_tool(name: str) -> int:
    """The hash of D. J. Bernstein in 32 bits, over the whole name; written from what the tool does."""
    value = 5381
    for byte in name.encode():
        value = ((value << 5) + value + byte) & 0xFFFFFFFF
    return value % 512


def _services(count: int, endpoints: int) -> list[Chain]:
    names = iter([_endpoint_name(at) for at in range(count * endpoints)])
    return [Chain(f"KUBE-SVC-{at}", [f"-m comment --comment \"{at} -> {step}\" -j {next(names)}"
                                     for step in range(endpoints)]) for at in range(count)]


@pytest.mark.parametrize("seed", range(20))
def test_every_chain_has_its_rules_in_their_order(seed: int) -> None:
    chance = random.Random(seed)
    chains = [Chain(f"C{at}", tuple(chance.choice(["", f"-j T{chance.randrange(9)}", f"-s 192.0.2.{step} -g Ü", "-j A"])
                                    for step in range(chance.choice([0, 1, 2, 3, 4, 7, 100, 101]))))
              for at in range(40)]
    found: dict[str, list[str]] = {chain.name: [] for chain in chains}
    for line in rule_lines(chains).splitlines():
        _append, name, *rule = line.split(" ", 2)
        found[name].append("".join(rule))
    assert found == {chain.name: list(chain.rules) for chain in chains}


def test_rules_with_targets_in_one_list_of_the_tool_stand_together() -> None:
    lines = rule_lines(_services(3000, 4)).splitlines()
    for first in range(0, 12000, 3000):
        lists = [_list_in_the_tool(line.rpartition(" ")[2]) for line in lines[first:first + 3000]]
        runs = [number for number, _same in itertools.groupby(lists)]
        assert len(runs) == len(set(runs)) > 500


def test_short_and_very_long_chains_stay_whole_and_go_by_name() -> None:
    long = [f"-s 192.0.2.{at}/32 -j DROP" for at in range(101)]
    text = rule_lines([Chain("B", ["-j X", "-j Y"]), Chain("C"), Chain("A", long)])
    assert text == "".join(f"-A A {rule}\n" for rule in long) + "-A B -j X\n-A B -j Y\n"


@pytest.mark.parametrize("at", range(3))
@pytest.mark.parametrize("character", ["\n", "\0"])
def test_line_break_in_a_chain_that_is_spread_is_refused(at: int, character: str) -> None:
    rules = ["-j A", "-j B", "-j C"]
    rules[at] += f"{character}-A INPUT -j ACCEPT"
    plan = FamilyPlan("ipv4", [TablePlan("nat", [ChainWrite(Chain("D", rules), None)], {}, [])], [])
    with pytest.raises(PlanError, match="line break or NUL"):
        transactions(plan)
