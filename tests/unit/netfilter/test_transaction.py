# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The texts that restore gets, in their order."""

from __future__ import annotations

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
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import (
    ChainWrite,
    FamilyPlan,
    TablePlan,
    plan_family,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from support.kernel_model import Kernel
from unit.netfilter.states import our_name

BUILT_IN = {"filter": ["INPUT", "FORWARD", "OUTPUT"], "nat": ["PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"]}


def state(**tables: dict[str, list[str]]) -> Tables:
    """Tables with their built-in chains, and these."""
    return {name: Table({**{chain: [] for chain in BUILT_IN[name]}, **chains}, dict.fromkeys(BUILT_IN[name], "ACCEPT"))
            for name, chains in tables.items()}


def desired(*jumps: Jump, **tables: list[Chain]) -> Desired:
    """What is wanted; the jumps are in every table."""
    return Desired(IPV4, {name: TableDesired({chain.name: chain for chain in chains}, jumps, our_name,
                                             frozenset({"OUR-A"})) for name, chains in tables.items()})


def texts(current: Tables, wanted: Desired, batch: int | None = None) -> list[str]:
    """The inputs, after a kernel has accepted them."""
    kernel = Kernel(current)
    out = [transaction.text for transaction in transactions(plan_family(current, wanted), batch)]
    for text in out:
        kernel.restore(text)
    assert not plan_family(kernel.tables, wanted)
    return out


def test_f014_one_input_with_one_commit_for_each_table() -> None:
    current = state(nat={"OUR-B": []}, filter={"OUR-B": []})
    wanted = desired(nat=[Chain("OUR-A", ["-j RETURN", "-j RETURN"])], filter=[Chain("OUR-A", ["-j RETURN"])])
    text, = texts(current, wanted)
    assert text == ("*filter\n:OUR-A - [0:0]\n:OUR-B - [0:0]\n-A OUR-A -j RETURN\n-X OUR-B\nCOMMIT\n"
                    "*nat\n:OUR-A - [0:0]\n:OUR-B - [0:0]\n-A OUR-A -j RETURN\n-A OUR-A -j RETURN\n-X OUR-B\nCOMMIT\n")
    one, = transactions(plan_family(current, wanted))
    assert one.tables == ("filter", "nat")


def test_table_without_a_change_is_not_in_the_input() -> None:
    text, = texts(state(nat={}, filter={"OUR-A": []}), desired(nat=[Chain("OUR-A")], filter=[Chain("OUR-A")]))
    assert text == "*nat\n:OUR-A - [0:0]\nCOMMIT\n"
    assert transactions(plan_family(state(nat={"OUR-A": []}), desired(nat=[Chain("OUR-A")]))) == []


def test_f002_f020_rules_of_others_are_never_in_the_input() -> None:
    current = state(filter={"INPUT": ["-j KUBE-FIREWALL", "-j DOCKER-USER"], "KUBE-FIREWALL": ["-j DROP"],
                            "DOCKER-USER": ["-s 192.0.2.1/32 -j RETURN"], "OUR-B": []})
    text, = texts(current, desired(Jump("INPUT", "-j OUR-A"), filter=[Chain("OUR-A", ["-j RETURN"])]))
    assert text == ("*filter\n:OUR-A - [0:0]\n:OUR-B - [0:0]\n-A OUR-A -j RETURN\n-I INPUT 1 -j OUR-A\n"
                    "-X OUR-B\nCOMMIT\n")


def test_f021_jumps_go_and_all_chains_are_emptied_before_any_is_deleted() -> None:
    current = state(nat={"PREROUTING": ["-j OUR-A"], "OUR-A": ["-j OUR-B"], "OUR-B": ["-j OUR-C"],
                         "OUR-C": ["-j RETURN"]})
    text, = texts(current, desired(nat=[]))
    assert text.splitlines() == ["*nat", ":OUR-A - [0:0]", ":OUR-B - [0:0]", ":OUR-C - [0:0]", "-D PREROUTING -j OUR-A",
                                 "-X OUR-A", "-X OUR-B", "-X OUR-C", "COMMIT"]


def test_f022_chain_is_declared_before_any_rule_leads_to_it() -> None:
    wanted = [Chain("OUR-A", ["-j OUR-B"]), Chain("OUR-B", ["-j OUR-C"]), Chain("OUR-C", ["-j RETURN"])]
    text, = texts(state(nat={}), desired(Jump("PREROUTING", "-j OUR-A"), nat=wanted))
    assert text.splitlines()[1:4] == [":OUR-A - [0:0]", ":OUR-B - [0:0]", ":OUR-C - [0:0]"]


def test_f032_jump_in_the_wrong_place_is_deleted_and_inserted_in_one_input() -> None:
    current = state(nat={"PREROUTING": ["-j FGN", "-j OUR-A", "-j OUR-A"], "FGN": [], "OUR-A": []})
    text, = texts(current, desired(Jump("PREROUTING", "-j OUR-A"), nat=[Chain("OUR-A")]))
    assert text == "*nat\n-D PREROUTING -j OUR-A\n-D PREROUTING -j OUR-A\n-I PREROUTING 1 -j OUR-A\nCOMMIT\n"


def test_large_load_is_cut_leaves_first_and_the_switch_is_whole() -> None:
    wanted = [Chain("OUR-A", ["-j OUR-B", "-j OUR-C"]), Chain("OUR-B", ["-j OUR-D"]), Chain("OUR-C", ["-j OUR-D"]),
              Chain("OUR-D", ["-j RETURN"]), Chain("OUR-E", ["-j OUR-F"]), Chain("OUR-F", [])]
    current = state(nat={"OUR-E": []})
    first, second, third, switch = texts(current, desired(Jump("PREROUTING", "-j OUR-A"), nat=wanted), batch=2)
    declared = [[line[1:6] for line in text.splitlines() if line.startswith(":")] for text in (first, second, third)]
    assert declared == [["OUR-D", "OUR-F"], ["OUR-B", "OUR-C"], ["OUR-A"]]
    assert switch == "*nat\n:OUR-E - [0:0]\n-A OUR-E -j OUR-F\n-I PREROUTING 1 -j OUR-A\nCOMMIT\n"


def test_where_the_tool_wants_it_new_chains_are_made_empty_first_the_last_name_first() -> None:
    wanted = [Chain("OUR-A", ("-j OUR-C",)), Chain("OUR-C", ("-j RETURN",)), Chain("OUR-B")]
    plan = plan_family(state(nat={}), desired(Jump("PREROUTING", "-j OUR-A"), nat=wanted))
    first, *others = [one.text for one in transactions(plan, 2, declare_first=True)]
    assert first == "*nat\n:OUR-C - [0:0]\n:OUR-B - [0:0]\n:OUR-A - [0:0]\nCOMMIT\n"
    assert others == [one.text for one in transactions(plan, 2)]
    # a load of one batch is one restore for every tool
    assert transactions(plan, 3, declare_first=True) == transactions(plan, 3)


def test_load_of_one_batch_is_not_cut() -> None:
    wanted = desired(nat=[Chain("OUR-A", ["-j OUR-B"]), Chain("OUR-B")])
    assert len(texts(state(nat={}), wanted, batch=2)) == 1
    assert len(texts(state(nat={}), wanted, batch=1)) == 2


def test_many_removals_come_after_the_switch_roots_first() -> None:
    current = state(nat={"PREROUTING": ["-j OUR-A"], "OUR-C": ["-j RETURN"], "OUR-B": ["-j OUR-C"],
                         "OUR-A": ["-j OUR-B"]})
    assert texts(current, desired(nat=[]), batch=1) == [
        "*nat\n-D PREROUTING -j OUR-A\nCOMMIT\n", "*nat\n:OUR-A - [0:0]\n-X OUR-A\nCOMMIT\n",
        "*nat\n:OUR-B - [0:0]\n-X OUR-B\nCOMMIT\n", "*nat\n:OUR-C - [0:0]\n-X OUR-C\nCOMMIT\n"]


def test_leftovers_that_lead_to_each_other_are_removed_in_batches_too() -> None:
    # A kernel holds such a loop as long as no packet can get into it.
    ring = {f"OUR-{at}": [f"-j OUR-{(at + 1) % 5}", "-j OUR-0"] for at in range(5)}
    for batch in (None, 1, 2, 3):
        texts(state(nat=ring), desired(nat=[]), batch)


def test_deep_chains_do_not_exhaust_the_stack() -> None:
    deep = {f"OUR-{at}": [f"-j OUR-{at + 1}"] for at in range(3000)}
    current = state(nat={**deep, "OUR-3000": []})
    assert len(transactions(plan_family(current, desired(nat=[])), 1000)) == 4


def _long_chain(*numbers: int) -> Chain:
    rules = [f"-d 10.96.0.{number}/32 -j A{number}" for number in numbers]
    return Chain("SERVICES", [*rules, "-j LAST"], ordered=False, tail=1)


def _edit(before: Chain, after: Chain) -> list[str]:
    plan = FamilyPlan("ipv4", [TablePlan("nat", [ChainWrite(after, before.rules)], {}, [])], [])
    return transactions(plan)[0].text.splitlines()[1:-1]


def test_f074_a_new_rule_of_a_long_chain_goes_where_every_node_has_it() -> None:
    before = _long_chain(*range(1, 100), *range(101, 200))
    lines = _edit(before, _long_chain(*range(200)))
    assert lines == ["-I SERVICES 1 -d 10.96.0.0/32 -j A0", "-I SERVICES 101 -d 10.96.0.100/32 -j A100"]


def test_a_rule_that_goes_from_a_long_chain_is_deleted_alone() -> None:
    assert _edit(_long_chain(*range(200)), _long_chain(*range(199))) == ["-D SERVICES -d 10.96.0.199/32 -j A199"]


@pytest.mark.parametrize("after", [_long_chain(*range(6, 200)), _long_chain(*range(251)), _long_chain(*range(50))])
def test_a_long_chain_of_which_much_changes_is_written_again(after: Chain) -> None:
    assert _edit(_long_chain(*range(200)), after)[0] == ":SERVICES - [0:0]"
