# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a reviewer gets to see of a plan."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.difference import differences
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    IPV4,
    Chain,
    Desired,
    Jump,
    Table,
    TableDesired,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan, plan_family
from unit.netfilter.states import our_name


def plan(chains: dict[str, list[str]], wanted: list[Chain], jumps: tuple[Jump, ...] = ()) -> FamilyPlan:
    """The plan for one table with these chains (INPUT is built in)."""
    current = {"nat": Table({"INPUT": [], **chains}, {"INPUT": "ACCEPT"})}
    entries = frozenset({"OUR-A", "OUR-B"})
    return plan_family(current, Desired(IPV4, {
        "nat": TableDesired({chain.name: chain for chain in wanted}, jumps, our_name, entries)}))


def shown(*arguments: object, **options: dict[str, str]) -> tuple[str, str]:
    """Before and after of the only table that changes."""
    entry, = differences(plan(*arguments), **options)  # type: ignore[arg-type]
    assert entry["before_header"] == entry["after_header"] == "ipv4 nat"
    return entry["before"], entry["after"]


def test_nothing_to_do_is_no_diff() -> None:
    assert differences(plan({"OUR-A": ["-j RETURN"], "FGN": ["-j ACCEPT"]}, [Chain("OUR-A", ["-j RETURN"])])) == []


def test_new_chain_is_declared_under_its_title() -> None:
    before, after = shown({}, [Chain("OUR-A", ["-j RETURN"], title="default/web:http (tcp)")])
    assert before == "# OUR-A: default/web:http (tcp)\n"
    assert after == "# OUR-A: default/web:http (tcp)\n:OUR-A - [0:0]\n-A OUR-A -j RETURN\n"


def test_chain_that_goes_has_the_title_it_is_given() -> None:
    before, after = shown({"OUR-A": ["-j RETURN", ""]}, [], titles={"OUR-A": "default/gone"})
    assert before == "# OUR-A: default/gone\n:OUR-A - [0:0]\n-A OUR-A -j RETURN\n-A OUR-A\n"
    assert after == "# OUR-A: default/gone\n"


def test_chain_in_order_is_shown_whole() -> None:
    before, after = shown({"OUR-A": ["-j B", "-j C"]}, [Chain("OUR-A", ["-j B", "-j D", "-j C"])])
    assert before == "# OUR-A\n-A OUR-A -j B\n-A OUR-A -j C\n"
    assert after == "# OUR-A\n-A OUR-A -j B\n-A OUR-A -j D\n-A OUR-A -j C\n"


def test_chain_without_order_shows_only_the_rules_that_differ() -> None:
    before, after = shown({"OUR-A": ["-j B", "-j C"]}, [Chain("OUR-A", ["-j D", "-j C"], ordered=False)])
    assert before == "# OUR-A (only the rules that differ)\n-A OUR-A -j B\n"
    assert after == "# OUR-A (only the rules that differ)\n-A OUR-A -j D\n"


def test_last_rule_in_the_wrong_place_is_a_visible_difference() -> None:
    before, after = shown({"OUR-A": ["-j LAST", "-j C"]}, [Chain("OUR-A", ["-j C", "-j LAST"], ordered=False, tail=1)])
    assert before == "# OUR-A\n-A OUR-A -j LAST\n-A OUR-A -j C\n"
    assert after == "# OUR-A\n-A OUR-A -j C\n-A OUR-A -j LAST\n"


def test_only_what_changes_is_shown_sorted_by_chain() -> None:
    before, after = shown({"OUR-A": ["-j RETURN"], "OUR-C": ["-j RETURN"], "FGN": ["-j DROP"]},
                          [Chain("OUR-D", []), Chain("OUR-A", ["-j RETURN"]), Chain("OUR-B", [])])
    assert before == "# OUR-B\n# OUR-C\n:OUR-C - [0:0]\n-A OUR-C -j RETURN\n# OUR-D\n"
    assert after == "# OUR-B\n:OUR-B - [0:0]\n# OUR-C\n# OUR-D\n:OUR-D - [0:0]\n"


def test_jumps_are_shown_with_their_positions_and_without_rules_of_others() -> None:
    before, after = shown({"INPUT": ["-j FGN", "-j OUR-A", "-i eth0 -j OUR-A"], "FGN": [], "OUR-A": [], "OUR-B": []},
                          [Chain("OUR-A"), Chain("OUR-B")], (Jump("INPUT", "-j OUR-A"), Jump("INPUT", "-j OUR-B")))
    heading = "# INPUT: our jumps (rules of others stay as they are)\n"
    assert before == (heading + "-A INPUT -j OUR-A  # position 2\n"
                      "-A INPUT -i eth0 -j OUR-A  # position 3\n")
    assert after == heading + "-A INPUT -j OUR-A  # position 1\n-A INPUT -j OUR-B  # position 2\n"


def test_label_of_the_backend_is_in_the_headers() -> None:
    entry, = differences(plan({}, [Chain("OUR-A")]), label="ipv4 (legacy)")
    assert entry["before_header"] == entry["after_header"] == "ipv4 (legacy) nat"
