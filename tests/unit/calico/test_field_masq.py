# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Field cases about masquerading and its sets."""

from __future__ import annotations

import re
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.calico import masq
from ansible_collections.metal.nodenet.plugins.module_utils.calico.hosts import HostOptions
from ansible_collections.metal.nodenet.plugins.module_utils.calico.hosts import desired as hosts_desired
from ansible_collections.metal.nodenet.plugins.module_utils.calico.nodes import read_nodes
from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import read_pools
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import split_id
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6, Desired
from ansible_collections.metal.nodenet.plugins.module_utils.objects import ObjectError

Object = dict[str, Any]


def pool(name: str, cidr: object, nat: bool | None = None, **spec: Any) -> Object:
    if nat is not None:
        spec["natOutgoing"] = nat
    return {
        "apiVersion": "projectcalico.org/v3",
        "kind": "IPPool",
        "metadata": {"name": name},
        "spec": {"cidr": cidr, **spec},
    }


def short(*cidrs: str, masquerade: bool = True) -> list[Object]:
    return [{"cidr": cidr, "masquerade": masquerade} for cidr in cidrs]


def state_of(raws: list[Object], family: str = IPV4, hosts: Any = (), **values: Any) -> Desired:
    pools, _warnings = read_pools(raws)
    return masq.desired(pools, masq.MasqOptions(**values), family, read_nodes(hosts)[0])[0]


def members(state: Desired) -> dict[str, set[str]]:
    """Sets by the part of their name that says what they are."""
    return {one.name[len("cali40"):]: set(one.members) for one in state.sets}


def rules(state: Desired) -> list[str]:
    return [split_id(rule)[0] for rule in state.tables["nat"].chains["cali-nat-outgoing"].rules]


def test_f046_a_pool_of_every_address_is_refused() -> None:
    for cidr in ("0.0.0.0/0", "::/0", "10.0.0.0/0"):
        with pytest.raises(ObjectError, match=f"IPPool all: spec.cidr: '{cidr}' holds every address"):
            read_pools([pool("all", cidr, True)])
        with pytest.raises(ObjectError, match=rf"pools\[0\]: cidr: '{cidr}' holds every address"):
            read_pools(short(cidr))
        with pytest.raises(ObjectError, match=rf"hosts\[0\]: '{cidr}' holds every address"):
            read_nodes([cidr])


def test_f047_leading_zeros_are_decimal_and_said_so() -> None:
    pools, warnings = read_pools([pool("old", "010.0.0.0/16", True)])
    assert [one.network.text for one in pools] == ["10.0.0.0/16"]
    assert warnings == [
        "IPPool old: spec.cidr: '010.0.0.0/16' is read as 10.0.0.0/16: leading zeros are decimal"
    ]


def test_f048_spellings_of_one_network_are_one_member() -> None:
    state = state_of(short("2001:DB8:0:0::/64", "2001:db8::/64"), IPV6)
    assert members(state)["masq-ipam-pools"] == {"2001:db8::/64"}
    networks, _warnings = read_nodes(["fd00::10.0.0.34", "FD00::a00:22", "fd00::a00:22/128"])
    assert members(state_of([], IPV6, exclusions="pools_and_hosts", hosts=["fd00::10.0.0.34"]))["all-hosts-net"] == {
        "fd00::a00:22"
    }
    assert len(networks) == 1


def test_f076_no_mark_is_looked_at_without_a_mask() -> None:
    for version in ("3.22", "3.23", "3.32", "3.33"):
        state = state_of(short("10.0.0.0/16"), dataplane="bpf", calico_version=version, nat_port_range=99)
        texts = rules(state) + [entry.rule for one in state.tables["nat"].shared for entry in one.entries]
        hosts, _warnings = hosts_desired([], HostOptions(forward_check=True, calico_version=version), IPV4)
        texts += [rule for chain in hosts.tables["filter"].chains.values() for rule in chain.rules]
        marks = [mark for text in texts for mark in re.findall(r"--(?:set-x)?mark (\S+)", text)]
        assert len(marks) >= 6
        for mark in marks:
            value, mask = (int(part, 16) for part in mark.split("/"))
            # A value with bits outside of the mask never matches.
            assert value & ~mask == 0
            assert 0 < mask < 0xFFFFFFFF
        assert all(mask & 0xFFFF == 0 for mask in [int(mark.split("/")[1], 16) for mark in marks]), "kube-proxy's bits"


def test_f082_nested_pools_stay_and_twins_go() -> None:
    raws = short("192.0.2.0/24", "192.0.2.0/25", "192.0.2.1/32", "192.0.2.77/24")
    pools, warnings = read_pools(raws)
    assert members(masq.desired(pools, masq.MasqOptions(), IPV4)[0])["masq-ipam-pools"] == {
        "192.0.2.0/24",
        "192.0.2.0/25",
        "192.0.2.1",
    }
    assert warnings == ["pools[3]: cidr: '192.0.2.77/24' has host bits, which are dropped: 192.0.2.0/24"]


def test_f086_more_members_than_fit_are_counted_first() -> None:
    three = short("10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16")
    with pytest.raises(ValueError, match="max_ipset_size: 2 is less than the 3 members of cali40network-ip-pools"):
        state_of(three, max_ipset_size=2)
    assert {one.maxelem for one in state_of(three, max_ipset_size=3).sets} == {3}
    with pytest.raises(ValueError, match="max_ipset_size: 1 is less than the 2 members of cali40this-host"):
        hosts_desired([("10.0.0.1", "eth0"), ("10.0.0.2", "eth0")], HostOptions(max_ipset_size=1), IPV4)
    # The other family is another set.
    assert members(state_of(three, IPV6, max_ipset_size=2))["network-ip-pools"] == set()


def node(name: str, *addresses: tuple[str, str], **annotations: str) -> Object:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "annotations": {f"projectcalico.org/{key}Address": value for key, value in annotations.items()},
        },
        "status": {"addresses": [{"type": kind, "address": address} for kind, address in addresses]},
    }


def test_f084_sets_have_the_type_of_today() -> None:
    state = state_of([], exclusions="pools_and_hosts", hosts=["192.0.2.10"])
    assert {one.name: one.type for one in state.sets} == {
        "cali40network-ip-pools": "hash:net",
        "cali40masq-ipam-pools": "hash:net",
        "cali40all-hosts-net": "hash:net",
    }


def test_f090_an_address_of_two_hosts_stays_while_one_has_it() -> None:
    n1, n2 = node("n1", ("InternalIP", "192.0.2.10")), node("n2", ("InternalIP", "192.0.2.10"))
    for hosts in ([n1, n2], [n1], [n2, "192.0.2.10"]):
        state = state_of([], exclusions="pools_and_hosts", hosts=hosts)
        assert members(state)["all-hosts-net"] == {"192.0.2.10"}


def test_f092_disabled_pools_and_pools_without_nat_are_excluded_destinations() -> None:
    raws = [
        pool("a", "10.0.0.0/16", True),
        pool("b", "192.0.2.0/24", False, disabled=True),
        pool("c", "100.64.0.0/10"),
        pool("lb", "198.51.100.0/24", allowedUses=["LoadBalancer"]),
        pool("mixed", "203.0.113.0/24", allowedUses=["Workload", "LoadBalancer"]),
    ]
    pools_without_lb = {"10.0.0.0/16", "192.0.2.0/24", "100.64.0.0/10", "203.0.113.0/24"}
    assert members(state_of(raws)) == {"network-ip-pools": pools_without_lb, "masq-ipam-pools": {"10.0.0.0/16"}}
    assert members(state_of(raws, calico_version="3.31.5")) == {
        "all-ipam-pools": pools_without_lb | {"198.51.100.0/24"},
        "masq-ipam-pools": {"10.0.0.0/16"},
    }
    assert rules(state_of(raws, calico_version="3.31.5")) == [
        "-m set --match-set cali40masq-ipam-pools src -m set ! --match-set cali40all-ipam-pools dst "
        "-j MASQUERADE --random-fully"
    ]


def test_f092_a_disabled_pool_still_masquerades_and_so_does_one_for_load_balancers() -> None:
    assert rules(state_of([pool("b", "192.0.2.0/24", True, disabled=True)])) == [
        "-m set --match-set cali40masq-ipam-pools src -m set ! --match-set cali40network-ip-pools dst "
        "-j MASQUERADE --random-fully"
    ]
    state = state_of([pool("lb", "192.0.2.0/24", True, allowedUses=["LoadBalancer"])])
    assert members(state) == {"network-ip-pools": set(), "masq-ipam-pools": {"192.0.2.0/24"}}
    assert len(rules(state)) == 1


def test_f093_families_and_numbers_of_pools() -> None:
    raws = [pool("v4", "10.0.0.0/16", True), pool("v6", "2001:db8:1::/64", False)]
    assert len(rules(state_of(raws))) == 1
    assert rules(state_of(raws, IPV6)) == []
    assert members(state_of(raws, IPV6)) == {"network-ip-pools": {"2001:db8:1::/64"}, "masq-ipam-pools": set()}
    two = state_of([*raws, pool("more", "10.1.0.0/16", True)])
    assert rules(two) == rules(state_of(raws))
    assert members(two)["masq-ipam-pools"] == {"10.0.0.0/16", "10.1.0.0/16"}
    off = state_of([pool("v4", "10.0.0.0/16", False)])
    assert (rules(off), members(off)["masq-ipam-pools"]) == ([], set())


def test_f094_an_ipv4_address_does_not_reach_ipv6() -> None:
    pools, _warnings = read_pools(short("10.0.0.0/16", "2001:db8:1::/64"))
    options = masq.MasqOptions(nat_outgoing_address="198.51.100.20", nat_port_range=5000)
    v4, v4_warnings = masq.desired(pools, options, IPV4)
    v6, v6_warnings = masq.desired(pools, options, IPV6)
    targets = [rule.partition(" -j ")[2] for rule in rules(v4)]
    assert targets == [
        "SNAT --to-source 198.51.100.20:5000 --random-fully",
        "RETURN",
        "SNAT --to-source 198.51.100.20:5000 --random-fully",
        "RETURN",
        "SNAT --to-source 198.51.100.20 --random-fully",
    ]
    assert v4_warnings == []
    assert [rule.partition(" -j ")[2] for rule in rules(v6)] == [
        "MASQUERADE --to-ports 5000 --random-fully",
        "RETURN",
        "MASQUERADE --to-ports 5000 --random-fully",
        "RETURN",
        "MASQUERADE --random-fully",
    ]
    assert len(v6_warnings) == 1
    assert v6_warnings[0].startswith("nat_outgoing_address: '198.51.100.20' is for IPv4")
    # Nothing is said where nothing is masqueraded.
    assert masq.desired([], options, IPV6)[1] == []


def test_f096_interface_filter_and_hosts() -> None:
    state = state_of(short("10.0.0.0/16"), interface_filter="eth+", exclusions="pools_and_hosts", hosts=["192.0.2.1"])
    assert rules(state) == [
        "-o eth+ -m set --match-set cali40masq-ipam-pools src -m set ! --match-set cali40network-ip-pools dst "
        "-m set ! --match-set cali40all-hosts-net dst -j MASQUERADE --random-fully"
    ]
    assert members(state)["all-hosts-net"] == {"192.0.2.1"}
    plain, every = state_of(short("10.0.0.0/16")), state_of(short("10.0.0.0/16"), interface_filter="+")
    # Save drops it, and Felix counts it for the id.
    assert rules(every) == rules(plain)
    chain = "cali-nat-outgoing"
    assert every.tables["nat"].chains[chain].rules != plain.tables["nat"].chains[chain].rules
    with pytest.raises(ValueError, match="interface_filter: 'abcdefghijklmnop' is longer than 15"):
        masq.MasqOptions(interface_filter="abcdefghijklmnop")
    assert masq.MasqOptions(interface_filter="abcdefghijklmno").interface_filter == "abcdefghijklmno"


def test_bpf_has_marks_instead_of_sets() -> None:
    old = {"3.22": "0x3800000/0x3800000", "3.23": "0x3800000/0x3f00000", "3.32": "0x3800000/0x3f00000"}
    for version, mark in {**old, "3.33": "0x1800000/0x1f00000"}.items():
        state = state_of(short("10.0.0.0/16"), dataplane="bpf", calico_version=version)
        assert rules(state) == [f"-m mark --mark {mark} -j MASQUERADE --random-fully"]
        assert state.sets == ()
        assert {"cali40masq-ipam-pools", "cali40network-ip-pools", "cali40all-ipam-pools"} <= state.owned_sets
        loopback = [entry.rank for entry in state.tables["nat"].shared[0].entries]
        assert loopback == ([-1] if version == "3.22" else [-3, -1])
    excluded = state_of(short("10.0.0.0/16"), dataplane="bpf", exclusions="pools_and_hosts", interface_filter="eth0")
    assert rules(excluded) == ["-o eth0 -m mark --mark 0x1800000/0x1f00000 -j MASQUERADE --random-fully"]
    assert excluded.sets == ()
    # What is excluded is decided in eBPF, so there is nothing to say about hosts.
    options = masq.MasqOptions(dataplane="bpf", exclusions="pools_and_hosts")
    assert masq.desired([], options, IPV4)[1] == []


def test_pools_with_one_cidr_the_lowest_name_counts() -> None:
    raws = [pool("b", "10.0.0.0/16", True), pool("a", "10.0.0.0/16", False), pool("B", "10.1.0.0/16", True)]
    pools, warnings = read_pools([*raws, pool("C", "10.1.0.0/16", False)])
    assert [(one.name, one.masquerade) for one in pools] == [("a", False), ("B", True)]
    assert warnings == [
        "IPPool C: spec.cidr: '10.1.0.0/16' is that of pool B too, which counts alone",
        "IPPool b: spec.cidr: '10.0.0.0/16' is that of pool a too, which counts alone",
    ]


def test_short_forms_must_not_contradict() -> None:
    twice = [*short("10.0.0.0/16"), *short("10.0.0.0/16", masquerade=False)]
    with pytest.raises(ObjectError, match=r"pools\[1\]: masquerade: False contradicts pools\[0\]"):
        read_pools(twice)
    with pytest.raises(ObjectError, match=r"pools\[1\]: masquerade: True contradicts a"):
        read_pools([pool("a", "10.0.0.0/16"), *short("10.0.0.0/16")])


def test_lists_are_taken_apart_and_other_kinds_left_out() -> None:
    both = [{"kind": "List", "items": [pool("a", "10.0.0.0/16"), {"kind": "Node", "metadata": {}}]}]
    pools, warnings = read_pools([*both, {"kind": "IPPoolList", "items": [pool("b", "10.1.0.0/16")]}])
    assert [one.name for one in pools] == ["a", "b"]
    assert warnings == []
    assert read_pools([{"kind": "Node", "metadata": {}}]) == ([], ["pools: there is no IPPool among the objects"])
    assert read_pools([]) == ([], [])


def test_one_object_from_both_apis_is_one_pool() -> None:
    one = pool("a", "10.0.0.0/16", True)
    other = {**pool("a", "10.0.0.0/16", True, blockSize=26), "apiVersion": "crd.projectcalico.org/v1"}
    pools, warnings = read_pools([one, other])
    assert ([each.name for each in pools], warnings) == (["a"], [])
    with pytest.raises(ObjectError, match="IPPool a: metadata.name: 'a' is there twice"):
        read_pools([one, pool("a", "10.0.0.0/16", False)])


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        ("10.0.0.0/16", r"pools\[0\]: '10.0.0.0/16' is not a mapping"),
        ({"cidr": "10.0.0.0"}, r"pools\[0\]: cidr: '10.0.0.0' is not a CIDR"),
        ({"cidr": 10}, r"pools\[0\]: cidr: 10 is not a CIDR"),
        ({"masquerade": True}, r"pools\[0\]: cidr: None is not a CIDR"),
        ({"cidr": "10.0.0.0/8", "masquerade": "yes"}, r"pools\[0\]: masquerade: 'yes' is not true or false"),
        ({"cidr": "10.0.0.0/8", "nat": True}, r"pools\[0\]: nat: True is not known here; there are cidr, masquerade"),
        ({"cidr": "::ffff:10.0.0.0/104"}, "is an IPv4 address written as IPv6"),
        ({"metadata": {"name": "a"}}, r"pools\[0\]: kind: None is not the kind"),
        (pool("a", "10.0.0.0/33"), "IPPool a: spec.cidr: '10.0.0.0/33' is not a CIDR"),
        (pool("a", None), "IPPool a: spec.cidr: None is not a CIDR"),
        (pool("a", "10.0.0.0/8", natOutgoing="true"), "IPPool a: spec.natOutgoing: 'true' is not true or false"),
        (pool("a", "10.0.0.0/8", allowedUses="LoadBalancer"), "IPPool a: spec.allowedUses: 'LoadBalancer' is not a"),
        (pool("a", "10.0.0.0/8", allowedUses=["lb"]), "IPPool a: spec.allowedUses: 'lb' is not one of Workload"),
        ({**pool("a", "10.0.0.0/8"), "apiVersion": "v1"}, "IPPool a: apiVersion: 'v1' is not one of"),
        ({**pool("a", "10.0.0.0/8"), "metadata": {}}, "IPPool: metadata.name: None is not the name"),
        ({"kind": "List", "items": 3}, r"pools\[0\]: items: 3 is not a list"),
    ],
)
def test_what_is_wrong_with_a_pool_is_named(raw: Any, words: str) -> None:
    with pytest.raises(ObjectError, match=words):
        read_pools([raw])


def test_hosts_have_the_addresses_that_calico_uses() -> None:
    nodes = [
        node("a", ("InternalIP", "192.0.2.1"), IPv4="198.51.100.1/24", IPv6="2001:db8::1/64"),
        node("b", ("ExternalIP", "203.0.113.2"), ("InternalIP", "192.0.2.2"), ("InternalIP", "2001:db8::2")),
        node("c", ("ExternalIP", "203.0.113.3"), IPv4="198.51.100.3"),
        node("d", ("Hostname", "d")),
    ]
    networks, warnings = read_nodes([*nodes, "192.0.2.128/25", "192.0.2.2"])
    assert [one.text for one in networks] == [
        "192.0.2.128/25",
        "192.0.2.2/32",
        "198.51.100.1/32",
        "2001:db8::1/128",
        "2001:db8::2/128",
        "203.0.113.3/32",
    ]
    assert len(warnings) == 1
    assert warnings[0].startswith("Node d: status.addresses: ")
    for raw in (3, {"kind": "Node", "metadata": {"name": "x"}, "status": {"addresses": [{"type": "InternalIP"}]}}):
        with pytest.raises(ObjectError, match=r"hosts\[0\]: 3|Node x: status.addresses\[0\].address: None"):
            read_nodes([raw])


def test_an_exclusion_of_no_host_is_said() -> None:
    options = masq.MasqOptions(exclusions="pools_and_hosts")
    assert masq.desired([], options, IPV4)[1] == [
        "exclusions: 'pools_and_hosts' excludes no host, for hosts is empty"
    ]
    assert masq.desired([], options, IPV4, read_nodes(["192.0.2.1"])[0])[1] == []


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"insert_mode": "prepend"}, "insert_mode: 'prepend' is not one of insert, append"),
        ({"dataplane": "nftables"}, "dataplane: 'nftables' is not one of iptables, bpf"),
        ({"exclusions": "IPPoolsOnly"}, "exclusions: 'IPPoolsOnly' is not one of"),
        ({"exclusions": "pools_and_hosts", "calico_version": "3.30"}, "exclusions: .* not known in .* 3.30"),
        ({"max_ipset_size": 0}, "max_ipset_size: 0"),
        ({"max_ipset_size": True}, "max_ipset_size: True"),
        ({"max_ipset_size": 1 << 32}, "max_ipset_size: 4294967296"),
        ({"interface_filter": "eth 0"}, "interface_filter: 'eth 0'"),
        ({"interface_filter": "eth0\n"}, "interface_filter: "),
        ({"nat_outgoing_address": "2001:db8::1"}, "nat_outgoing_address: '2001:db8::1' is not an IPv4 address"),
        ({"nat_outgoing_address": "192.0.2.1/32"}, "nat_outgoing_address: '192.0.2.1/32' is not an IPv4 address"),
        ({"nat_outgoing_address": "192.0.2.01"}, "nat_outgoing_address: '192.0.2.01' is not an IPv4 address"),
        ({"nat_port_range": "100:99"}, "nat_port_range: '100:99'"),
        ({"nat_port_range": "1:65536"}, "nat_port_range: '1:65536'"),
        ({"nat_port_range": "http"}, "nat_port_range: 'http'"),
        ({"nat_port_range": True}, "nat_port_range: True"),
        ({"nat_port_range": -1}, "nat_port_range: -1"),
        ({"nat_port_range": "0:9", "nat_outgoing_address": "192.0.2.1"}, "nat_port_range: '0:9' begins with port 0"),
        ({"random_fully": {IPV4: True}}, "random_fully: .* does not say anything about ipv6"),
    ],
)
def test_what_is_wrong_with_an_option_is_named(values: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        masq.MasqOptions(**values)


@pytest.mark.parametrize(
    ("value", "wanted"),
    [("", None), (0, None), ("0", None), ("0:0", None), (80, (80, 80)), ("80", (80, 80)), ("0:9", (0, 9))],
)
def test_port_ranges(value: int | str, wanted: tuple[int, int] | None) -> None:
    assert masq.MasqOptions(nat_port_range=value).ports == wanted
