# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is refused before anything is written, what is counted, and the edges of the plan."""

from __future__ import annotations

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import PlanError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    IPV4,
    Chain,
    Desired,
    Jump,
    Table,
    TableDesired,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import counts, plan_family
from unit.netfilter.states import our_name

ENTRIES = frozenset({"OUR-A", "OUR-B"})


def desired(*chains: Chain, jumps: tuple[Jump, ...] = ()) -> Desired:
    """One table of ours."""
    return Desired(IPV4, {"nat": TableDesired({chain.name: chain for chain in chains}, jumps, our_name, ENTRIES)})


def nat(**chains: list[str]) -> dict[str, Table]:
    """A table with INPUT and these chains (underscores for dashes)."""
    return {"nat": Table({"INPUT": [], **{name.replace("_", "-"): rules for name, rules in chains.items()}},
                         {"INPUT": "ACCEPT"})}


@pytest.mark.parametrize("name", ["OUR-" + "x" * 25, "OUR-" + "é" * 13])
def test_f054_name_of_more_than_28_bytes_is_refused(name: str) -> None:
    with pytest.raises(PlanError, match="longer than 28 bytes"):
        plan_family(nat(), desired(Chain(name)))


@pytest.mark.parametrize("name", ["OUR-" + "x" * 24, "OUR-" + "é" * 12])
def test_f054_name_of_28_bytes_is_written(name: str) -> None:
    assert plan_family(nat(), desired(Chain(name))).tables[0].writes[0].chain.name == name


def test_f022_missing_target_is_refused_even_if_the_node_has_it() -> None:
    current = nat(OUR_B=[])
    with pytest.raises(PlanError, match="OUR-A would lead to OUR-B"):
        plan_family(current, desired(Chain("OUR-A", ["-j OUR-B"])))
    with pytest.raises(PlanError, match="OUR-A would lead to OUR-B"):
        plan_family(current, desired(Chain("OUR-A", ["-g OUR-B"])))
    with pytest.raises(PlanError, match="INPUT would lead to OUR-B"):
        plan_family(current, desired(jumps=(Jump("INPUT", "-j OUR-B"),)))
    plan_family(current, desired(Chain("OUR-A", ['-m comment --comment "-j OUR-B" -j FGN'])))


@pytest.mark.parametrize("rule", ['-m comment --comment "a\nb" -j RETURN', '-m comment --comment "a\0b" -j RETURN'])
def test_f013_rule_with_a_line_break_is_refused(rule: str) -> None:
    with pytest.raises(PlanError, match="line break"):
        plan_family(nat(), desired(Chain("OUR-A", [rule])))
    with pytest.raises(PlanError, match="line break"):
        plan_family(nat(), desired(Chain("OUR-A"), jumps=(Jump("INPUT", rule.replace("RETURN", "OUR-A")),)))


def test_f028_chains_that_nothing_asks_for_go_and_others_stay() -> None:
    current = nat(INPUT=["-j OUR-OLD", "-j FGN", "-j OUR-B"], FGN=["-j RETURN"], OUR_OLD=["-j OUR-OLDER"], OUR_OLDER=[],
                  OUR_B=[])
    table, = plan_family(current, desired(Chain("OUR-B"))).tables
    assert dict(table.removals) == {"OUR-OLD": ["-j OUR-OLDER"], "OUR-OLDER": []}
    # A jump to a chain of ours that stays goes too, if it is an entry and nothing asks for the jump.
    assert [(edit.parent, edit.after) for edit in table.parents] == [("INPUT", ["-j FGN"])]


def test_leftover_that_others_use_stays_empty_with_a_warning() -> None:
    plan = plan_family(nat(FGN=["-j OUR-OLD"], OUR_OLD=["-j DROP"]), desired())
    table, = plan.tables
    assert not table.removals
    assert [(write.chain.name, write.chain.rules) for write in table.writes] == [("OUR-OLD", ())]
    assert plan.warnings == ["ipv4 nat: OUR-OLD is no longer needed but stays, empty: FGN has a rule for it, "
                             "and rules of others are not touched"]


def test_jump_of_ours_in_a_shared_chain_does_not_keep_a_leftover() -> None:
    current = nat(SHARED=["-j OUR-OLD", "-j OUR-A"], OUR_OLD=[], OUR_A=[])
    plan = plan_family(current, desired(Chain("OUR-A"), jumps=(Jump("SHARED", "-j OUR-A"),)))
    table, = plan.tables
    assert dict(table.removals) == {"OUR-OLD": []}
    assert [edit.after for edit in table.parents] == [["-j OUR-A"]]
    assert plan.warnings == []


def test_table_that_the_node_does_not_show_is_empty() -> None:
    table, = plan_family({}, desired(Chain("OUR-A"), jumps=(Jump("INPUT", "-j OUR-A"),))).tables
    assert [write.before for write in table.writes] == [None]
    assert [(edit.before, edit.after) for edit in table.parents] == [([], ["-j OUR-A"])]


def test_counts_of_a_plan() -> None:
    current = nat(INPUT=["-j FGN", "-j OUR-A"], FGN=[], OUR_A=["-j RETURN", "-j DROP"], OUR_OLD=["-j RETURN"])
    wanted = (Chain("OUR-A", ["-j RETURN", "-j ACCEPT", "-j OUR-B"]), Chain("OUR-B", ["-j RETURN"]))
    plan = plan_family(current, desired(*wanted, jumps=(Jump("INPUT", "-j OUR-A"),)))
    # OUR-A: DROP becomes ACCEPT, one rule more. OUR-B: new. OUR-OLD: gone. INPUT: a jump moves.
    assert counts([plan]) == {"chains": {"added": 1, "changed": 2, "removed": 1},
                              "rules": {"added": 2, "changed": 2, "removed": 1}}
    nothing = {"added": 0, "changed": 0, "removed": 0}
    assert counts([]) == {"chains": nothing, "rules": nothing}
