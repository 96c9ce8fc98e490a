# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where our jumps stand among the rules of others: single cases."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.jumps import Placement, place
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import APPEND, IPV4, Jump

OURS = frozenset({"A", "B", "C"})
JUMP_A, JUMP_B, JUMP_C = (Jump("INPUT", f"-j {name}") for name in "ABC")


def placed(before: list[str], *jumps: Jump, neighbours: tuple[str, ...] = ()) -> Placement:
    return place(before, jumps, OURS, neighbours, IPV4)


def test_f032_jump_behind_a_rule_of_others_is_moved_to_the_head() -> None:
    before = ["-m addrtype --dst-type LOCAL -j KUBE-HOSTPORTS", "-j A"]
    assert placed(before, JUMP_A) == Placement(["-j A", before[0]], frozenset({"-j A"}))


def test_f032_neighbours_may_stand_before_us() -> None:
    before = ["-j cali-PREROUTING", "-j A", "-j FGN"]
    assert placed(before, JUMP_A, neighbours=("cali-",)) == Placement(before, frozenset())
    assert placed(before, JUMP_A).rules == ["-j A", "-j cali-PREROUTING", "-j FGN"]


def test_f032_appended_jump_stays_wherever_it_is() -> None:
    jump = JUMP_A._replace(position=APPEND)
    for before in (["-j A", "-j FGN"], ["-j FGN", "-j A"], ["-j FGN", "-j A", "-j FGN"]):
        assert placed(before, jump) == Placement(before, frozenset())
    assert placed(["-j FGN"], jump).rules == ["-j FGN", "-j A"]


def test_f008_jump_in_another_spelling_is_the_same_jump() -> None:
    before = ['-i eth0 -m comment --comment "handle IPs; NOTE: keep first" -j A']
    jump = Jump("INPUT", '-m comment --comment "handle IPs; NOTE: keep first" --in-interface eth0 -j A')
    assert placed(before, jump) == Placement(before, frozenset())


def test_second_copy_of_a_jump_goes() -> None:
    assert placed(["-j A", "-j FGN", "-j A"], JUMP_A) == Placement(["-j A", "-j FGN"], frozenset({"-j A"}))


def test_jump_with_other_conditions_goes() -> None:
    assert placed(["-i eth0 -j A"], JUMP_A) == Placement(["-j A"], frozenset({"-i eth0 -j A"}))
    assert placed(["-i eth0 -j A", "-j FGN"]) == Placement(["-j FGN"], frozenset({"-i eth0 -j A"}))


def test_fewest_jumps_move_to_get_them_in_order() -> None:
    assert placed(["-j C", "-j A", "-j B"], JUMP_A, JUMP_B, JUMP_C) == Placement(
        ["-j A", "-j B", "-j C"], frozenset({"-j C"}))


def test_jump_without_rank_stays_among_ours() -> None:
    before = ["-j B", "-j A"]
    assert placed(before, JUMP_A, JUMP_B._replace(ranked=False)) == Placement(before, frozenset())
    assert placed(before, JUMP_A, JUMP_B).rules == ["-j A", "-j B"]


def test_missing_jump_is_put_behind_the_one_before_it() -> None:
    assert placed(["-j A", "-j C", "-j FGN"], JUMP_A, JUMP_B, JUMP_C).rules == ["-j A", "-j B", "-j C", "-j FGN"]
