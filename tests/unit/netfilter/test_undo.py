# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The way back, where something happened meanwhile."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    IPV4,
    Chain,
    Desired,
    Jump,
    Table,
    TableDesired,
    Tables,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.undo import undo
from support.kernel_model import Kernel
from unit.netfilter.states import our_name, saved

WEB = '-p udp -m udp --dport 53 -j OUR-A'


def state(**chains: list[str]) -> Tables:
    """A table filter with INPUT and these chains (underscores for dashes)."""
    return {"filter": Table({"INPUT": [], **{name.replace("_", "-"): rules for name, rules in chains.items()}},
                            {"INPUT": "DROP"})}


def after_undo(current: Tables, meanwhile: str, *chains: Chain,
               jumps: tuple[Jump, ...] = ()) -> tuple[Tables, list[str]]:
    """What a plan for these chains, an input of somebody else and the undo lead to, and what the undo warns of."""
    desired = Desired(IPV4, {"filter": TableDesired({chain.name: chain for chain in chains}, jumps, our_name,
                                                    frozenset({"OUR-A"}))})
    plan = plan_family(current, desired)
    node = Kernel(current, saved)
    for transaction in transactions(plan):
        node.restore(transaction.text)
    if meanwhile:
        node.restore(f"*filter\n{meanwhile}\nCOMMIT\n")
    back = undo(plan, node.tables)
    for transaction in transactions(back):
        node.restore(transaction.text)
    assert not undo(plan, node.tables)
    return {"filter": node.tables["filter"]}, back.warnings


def test_jump_goes_back_to_its_place_between_rules_of_others() -> None:
    current = state(INPUT=["-j ACCEPT", WEB, "-j RETURN"], OUR_A=[])
    back, _now = after_undo(current, "-I INPUT 1 -s 192.0.2.1/32 -j RETURN", Chain("OUR-A"),
                            jumps=(Jump("INPUT", WEB),))
    assert back["filter"].chains["INPUT"] == ["-s 192.0.2.1/32 -j RETURN", "-j ACCEPT", WEB, "-j RETURN"]


def test_jump_goes_back_where_a_rule_of_others_was_removed_meanwhile() -> None:
    current = state(INPUT=["-j ACCEPT", WEB, "-j RETURN"], OUR_A=[])
    back, _now = after_undo(current, "-D INPUT -j ACCEPT", Chain("OUR-A"), jumps=(Jump("INPUT", WEB),))
    assert back["filter"].chains["INPUT"] == [WEB, "-j RETURN"]


def test_jump_that_the_kernel_spells_in_another_way_is_taken_back() -> None:
    current = state(INPUT=["-j ACCEPT"])
    back, _now = after_undo(current, "", Chain("OUR-A"), jumps=(Jump("INPUT", "-p UDP --dport 53:53 -j OUR-A"),))
    assert back == current


def test_jump_in_a_chain_that_was_made_for_it_goes_with_the_chain() -> None:
    back, _now = after_undo(state(), "", Chain("OUR-A"), Chain("SHARED", (), exists_only=True),
                            jumps=(Jump("SHARED", WEB),))
    assert back == state()


def test_rules_of_others_in_a_chain_that_was_made_for_them_stay() -> None:
    back, _now = after_undo(state(), "-A SHARED -j DROP", Chain("OUR-A"), Chain("SHARED", (), exists_only=True),
                            jumps=(Jump("SHARED", WEB),))
    assert back == state(SHARED=["-j DROP"])


def test_new_chain_that_others_have_begun_to_use_stays_empty_with_a_warning() -> None:
    back, warnings = after_undo(state(FGN=[]), "-A FGN -j OUR-A", Chain("OUR-A", ["-j DROP"]),
                                Chain("OUR-B", ["-j OUR-A"]), jumps=(Jump("INPUT", WEB),))
    assert back == state(FGN=["-j OUR-A"], OUR_A=[])
    assert warnings == ["ipv4 filter: OUR-A was not there before but stays, empty: FGN has a rule for it"]


def test_chain_that_was_removed_comes_back_with_its_jumps() -> None:
    current = state(INPUT=["-j OUR-OLD", "-j ACCEPT"], OUR_OLD=["-j OUR-OLDER", "-j DROP"], OUR_OLDER=["-j RETURN"])
    back, _now = after_undo(current, "")
    assert back == current


def test_nothing_was_written_nothing_is_undone() -> None:
    plan = plan_family(state(), Desired(IPV4, {"filter": TableDesired({"OUR-A": Chain("OUR-A")}, (), our_name)}))
    assert plan
    assert not undo(plan, state())
