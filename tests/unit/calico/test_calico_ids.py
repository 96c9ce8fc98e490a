# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Ids of rules: what Felix itself produced, and what the verified algorithm gives for further texts."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.calico import pieces
from ansible_collections.metal.nodenet.plugins.module_utils.calico.floating import FloatingOptions
from ansible_collections.metal.nodenet.plugins.module_utils.calico.floating import desired as floating
from ansible_collections.metal.nodenet.plugins.module_utils.calico.hosts import HostOptions
from ansible_collections.metal.nodenet.plugins.module_utils.calico.hosts import desired as hosts
from ansible_collections.metal.nodenet.plugins.module_utils.calico.masq import MasqOptions
from ansible_collections.metal.nodenet.plugins.module_utils.calico.masq import desired as masq
from ansible_collections.metal.nodenet.plugins.module_utils.calico.options import CalicoOptions
from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import read_pools
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import (
    FelixRule,
    Piece,
    felix_text,
    ids,
    join_id,
    render,
    split_id,
)
from ansible_collections.metal.nodenet.plugins.module_utils.calico.shared import hook
from ansible_collections.metal.nodenet.plugins.module_utils.calico.versions import Mark
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import parse_network
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import APPEND, HEAD, IPV4, IPV6, LAST, Jump
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.quoting import tokenise

OLD_POOLS = "-m set --match-set cali40masq-ipam-pools src -m set ! --match-set cali40all-ipam-pools dst"
ACCEPTED = '-m comment --comment "Policy explicitly accepted packet." -m mark --mark 0x10000/0x10000 --jump ACCEPT'
NO_RANDOM = {IPV4: False, IPV6: False}


@pytest.mark.parametrize(
    ("chain", "texts", "wanted"),
    [
        ("FORWARD", ["--jump cali-FORWARD"], ["wUHhoiAYhphO9Mso"]),
        ("INPUT", ["--jump cali-INPUT"], ["Cz_u1IQiXIMmKD4c"]),
        ("OUTPUT", ["--jump cali-OUTPUT"], ["tVnHkvAo15HuiPy0"]),
        ("PREROUTING", ["--jump cali-PREROUTING"], ["6gwbT8clXdHdC1b1"]),
        ("POSTROUTING", ["--jump cali-POSTROUTING"], ["O3lYWMrLQYEMJtB5"]),
        ("POSTROUTING*appends*", ["--jump cali-POSTROUTING"], ["0i8pjzKKPyA34aQD"]),
        (
            "FORWARD*appends*",
            [ACCEPTED, "--jump MARK --set-mark 0x10000/0x10000"],
            ["S93hcgKJrXEqnTfs", "mp77cMpurHhyjLrM"],
        ),
        ("cali-PREROUTING", ["--jump cali-fip-dnat"], ["r6XmIziWUJsdOK6Z"]),
        ("cali-OUTPUT", ["--jump cali-fip-dnat"], ["GBTAv2p5CwevEyJm"]),
        (
            "cali-POSTROUTING",
            ["--jump cali-fip-snat", "--jump cali-nat-outgoing"],
            ["Z-c7XtVd2Bq7s_hA", "nYKhEzDlr11Jccal"],
        ),
        ("cali-nat-outgoing", [f"{OLD_POOLS} --jump MASQUERADE --random-fully"], ["flqWnvo8yq4ULQLa"]),
        ("cali-nat-outgoing", [f"{OLD_POOLS} --jump MASQUERADE"], ["Dw4T8UWPnCLxRJiI"]),
        (
            "FORWARD",
            ["--jump DROP", "--jump ACCEPT", "--goto cali-foobar"],
            ["hecdSCslEjdBPBPo", "plvr29-ZiKUwbzDV", "vKEEfdy_QeXafpRE"],
        ),
        ("FORWARD*appends*", ["--jump RETURN", "--jump DROP"], ["TQaqIrW2HQal-sdp", "EDon0sGIntr1CQga"]),
        (
            "cali-foobar",
            ["--jump ACCEPT", "--jump DROP", "--jump RETURN"],
            ["42h7Q64_2XDzpwKe", "0sUFHicPNNqNyNx8", "yilSOZ62PxMhMnS9"],
        ),
        ("cali-correct", ["--jump ACCEPT"], ["dCKeL4JtUEDC2GQu"]),
    ],
)
def test_ids_are_those_of_felix(chain: str, texts: list[str], wanted: list[str]) -> None:
    assert ids(chain, texts) == wanted


@pytest.mark.parametrize(
    ("family", "values", "wanted"),
    [
        (IPV4, {}, ["W_qq_N2KSTWyCvrX"]),
        (IPV4, {"random_fully": NO_RANDOM}, ["TTPfnvdxBZ0m0GOs"]),
        (IPV4, {"exclusions": "pools_and_hosts"}, ["AlfX5WPCYU7zmGli"]),
        (IPV4, {"interface_filter": "eth+"}, ["l7o-dwt4BvZsDQLh"]),
        (IPV4, {"nat_outgoing_address": "192.168.0.1"}, ["M7jH8CHVg28aMcm-"]),
        (
            IPV4,
            {"nat_port_range": "32768:65535"},
            ["gI9Asi8Jp1_Q1oRx", "xX2u42UeumUatAEK", "jO8UrNhhLxFBYXWs", "PSo3_68ZqceyPIoi", "q1Wys3wIobTQStVS"],
        ),
        (
            IPV4,
            {"nat_outgoing_address": "192.168.0.1", "nat_port_range": "99:100"},
            ["zaQZBPZ0Jfg9Zzhm", "_RGbxMNKyWqWIrr1", "Va_qazqf6zVRC4tw", "v2Hb7gCd51l3vIEq", "9pmvZzPUIGRTdiqq"],
        ),
        (IPV6, {}, ["Y4sh__lNLsPKa_Pw"]),
        (IPV6, {"random_fully": NO_RANDOM}, ["MbEf8tx9tC_Firpf"]),
        (IPV4, {"dataplane": "bpf"}, ["A1A6sF9oZceIGH7U"]),
        (IPV4, {"calico_version": "3.30"}, ["flqWnvo8yq4ULQLa"]),
        (IPV4, {"calico_version": "3.30", "random_fully": NO_RANDOM}, ["Dw4T8UWPnCLxRJiI"]),
    ],
)
def test_ids_of_every_way_to_masquerade(family: str, values: dict[str, Any], wanted: list[str]) -> None:
    pools, _warnings = read_pools(
        [{"cidr": "10.244.0.0/16", "masquerade": True}, {"cidr": "2001:db8:1::/64", "masquerade": True}]
    )
    state, _warnings = masq(pools, MasqOptions(**values), family)
    rules = state.tables["nat"].chains["cali-nat-outgoing"].rules
    assert [split_id(rule)[1] for rule in rules] == wanted


def test_ids_of_bpf_count_the_loopback_rule() -> None:
    masquerading, _warnings = masq([], MasqOptions(dataplane="bpf"), IPV4)
    to_self, outgoing = (entry.rule for entry in masquerading.tables["nat"].shared[0].entries)
    mapping, _warnings = floating([], FloatingOptions(dataplane="bpf"), IPV4)
    assert [one.name for one in mapping.tables["nat"].shared if one.entries] == ["cali-POSTROUTING"]
    # The part that has nothing to do with the loopback rule gives the same ids.
    for shared in (masquerading.tables["nat"].shared[0], mapping.tables["nat"].shared[-1]):
        stamped = shared.stamp([to_self, "-j cali-fip-snat", outgoing])
        assert [split_id(rule)[1] for rule in stamped] == ["ggLCSZ9_r9uXnHIo", "THrmnLhAi3cxMLBO", "ez7mOi3T8N6rtIlJ"]


@pytest.mark.parametrize(
    ("cidr", "target", "family", "wanted"),
    [
        ("10.96.0.0/17", pieces.DROP, IPV4, "P39I-iOWKGc9EBjR"),
        ("10.96.0.0/17", pieces.reject(IPV4), IPV4, "r0FKi0wcJa_YTQNM"),
        ("fd5f::/119", pieces.DROP, IPV6, "8u27XWm-oNgM46vc"),
    ],
)
def test_ids_of_blocked_ranges(cidr: str, target: Piece, family: str, wanted: str) -> None:
    rule = FelixRule((pieces.destination(cidr, parse_network(cidr)), target))
    assert ids("cali-cidr-block", [rule.felix()]) == [wanted]
    assert parse_network(cidr).family == family


def test_id_of_a_metadata_server() -> None:
    state, _warnings = floating([], FloatingOptions(metadata_address="10.0.0.1:1234"), IPV4)
    shared = state.tables["nat"].shared[0]
    assert shared.stamp([entry.rule for entry in shared.entries])[1] == (
        '-d 169.254.169.254/32 -p tcp -m comment --comment "cali:tHOkDa2Fvy8wABlv" -m multiport --dports 80 '
        "-j DNAT --to-destination 10.0.0.1:1234"
    )


def test_ids_of_an_ipvs_node_in_use() -> None:
    state, _warnings = hosts([], HostOptions(forward_check=True, calico_version="3.29"), IPV4)
    rules = state.tables["filter"].chains["cali-forward-check"].rules
    assert [split_id(rule)[1] for rule in rules] == [
        "Pbldlb4FaULvpdD8",
        "ZD-6UxuUtGW-xtzg",
        "CbPfUajQ2bFVnDq4",
        "jmhU0ODogX-Zfe5g",
    ]
    # Marks and directions that only Felix's own chains have.
    none = Mark(0x100000, 0xFFF00000)
    forward = [
        "-m mark ! --mark 0x100000/0xfff00000 --jump cali-from-endpoint-mark",
        FelixRule((pieces.out_interface("cali+"), pieces.jump("cali-to-wl-dispatch"))).felix(),
        "--jump cali-to-hep-forward",
        "--jump MARK --set-mark 0/0xfff00000",
        ACCEPTED,
    ]
    assert ids("cali-forward-endpoint-mark", forward) == [
        "O0SmFDrnm7KggWqW",
        "aFl0WFKRxDqj8oA6",
        "AZKVrO3i_8cLai5f",
        "96HaP1sFtb-NYoYA",
        "VxO6hyNWz62YEtul",
    ]
    assert state.tables["filter"].chains["cali-set-endpoint-mark"].rules[-1].endswith(pieces.set_mark(none).saved)


@pytest.mark.parametrize(
    ("name", "options", "position", "rule_id"),
    [
        ("cali-PREROUTING", {}, HEAD, "6gwbT8clXdHdC1b1"),
        ("cali-OUTPUT", {"insert_mode": "append"}, APPEND, "tVnHkvAo15HuiPy0"),
        ("cali-FORWARD", {"insert_mode": "append"}, APPEND, "wUHhoiAYhphO9Mso"),
        ("cali-POSTROUTING", {}, LAST, "0i8pjzKKPyA34aQD"),
        ("cali-POSTROUTING", {"insert_mode": "append"}, LAST, "0i8pjzKKPyA34aQD"),
        ("cali-POSTROUTING", {"calico_version": "3.28"}, LAST, "0i8pjzKKPyA34aQD"),
        ("cali-POSTROUTING", {"calico_version": "3.28.1"}, HEAD, "O3lYWMrLQYEMJtB5"),
        ("cali-POSTROUTING", {"calico_version": "3.27", "insert_mode": "append"}, APPEND, "O3lYWMrLQYEMJtB5"),
    ],
)
def test_hooks_stand_where_felix_puts_them(name: str, options: dict[str, Any], position: str, rule_id: str) -> None:
    jump = hook(name, CalicoOptions(**options))
    assert jump.parent == name[len("cali-"):]
    assert (jump.position, jump.rule) == (position, f'-m comment --comment "cali:{rule_id}" -j {name}')
    bare = hook(name, CalicoOptions(rule_hashes=False, **options))
    assert (bare.position, bare.rule) == (position, f"-j {name}")


def test_hook_of_postrouting_in_bpf_follows_the_insert_mode() -> None:
    jump = hook("cali-POSTROUTING", MasqOptions(dataplane="bpf"))
    assert jump == Jump("POSTROUTING", '-m comment --comment "cali:O3lYWMrLQYEMJtB5" -j cali-POSTROUTING', HEAD)
    assert hook("cali-POSTROUTING", MasqOptions(dataplane="bpf", insert_mode="append")).position == APPEND


def test_a_rule_is_spelled_twice() -> None:
    network = parse_network("10.0.0.0/8")
    rule = FelixRule(
        (
            pieces.destination_ports("80,443"),
            pieces.protocol("tcp"),
            pieces.out_interface("eth+"),
            pieces.in_interface("cali+"),
            pieces.destination("10.0.0.0/8", network),
            pieces.source("10.0.0.0/8", network),
            pieces.set_mark(Mark(0x200000, 0xFFE00000)),
        ),
        "who?",
    )
    assert rule.felix() == (
        '-m comment --comment "who?" -m multiport --destination-ports 80,443 -p tcp --out-interface eth+ '
        "--in-interface cali+ --destination 10.0.0.0/8 --source 10.0.0.0/8 --jump MARK --set-mark 0x200000/0xffe00000"
    )
    assert render("cali-x", [rule], with_ids=False) == [
        '-s 10.0.0.0/8 -d 10.0.0.0/8 -i cali+ -o eth+ -p tcp -m comment --comment "who?" -m multiport --dports 80,443 '
        "-j MARK --set-xmark 0x200000/0xffe00000"
    ]
    [with_id] = render("cali-x", [rule], with_ids=True)
    assert with_id == rule.saved(ids("cali-x", [rule.felix()])[0])
    assert tokenise(with_id)[10:14] == [("-m", False), ("comment", False), ("--comment", False), (
        f"cali:{ids('cali-x', [rule.felix()])[0]}", True)]


@pytest.mark.parametrize(
    ("saved", "bare", "rule_id"),
    [
        ('-m comment --comment "cali:abc_-1" -j X', "-j X", "abc_-1"),
        ("-m comment --comment cali:abc_-1 -j X", "-j X", "abc_-1"),
        ('-o eth0 -p udp -m comment --comment "cali:a" -m udp -j X', "-o eth0 -p udp -m udp -j X", "a"),
        ('-m comment --comment "cali:a"', "", "a"),
        ('-m comment --comment "see cali:a" -j X', '-m comment --comment "see cali:a" -j X', ""),
        ('-m comment --comment "cali:a b" -j X', '-m comment --comment "cali:a b" -j X', ""),
        ("-j X", "-j X", ""),
    ],
)
def test_the_id_is_found_and_nothing_else(saved: str, bare: str, rule_id: str) -> None:
    assert split_id(saved) == (bare, rule_id)


def test_an_id_goes_behind_the_head() -> None:
    assert join_id("! -s 10.0.0.0/8 -o eth0 -p udp -m udp -j X", "a") == (
        '! -s 10.0.0.0/8 -o eth0 -p udp -m comment --comment "cali:a" -m udp -j X'
    )
    assert join_id("-j X", "a") == '-m comment --comment "cali:a" -j X'


def test_how_felix_wrote_what_save_prints() -> None:
    assert felix_text("-i cali+ -m mark --mark 0x0/0x10000 -g cali-x") == (
        "--in-interface cali+ -m mark --mark 0/0x10000 --goto cali-x"
    )
    assert felix_text("-j MARK --set-xmark 0x0/0x1a0000") == "--jump MARK --set-mark 0/0x1a0000"
