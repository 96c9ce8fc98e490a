# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's own addresses, and what belongs to which part."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.calico import floating, hosts, loops, masq
from ansible_collections.metal.nodenet.plugins.module_utils.calico.hosts import (
    HostOptions,
    desired,
    nothing,
    port_splits,
)
from ansible_collections.metal.nodenet.plugins.module_utils.calico.names import set_name
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import split_id
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, IPV4, IPV6, Desired

ADDRESSES = [
    ("127.0.0.0/8", "lo"),
    ("127.0.0.1", "lo"),
    ("192.0.2.10", "eth0"),
    ("192.0.2.10", "eth1"),
    ("10.244.0.0", "tunl0"),
    ("10.96.0.1", "kube-ipvs0"),
    ("169.254.1.1", "cali12345678901"),
    ("172.17.0.1", "docker0"),
    ("::1", "lo"),
    ("fe80::1", "eth0"),
    ("FE80::EEEE:EEEE:EEEE:EEEE", "cali12345678901"),
]


def members(family: str = IPV4, **values: Any) -> set[str]:
    state, _warnings = desired(ADDRESSES, HostOptions(**values), family)
    [only] = state.sets
    assert (only.name, only.type) == (f"cali{family[-1]}0this-host", "hash:ip")
    return set(only.members)


def test_members_are_all_local_addresses_but_those_of_pods_and_services() -> None:
    assert members() == {"127.0.0.0", "127.0.0.1", "192.0.2.10", "10.244.0.0", "172.17.0.1"}
    assert members(IPV6) == {"::1", "fe80::1"}


def test_interfaces_that_are_left_out() -> None:
    everything = members(workload_prefixes=[], exclude_interfaces=[])
    assert everything == {text.partition("/")[0] for text, _interface in ADDRESSES if ":" not in text}
    assert members(workload_prefixes=["eth", "cali"]) == {"127.0.0.0", "127.0.0.1", "10.244.0.0", "172.17.0.1"}
    # A name is the whole name, an expression is a part of it.
    assert members(exclude_interfaces=["kube-ipvs"]) == members(exclude_interfaces=[])
    assert members(exclude_interfaces=["/ipvs/", "/^docker/", "lo"]) == {"192.0.2.10", "10.244.0.0"}
    assert members(exclude_interfaces=["/0$/"]) == {"127.0.0.0", "127.0.0.1", "192.0.2.10"}


def test_an_empty_set_is_said() -> None:
    state, warnings = desired([], HostOptions(), IPV6)
    assert state.sets[0].members == frozenset()
    assert warnings == ["cali60this-host is empty: no interface of the host has a local ipv6 address"]
    assert desired(ADDRESSES, HostOptions(), IPV6)[1] == []


def test_an_address_that_is_none_is_named() -> None:
    with pytest.raises(ValueError, match="addresses: 'eth0' on 192.0.2.1 is not an IP address"):
        desired([("eth0", "192.0.2.1")], HostOptions(), IPV4)


@pytest.mark.parametrize(
    ("ranges", "wanted"),
    [
        ([], []),
        ([80], ["80"]),
        (["80:80", "30000:32767"], ["80,30000:32767"]),
        (["1:2"] * 8, [",".join(["1:2"] * 7), "1:2"]),
        ([*["1:2"] * 7, 80, "90"], [",".join([*["1:2"] * 7, "80"]), "90"]),
        # The last slot stays empty: nothing is taken out of turn.
        ([*["1:2"] * 7, "3:4", 80], [",".join(["1:2"] * 7), "3:4,80"]),
        (list(range(1, 17)), [",".join(str(port) for port in range(1, 16)), "16"]),
    ],
)
def test_ports_are_split_by_the_slots_of_a_match(ranges: list[int | str], wanted: list[str]) -> None:
    assert port_splits(ranges) == wanted


def forward_check(**values: Any) -> list[str]:
    state, _warnings = desired([], HostOptions(forward_check=True, **values), IPV6)
    return [split_id(rule)[0] for rule in state.tables["filter"].chains["cali-forward-check"].rules]


def test_forward_check_has_two_rules_per_split() -> None:
    assert len(forward_check(nodeport_ranges=["1:2"] * 8)) == 6
    assert forward_check(nodeport_ranges=[]) == [
        "-m conntrack --ctstate RELATED,ESTABLISHED -j RETURN",
        '-m comment --comment "To kubernetes service" -m set ! --match-set cali60this-host dst '
        "-j cali-set-endpoint-mark",
    ]


def test_without_forward_check_there_is_only_the_set() -> None:
    state, _warnings = desired(ADDRESSES, HostOptions(), IPV4)
    assert state.tables["filter"].chains == {}
    # On a node with IPVS it may be Felix's.
    assert not state.tables["filter"].owns("cali-forward-check")
    assert nothing(IPV4).tables["filter"].owns("cali-forward-check")


def test_a_rule_for_each_workload_prefix() -> None:
    state, _warnings = desired([], HostOptions(forward_check=True, workload_prefixes=["cali", "tap"]), IPV4)
    chain = state.tables["filter"].chains["cali-set-endpoint-mark"]
    assert [split_id(rule)[0] for rule in chain.rules] == [
        '-i cali+ -m comment --comment "Unknown endpoint" -j DROP',
        '-i tap+ -m comment --comment "Unknown endpoint" -j DROP',
        '-m comment --comment "Non-Cali endpoint mark" -j MARK --set-xmark 0x200000/0xffe00000',
    ]


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"workload_prefixes": [""]}, "workload_prefixes: ''"),
        ({"workload_prefixes": ["cali+"]}, r"workload_prefixes: 'cali\+'"),
        ({"workload_prefixes": ["a" * 15], "forward_check": True}, "workload_prefixes: 'a{15}' is too long"),
        ({"exclude_interfaces": ["a" * 16]}, "exclude_interfaces: 'a{16}' is neither"),
        ({"exclude_interfaces": ["//"]}, "exclude_interfaces: '//' is neither"),
        ({"exclude_interfaces": ["/(/"]}, r"exclude_interfaces: '/\(/' is not a regular expression"),
        ({"exclude_interfaces": [3]}, "exclude_interfaces: 3 is neither"),
        ({"nodeport_ranges": ["2:1"]}, "nodeport_ranges: '2:1'"),
        ({"nodeport_ranges": ["http"]}, "nodeport_ranges: 'http'"),
        ({"max_ipset_size": "9"}, "max_ipset_size: '9'"),
        ({"calico_version": "2.6"}, "calico_version: '2.6'"),
    ],
)
def test_what_is_wrong_with_an_option_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        HostOptions(**values)


def test_names_of_sets_fit() -> None:
    assert set_name(IPV6, "network-ip-pools") == "cali60network-ip-pools"
    assert set_name(IPV4, "a" * 40) == "cali40" + "a" * 25


# --- what a part owns, and what is left of it: nothing ---


def nothings(family: str) -> dict[str, Desired]:
    return {
        "masq": masq.nothing(family),
        "floating": floating.nothing(family),
        "loops": loops.nothing(family),
        "hosts": hosts.nothing(family),
    }


OWNED = {
    "masq": ("nat", {"cali-nat-outgoing"}),
    "floating": ("nat", {"cali-fip-dnat", "cali-fip-snat"}),
    "loops": ("filter", {"cali-cidr-block"}),
    "hosts": ("filter", {"cali-forward-check", "cali-set-endpoint-mark"}),
}
OTHERS = {"cali-PREROUTING", "cali-FORWARD", "cali-INPUT", "cali-from-wl-dispatch", "KUBE-SERVICES", "DOCKER"}


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("part", list(OWNED))
def test_nothing_is_left_of_what_a_part_owns(family: str, part: str) -> None:
    state = nothings(family)[part]
    table, chains = OWNED[part]
    assert state.sets == ()
    assert list(state.tables) == [table]
    wanted = state.tables[table]
    assert not wanted.chains and not wanted.jumps
    assert set(wanted.entries) == chains
    everything = OTHERS.union(*(names for _table, names in OWNED.values()))
    assert {name for name in everything if wanted.owns(name)} == chains
    assert all(shared.entries == () and shared.hooks for shared in wanted.shared)


def test_parts_share_chains_without_sharing_ranks() -> None:
    ranks: dict[str, list[int]] = {}
    for state in nothings(IPV4).values():
        for wanted in state.tables.values():
            for shared in wanted.shared:
                ranks.setdefault(shared.name, []).extend(shared.ranks)
    assert {name: sorted(found) for name, found in ranks.items()} == {
        "cali-POSTROUTING": [-3, -2, -1],
        "cali-PREROUTING": [-2, -1],
        "cali-OUTPUT": [-1],
        "cali-FORWARD": [1],
    }


@pytest.mark.parametrize(
    ("name", "rule", "rank"),
    [
        ("cali-POSTROUTING", '-m comment --comment "cali:x" -j cali-nat-outgoing', -1),
        ("cali-POSTROUTING", "-j cali-nat-outgoing", -1),
        ("cali-POSTROUTING", "-j cali-fip-snat", -2),
        ("cali-POSTROUTING", '-m comment --comment "BPF loopback SNAT" -m mark --mark 0x1/0x1 -j MASQUERADE', -3),
        ("cali-POSTROUTING", "-o tunl0 -j MASQUERADE", None),
        ("cali-POSTROUTING", '-m comment --comment "-j cali-fip-snat" -j ACCEPT', None),
        ("cali-PREROUTING", "-j cali-fip-dnat", -2),
        (
            "cali-PREROUTING",
            '-d 169.254.169.254/32 -p tcp -m comment --comment "cali:x" -m multiport --dports 80 '
            "-j DNAT --to-destination 127.0.0.1:8775",
            -1,
        ),
        ("cali-PREROUTING", "-d 169.254.169.253/32 -p tcp -j DNAT --to-destination 127.0.0.1", None),
        ("cali-OUTPUT", "-j cali-fip-dnat", -1),
        ("cali-FORWARD", "-j cali-cidr-block", 1),
        ("cali-FORWARD", "-j cali-to-hep-forward", None),
    ],
)
def test_ranks_of_rules(name: str, rule: str, rank: int | None) -> None:
    found = [
        shared.rank_of(rule)
        for state in nothings(IPV4).values()
        for wanted in state.tables.values()
        for shared in wanted.shared
        if shared.name == name
    ]
    # Every part of a chain knows all entries.
    assert set(found) == {rank}


def test_sets_of_every_version_are_owned() -> None:
    assert masq.nothing(IPV4).owned_sets == {
        "cali40masq-ipam-pools",
        "cali40network-ip-pools",
        "cali40all-ipam-pools",
        "cali40all-hosts-net",
        "felix-masq-ipam-pools",
        "felix-all-ipam-pools",
    }
    assert masq.nothing(IPV6).owned_sets == {
        "cali60masq-ipam-pools",
        "cali60network-ip-pools",
        "cali60all-ipam-pools",
        "cali60all-hosts-net",
    }
    assert hosts.nothing(IPV6).owned_sets == {"cali60this-host"}
    assert loops.nothing(IPV4).owned_sets == floating.nothing(IPV4).owned_sets == frozenset()


def test_the_set_of_hosts_is_also_that_of_tunnels() -> None:
    plain, _warnings = masq.desired([], masq.MasqOptions(), IPV4)
    excluding, _warnings = masq.desired([], masq.MasqOptions(exclusions="pools_and_hosts"), IPV4)
    assert "cali40all-hosts-net" not in plain.owned_sets
    assert "cali40all-hosts-net" in excluding.owned_sets
    for state in (plain, excluding):
        assert {one.name for one in state.sets} <= state.owned_sets


def test_what_others_have_in_a_shared_chain_keeps_its_form_without_ids() -> None:
    options = masq.MasqOptions(rule_hashes=False)
    [shared] = masq.nothing(IPV4, options).tables["nat"].shared
    foreign = '-o tunl0 -m comment --comment "cali:abc" -j MASQUERADE'
    entry = '-m comment --comment "cali:Z-c7XtVd2Bq7s_hA" -j cali-fip-snat'
    assert shared.stamp([entry, foreign]) == ["-j cali-fip-snat", foreign]
    assert shared.hooks[0].rule == "-j cali-POSTROUTING"
