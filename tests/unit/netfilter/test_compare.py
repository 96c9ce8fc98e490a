# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Whether a chain is the wanted one: counting rules, order, tails."""

from __future__ import annotations

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.compare import (
    changed_rules,
    decisions,
    same_chain,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, Chain

#: As kube-proxy 1.36 left them.
INVALID = "-m conntrack --ctstate INVALID -j DROP"
INVALID_COUNTED = "-m conntrack --ctstate INVALID -m nfacct --nfacct-name  ct_state_invalid_dropped_pkts -j DROP"
NODE_PORT = '-p tcp -m comment --comment "default/web:p80" -m tcp --dport 30080 -j KUBE-EXT-A'
LOOPBACK_COUNTED = ('-d 127.0.0.0/8 -p tcp -m comment --comment "default/web:p80" -m tcp --dport 30080 '
                    "-m nfacct --nfacct-name  localhost_nps_accepted_pkts -j KUBE-EXT-A")
OTHER_PORT = '-p tcp -m comment --comment "default/web:p81" -m tcp --dport 30081 -j KUBE-EXT-B'


def test_counter_inside_a_rule_is_no_difference() -> None:
    assert same_chain([INVALID_COUNTED], Chain("X", [INVALID]), IPV4)
    assert same_chain([INVALID], Chain("X", [INVALID_COUNTED]), IPV4)


@pytest.mark.parametrize("ordered", [True, False])
def test_rule_that_only_counts_is_no_difference(ordered: bool) -> None:
    wanted = Chain("X", [NODE_PORT, OTHER_PORT], ordered=ordered)
    assert same_chain([LOOPBACK_COUNTED, NODE_PORT, OTHER_PORT], wanted, IPV4)
    assert same_chain([OTHER_PORT, LOOPBACK_COUNTED, NODE_PORT], wanted, IPV4) == (not ordered)


@pytest.mark.parametrize("current", [
    [NODE_PORT, LOOPBACK_COUNTED],  # nothing behind it, so it decides
    [LOOPBACK_COUNTED, OTHER_PORT, NODE_PORT],  # not before the rule that it counts for
    [LOOPBACK_COUNTED],
    [LOOPBACK_COUNTED.replace("KUBE-EXT-A", "KUBE-EXT-B"), NODE_PORT],
    [LOOPBACK_COUNTED.replace("30080", "30081"), NODE_PORT],
])
def test_counting_rule_that_decides_something_is_a_difference(current: list[str]) -> None:
    wanted = [rule for rule in (NODE_PORT, OTHER_PORT) if rule in current]
    assert not same_chain(current, Chain("X", wanted), IPV4)
    assert not same_chain(current, Chain("X", wanted, ordered=False), IPV4)


def test_several_counting_rules_before_one_are_all_left_out() -> None:
    other = LOOPBACK_COUNTED.replace("localhost_nps_accepted_pkts", "more")
    assert decisions([LOOPBACK_COUNTED, other, NODE_PORT], IPV4) == decisions([NODE_PORT], IPV4)


def test_tail_stays_behind_the_rest() -> None:
    wanted = Chain("X", ["-j A", "-j B", "-j LAST"], ordered=False, tail=1)
    assert same_chain(["-j B", "-j A", "-j LAST"], wanted, IPV4)
    assert not same_chain(["-j LAST", "-j A", "-j B"], wanted, IPV4)
    assert not same_chain(["-j A", "-j LAST"], wanted, IPV4)
    assert not same_chain([], wanted, IPV4)


def test_equal_rules_are_counted() -> None:
    wanted = Chain("X", ["-j A", "-j A", "-j B"], ordered=False)
    assert same_chain(["-j A", "-j B", "-j A"], wanted, IPV4)
    assert not same_chain(["-j A", "-j B", "-j B"], wanted, IPV4)
    assert not same_chain(["-j A", "-j B"], wanted, IPV4)


def test_order_matters_where_it_is_not_said_that_it_does_not() -> None:
    assert not same_chain(["-j B", "-j A"], Chain("X", ["-j A", "-j B"]), IPV4)


def test_content_of_a_chain_that_only_has_to_exist_is_nobodys_business() -> None:
    assert same_chain(["-j A"], Chain("X", (), exists_only=True), IPV4)


@pytest.mark.parametrize("ordered", [True, False])
def test_text_that_cannot_be_read_is_a_difference(ordered: bool) -> None:
    assert not same_chain(['-m comment --comment "open'], Chain("X", ["-j A"], ordered=ordered), IPV4)


def test_changed_rules_cancel_one_by_one() -> None:
    assert changed_rules(["a", "b", "a", "c"], ["c", "a", "d"]) == (["a", "b"], ["d"])
