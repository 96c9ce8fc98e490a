# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules, chains and policies of others: byte-identical whatever we do."""

from __future__ import annotations

import re

import pytest
from support.builders import endpoint_slice, service
from support.foreign import foreign_part, load_foreign
from support.node import Node
from support.shims import Shims

CLUSTER = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5", "10.244.2.5")]}


@pytest.mark.parametrize("layout", ["1.24", "1.30", "1.36"])
def test_f020_f029_f041_foreign_state_is_the_same_after_apply_change_and_removal(kube_node: Node, layout: str) -> None:
    before = load_foreign(kube_node)
    assert ":INPUT DROP [0:0]" in before["ipv4"]
    options = {"layout": layout, "backend": kube_node.backend}
    for arguments in ({**CLUSTER}, {"services": [service()], "endpoint_slices": []}, {"state": "absent"}):
        assert kube_node.four_ways(**arguments, **options)["changed"]
        assert {family: foreign_part(dump) for family, dump in kube_node.saves().items()} == before


def test_f042_removal_cleans_every_table_of_both_families(kube_node: Node) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    for family in ("ipv4", "ipv6"):
        for table in ("mangle", "nat", "filter"):
            assert "KUBE-PROXY-CANARY" in kube_node.exec(kube_node.tool(family, "-save"), "-t", table)
    kube_node.four_ways(state="absent")
    assert "KUBE-" not in "".join(kube_node.saves().values())


def test_f002_a_rule_that_the_dump_shows_wrong_is_never_echoed(kube_node: Node, shims: Shims) -> None:
    """An older save tool cannot print a match of a newer one; the conditional DROP looks like one without condition."""
    load_foreign(kube_node)
    for family in ("ipv4", "ipv6"):
        shims.add(kube_node.tool(family, "-save"),
                  '"$REAL" "$@" | sed "s/-m mark --mark 0x8000.0x8000 -j DROP/-j DROP/"')
        shims.add(kube_node.tool(family, "-restore"), 'tee -a "$HERE/input" | "$REAL" "$@"')
        base = kube_node.tool(family, "-save").replace(f"-{kube_node.backend}", "")
        shims.add(base, f'exec "$HERE/{kube_node.tool(family, "-save")}" "$@"')
        shims.add(base.replace("save", "restore"), f'exec "$HERE/{kube_node.tool(family, "-restore")}" "$@"')
    before = {family: foreign_part(dump) for family, dump in kube_node.saves().items()}
    result = kube_node.module(**CLUSTER, backend=kube_node.backend, environment=shims.environment)
    assert result["changed"]
    assert shims.log("input"), "the stand-in for restore was not used"
    assert not [line for line in shims.log("input") if line.endswith("-j DROP") and "INPUT" in line]
    assert {family: foreign_part(dump) for family, dump in kube_node.saves().items()} == before


def test_f008_copies_of_our_jump_are_folded_into_one(kube_node: Node) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    clean = kube_node.saves()
    for _copy in range(2):
        kube_node.iptables("-t", "nat", "-I", "PREROUTING", "-m", "comment", "--comment",
                           "kubernetes service portals", "-j", "KUBE-SERVICES")
    kube_node.iptables("-t", "nat", "-A", "PREROUTING", "-m", "comment", "--comment",
                       "kubernetes service portals", "-j", "KUBE-SERVICES")
    assert kube_node.four_ways(**CLUSTER)["changed"]
    assert kube_node.saves() == clean


def test_f021_leftovers_that_lead_to_each_other_go_in_one_run(kube_node: Node) -> None:
    kube_node.load("ipv4", """*nat
:KUBE-XLB-OLD - [0:0]
:KUBE-SVC-OLD - [0:0]
:KUBE-SEP-OLD - [0:0]
-A OUTPUT -d 203.0.113.77/32 -j KUBE-XLB-OLD
-A KUBE-XLB-OLD -j KUBE-SVC-OLD
-A KUBE-SVC-OLD -j KUBE-SEP-OLD
-A KUBE-SEP-OLD -p tcp -m tcp -j DNAT --to-destination 10.244.9.9:80
COMMIT
""")
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    assert "-OLD" not in kube_node.save("ipv4")


def test_f021_a_rule_of_others_holds_a_leftover_which_stays_empty_and_the_rest_is_done(kube_node: Node) -> None:
    kube_node.load("ipv4", """*nat
:KUBE-SVC-OLD - [0:0]
:KUBE-SEP-OLD - [0:0]
:MINE - [0:0]
-A MINE -d 203.0.113.77/32 -j KUBE-SVC-OLD
-A KUBE-SVC-OLD -j KUBE-SEP-OLD
-A KUBE-SEP-OLD -p tcp -m tcp -j DNAT --to-destination 10.244.9.9:80
COMMIT
""")
    result = kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    dump = kube_node.save("ipv4")
    assert "-A MINE -d 203.0.113.77/32 -j KUBE-SVC-OLD" in dump
    assert "-A KUBE-SVC-OLD" not in dump
    assert "KUBE-SEP-OLD" not in dump
    assert any("KUBE-SVC-OLD" in warning and "MINE" in warning for warning in result["warnings"])


def test_f028_chains_that_a_boot_time_file_brought_back_go(kube_node: Node) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    wanted = kube_node.saves()
    kube_node.load("ipv4", """*nat
:KUBE-SVC-OLD - [0:0]
:KUBE-SEP-OLD - [0:0]
-A KUBE-SEP-OLD -p tcp -m tcp -j DNAT --to-destination 10.244.9.9:80
-A KUBE-SVC-OLD -j KUBE-SEP-OLD
-I KUBE-SERVICES -d 10.96.9.9/32 -p tcp -m comment --comment "old/gone cluster IP" -m tcp --dport 80 -j KUBE-SVC-OLD
COMMIT
""")
    assert kube_node.four_ways(**CLUSTER)["changed"]
    assert kube_node.saves() == wanted


def test_f030_a_flush_by_a_firewall_reload_is_repaired_but_chains_of_others_are_not_made_up(kube_node: Node) -> None:
    load_foreign(kube_node)
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    filled = kube_node.save("ipv4")
    kube_node.iptables("-t", "nat", "-F")
    kube_node.iptables("-t", "nat", "-X")
    result = kube_node.four_ways(**CLUSTER)
    assert result["changed"]
    after = kube_node.save("ipv4")
    assert "CNI-HOSTPORT" not in after
    assert [line for line in after.splitlines() if "KUBE-" in line] == [
        line for line in filled.splitlines() if "KUBE-" in line]
    shown = next(entry["after"] for entry in result["diff"] if entry["after_header"] == "ipv4 nat")
    for line in after.split("*nat")[1].split("COMMIT")[0].splitlines():
        if line.startswith("-A"):
            assert line in shown


def test_an_obsolete_chain_of_another_layout_goes_with_its_jumps(kube_node: Node) -> None:
    kube_node.four_ways(**CLUSTER, layout="1.36", backend=kube_node.backend)
    kube_node.four_ways(**CLUSTER, layout="1.24")
    assert "KUBE-PROXY-FIREWALL" not in kube_node.save("ipv4")
    kube_node.four_ways(**CLUSTER, layout="1.36")
    assert kube_node.save("ipv4").count("-j KUBE-PROXY-FIREWALL") == 3


def test_what_a_kubelet_shares_stays_when_we_go(kube_node: Node) -> None:
    kube_node.load("ipv4", "*mangle\n:KUBE-IPTABLES-HINT - [0:0]\n:KUBE-KUBELET-CANARY - [0:0]\nCOMMIT\n")
    kube_node.four_ways(**CLUSTER)
    kube_node.four_ways(state="absent")
    left = [line for line in kube_node.save("ipv4").splitlines() if "KUBE-" in line]
    assert {re.search(r"KUBE-[A-Z-]+", line).group() for line in left} == {  # type: ignore[union-attr]
        "KUBE-IPTABLES-HINT", "KUBE-KUBELET-CANARY", "KUBE-FIREWALL"}
