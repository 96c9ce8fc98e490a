# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""F032 for the Calico modules: where the jumps to cali- chains stand in the built-in chains."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import calico_masq, floating_ip, service_loop_block
from support.calico import FLOATING, LOOPS, MASQ, MODULES, four_ways, rules, shown
from support.node import Node
from support.shims import Shims

PLACES = [(floating_ip, "nat", "PREROUTING"), (floating_ip, "nat", "OUTPUT"),
          (service_loop_block, "filter", "FORWARD")]
HOOK = {
    "PREROUTING": '-A PREROUTING -m comment --comment "cali:6gwbT8clXdHdC1b1" -j cali-PREROUTING',
    "OUTPUT": '-A OUTPUT -m comment --comment "cali:tVnHkvAo15HuiPy0" -j cali-OUTPUT',
    "FORWARD": '-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD',
    "POSTROUTING": '-A POSTROUTING -m comment --comment "cali:0i8pjzKKPyA34aQD" -j cali-POSTROUTING',
}
#: The jump as versions had it that did not put it to the very end.
OLD_HOOK = '-A POSTROUTING -m comment --comment "cali:O3lYWMrLQYEMJtB5" -j cali-POSTROUTING'


def foreign(one: Node, table: str, chain: str, operation: str, number: int = 1) -> str:
    """Have somebody else put a jump into a built-in chain; the rule as the dump has it."""
    one.load("ipv4", f"*{table}\n:OTHER{number} - [0:0]\n{operation} {chain} -s 10.9.{number}.0/24 -j OTHER{number}\n"
                     "COMMIT\n")
    return f"-A {chain} -s 10.9.{number}.0/24 -j OTHER{number}"


@pytest.mark.parametrize(("module", "table", "chain"), PLACES, ids=[chain for *_rest, chain in PLACES])
def test_f032_a_foreign_jump_in_front_is_one_move_and_then_rest(kube_node: Node, shims: Shims, module: ModuleType,
                                                                table: str, chain: str) -> None:
    kube_node.module(module=module, **MODULES[module], backend=kube_node.backend)
    other = foreign(kube_node, table, chain, "-I")
    assert rules(kube_node, table, chain) == [other, HOOK[chain]]
    for name in ("iptables-restore", f"iptables-{kube_node.backend}-restore"):
        shims.add(name, 'tee -a "$HERE/input" | "$REAL" "$@"')
    predicted = kube_node.module(check=True, module=module, **MODULES[module])
    result = kube_node.module(module=module, **MODULES[module], environment=shims.environment)
    assert predicted["diff"] == result["diff"]
    assert shown(result, f"ipv4 {table}") == [f"-{HOOK[chain]}  # position 2", f"+{HOOK[chain]}  # position 1"]
    assert result["plan"]["rules"] == {"added": 0, "changed": 1, "removed": 0}
    assert [line for line in shims.log("input") if line.startswith("-")] == [
        f"-D{HOOK[chain][2:]}", f"-I {chain} 1 {HOOK[chain].split(' ', 2)[2]}"]
    assert rules(kube_node, table, chain) == [HOOK[chain], other]
    four_ways_rest(kube_node, module)


def four_ways_rest(one: Node, module: ModuleType, **options: Any) -> None:
    for check in (True, False):
        result = one.module(check=check, module=module, **MODULES[module], **options)
        assert (result["changed"], result["diff"]) == (False, [])


@pytest.mark.parametrize(("module", "table", "chain"), PLACES, ids=[chain for *_rest, chain in PLACES])
def test_append_goes_to_the_end_and_then_stays_whoever_comes(kube_node: Node, module: ModuleType, table: str,
                                                             chain: str) -> None:
    first = foreign(kube_node, table, chain, "-A")
    four_ways(kube_node, module, **MODULES[module], insert_mode="append", backend=kube_node.backend)
    assert rules(kube_node, table, chain) == [first, HOOK[chain]]
    front = foreign(kube_node, table, chain, "-I", 2)
    behind = foreign(kube_node, table, chain, "-A", 3)
    four_ways_rest(kube_node, module, insert_mode="append")
    assert rules(kube_node, table, chain) == [front, first, HOOK[chain], behind]


@pytest.mark.parametrize(("module", "table", "chain"), PLACES, ids=[chain for *_rest, chain in PLACES])
def test_insert_goes_to_the_head_and_a_switch_of_the_mode_moves_at_most_once(
        kube_node: Node, module: ModuleType, table: str, chain: str) -> None:
    other = foreign(kube_node, table, chain, "-A")
    four_ways(kube_node, module, **MODULES[module], backend=kube_node.backend)
    assert rules(kube_node, table, chain) == [HOOK[chain], other]
    four_ways_rest(kube_node, module, insert_mode="append")
    kube_node.iptables("-t", table, "-D", *HOOK[chain].replace('"', "").split()[1:])
    four_ways(kube_node, module, **MODULES[module], insert_mode="append")
    assert rules(kube_node, table, chain) == [other, HOOK[chain]]
    four_ways(kube_node, module, **MODULES[module], insert_mode="insert")
    assert rules(kube_node, table, chain) == [HOOK[chain], other]


@pytest.mark.parametrize("insert_mode", ["insert", "append"])
@pytest.mark.parametrize("module", [calico_masq, floating_ip], ids=["calico_masq", "floating_ip"])
def test_f032_the_jump_from_postrouting_is_the_last_in_every_mode(kube_node: Node, module: ModuleType,
                                                                  insert_mode: str) -> None:
    first = foreign(kube_node, "nat", "POSTROUTING", "-A")
    four_ways(kube_node, module, **MODULES[module], insert_mode=insert_mode, backend=kube_node.backend)
    assert rules(kube_node, "nat", "POSTROUTING") == [first, HOOK["POSTROUTING"]]
    front = foreign(kube_node, "nat", "POSTROUTING", "-I", 2)
    four_ways_rest(kube_node, module, insert_mode=insert_mode)
    behind = foreign(kube_node, "nat", "POSTROUTING", "-A", 3)
    result = four_ways(kube_node, module, **MODULES[module], insert_mode=insert_mode)
    assert shown(result, "ipv4 nat") == [f"-{HOOK['POSTROUTING']}  # position 3",
                                         f"+{HOOK['POSTROUTING']}  # position 4"]
    assert rules(kube_node, "nat", "POSTROUTING") == [front, first, behind, HOOK["POSTROUTING"]]


def test_before_3_28_2_the_jump_from_postrouting_follows_the_mode(kube_node: Node) -> None:
    other = foreign(kube_node, "nat", "POSTROUTING", "-A")
    options = {"calico_version": "3.28.1", "backend": kube_node.backend}
    four_ways(kube_node, calico_masq, **MASQ, **options)
    assert rules(kube_node, "nat", "POSTROUTING") == [OLD_HOOK, other]
    four_ways(kube_node, calico_masq, **MASQ, calico_version="3.28.2")
    assert rules(kube_node, "nat", "POSTROUTING") == [other, HOOK["POSTROUTING"]]
    four_ways(kube_node, calico_masq, state="absent")
    four_ways(kube_node, calico_masq, **MASQ, **options, insert_mode="append")
    assert rules(kube_node, "nat", "POSTROUTING") == [other, OLD_HOOK]


def test_a_jump_past_the_shared_chain_is_a_leftover(kube_node: Node) -> None:
    """As Felix does: a rule of a built-in chain that leads straight to a chain of ours is not Felix's way to it."""
    for module, arguments in ((floating_ip, FLOATING), (service_loop_block, LOOPS)):
        four_ways(kube_node, module, **arguments, backend=kube_node.backend)
    wanted = kube_node.saves()
    kube_node.iptables("-t", "nat", "-A", "PREROUTING", "-j", "cali-fip-dnat")
    kube_node.iptables("-I", "FORWARD", "-s", "192.0.2.0/24", "-j", "cali-cidr-block")
    four_ways(kube_node, floating_ip, **FLOATING)
    four_ways(kube_node, service_loop_block, **LOOPS)
    assert kube_node.saves() == wanted
