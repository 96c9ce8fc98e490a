# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node on which Felix has converged needs no change, and a part that goes leaves the others alone."""

from __future__ import annotations

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.calico import floating, hosts, loops, masq
from ansible_collections.metal.nodenet.plugins.module_utils.calico.floating_ips import read_mappings
from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import read_pools
from ansible_collections.metal.nodenet.plugins.module_utils.calico.service_cidrs import read_cidrs
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, Desired, Table
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan, plan_family

NAT = """\
-A PREROUTING -m comment --comment "cali:6gwbT8clXdHdC1b1" -j cali-PREROUTING
-A OUTPUT -m comment --comment "cali:tVnHkvAo15HuiPy0" -j cali-OUTPUT
-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING
-A POSTROUTING -m comment --comment "cali:0i8pjzKKPyA34aQD" -j cali-POSTROUTING
-A cali-OUTPUT -m comment --comment "cali:GBTAv2p5CwevEyJm" -j cali-fip-dnat
-A cali-POSTROUTING -m comment --comment "cali:Z-c7XtVd2Bq7s_hA" -j cali-fip-snat
-A cali-POSTROUTING -m comment --comment "cali:nYKhEzDlr11Jccal" -j cali-nat-outgoing
-A cali-POSTROUTING -o vxlan.calico -m comment --comment "cali:ZUy_r64wRDl4JBc4" -j MASQUERADE --random-fully
-A cali-PREROUTING -m comment --comment "cali:r6XmIziWUJsdOK6Z" -j cali-fip-dnat
-A cali-fip-dnat -d 172.16.1.3/32 -m comment --comment "cali:tNLwGk9z1UZNPNbW" -j DNAT --to-destination 10.0.240.2
-A cali-fip-snat -s 10.0.240.2/32 -d 10.0.240.2/32 -m comment --comment "cali:DweygdPL2z-tP8xi" \
-j SNAT --to-source 172.16.1.3 --random-fully
-A cali-nat-outgoing -m comment --comment "cali:W_qq_N2KSTWyCvrX" -m set --match-set cali40masq-ipam-pools src \
-m set ! --match-set cali40network-ip-pools dst -j MASQUERADE --random-fully
"""
FILTER = """\
-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD
-A FORWARD -m comment --comment "cali:mp77cMpurHhyjLrM" -j MARK --set-xmark 0x10000/0x10000
-A cali-FORWARD -m comment --comment "cali:W_vvds1Nw3n9QE2f" -j MARK --set-xmark 0x0/0x1a0000
-A cali-FORWARD -m comment --comment "cali:hQ7Oc16wmUtLuneJ" -j cali-to-hep-forward
-A cali-FORWARD -m comment --comment "cali:rnKNH2WxGcRQcIlD" -j cali-cidr-block
-A cali-cidr-block -d 1.2.3.4/32 -m comment --comment "cali:qtp40dcPiH3LY35u" -j DROP
-A cali-cidr-block -d 10.96.0.0/12 -m comment --comment "cali:pcGY_b8CM3nZzGQO" -j DROP
-A cali-forward-check -m comment --comment "cali:Pbldlb4FaULvpdD8" -m conntrack --ctstate RELATED,ESTABLISHED \
-j RETURN
-A cali-forward-check -m comment --comment "cali:xxxxxxxxxxxxxxxx" -m comment --comment "To kubernetes service" \
-m set ! --match-set cali40this-host dst -j cali-set-endpoint-mark
-A cali-set-endpoint-mark -i cali12345 -m comment --comment "cali:yyyyyyyyyyyyyyyy" -g cali-sm-cali12345
"""
EMPTY = {
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING", "KUBE-POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT", "cali-to-hep-forward", "cali-sm-cali12345"),
}


def felix_node() -> dict[str, Table]:
    tables = {}
    for name, text in (("nat", NAT), ("filter", FILTER)):
        chains: dict[str, list[str]] = {chain: [] for chain in EMPTY[name]}
        for line in text.splitlines():
            _append, chain, rule = line.split(" ", 2)
            chains.setdefault(chain, []).append(rule)
        tables[name] = Table(chains, {chain: "ACCEPT" for chain in EMPTY[name] if chain.isupper() and "-" not in chain})
    return tables


def parts(insert_mode: str = "insert") -> dict[str, Desired]:
    pools, _warnings = read_pools([{"cidr": "10.244.0.0/16", "masquerade": True}])
    fips, _warnings = read_mappings([{"external": "172.16.1.3", "internal": "10.0.240.2"}])
    cidrs, _warnings = read_cidrs(["10.96.0.0/12", "1.2.3.4/32"])
    return {
        "masq": masq.desired(pools, masq.MasqOptions(insert_mode=insert_mode), IPV4)[0],
        "floating": floating.desired(fips, floating.FloatingOptions(insert_mode=insert_mode), IPV4)[0],
        "loops": loops.desired(cidrs, loops.LoopOptions(insert_mode=insert_mode), IPV4)[0],
        "hosts": hosts.desired([], hosts.HostOptions(forward_check=True, nodeport_ranges=[]), IPV4)[0],
    }


def touched(plan: FamilyPlan) -> set[str]:
    """Every chain that the plan writes, edits or removes."""
    return {
        name
        for table in plan.tables
        for name in [
            *(write.chain.name for write in table.writes),
            *(edit.parent for edit in table.parents),
            *table.removals,
        ]
    }


@pytest.mark.parametrize("insert_mode", ["insert", "append"])
@pytest.mark.parametrize("part", ["masq", "floating", "loops", "hosts"])
def test_f037_a_converged_node_needs_no_change(part: str, insert_mode: str) -> None:
    plan = plan_family(felix_node(), parts(insert_mode)[part])
    assert touched(plan) == set()


def test_f037_a_range_that_felix_has_twice_is_no_drift() -> None:
    node = felix_node()
    block = node["filter"].chains["cali-cidr-block"]
    block.insert(1, block[0].replace("qtp40dcPiH3LY35u", "zzzzzzzzzzzzzzzz"))
    assert touched(plan_family(node, parts()["loops"])) == set()
    block.append(block[0])
    assert touched(plan_family(node, parts()["loops"])) == {"cali-cidr-block"}


def test_f037_a_rule_that_is_gone_comes_back_with_the_id_of_felix() -> None:
    node = felix_node()
    whole = list(node["nat"].chains["cali-POSTROUTING"])
    del node["nat"].chains["cali-POSTROUTING"][1]
    plan = plan_family(node, parts()["masq"])
    assert touched(plan) == {"cali-POSTROUTING"}
    [edit] = plan.tables[0].parents
    assert edit.after == whole


@pytest.mark.parametrize(
    ("part", "gone"),
    [
        ("masq", {"cali-nat-outgoing", "cali-POSTROUTING"}),
        # Nobody else has entries in two of the shared chains, so they go with their hooks.
        (
            "floating",
            {
                "cali-fip-dnat",
                "cali-fip-snat",
                "cali-POSTROUTING",
                "cali-PREROUTING",
                "cali-OUTPUT",
                "PREROUTING",
                "OUTPUT",
            },
        ),
        ("loops", {"cali-cidr-block", "cali-FORWARD"}),
        ("hosts", {"cali-forward-check", "cali-set-endpoint-mark"}),
    ],
)
def test_f042_a_part_that_goes_leaves_the_others(part: str, gone: set[str]) -> None:
    nothing = {
        "masq": masq.nothing(IPV4),
        "floating": floating.nothing(IPV4),
        "loops": loops.nothing(IPV4),
        "hosts": hosts.nothing(IPV4),
    }
    assert touched(plan_family(felix_node(), nothing[part])) == gone
