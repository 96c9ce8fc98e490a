# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""End states line by line, as a kernel printed them after Felix's rules were loaded."""

from __future__ import annotations

from typing import Any, Callable

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.calico import floating, hosts, loops, masq
from ansible_collections.metal.nodenet.plugins.module_utils.calico.floating_ips import read_mappings
from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import read_pools
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import split_id
from ansible_collections.metal.nodenet.plugins.module_utils.calico.service_cidrs import read_cidrs
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6, Desired, IpSet

Lines = Callable[..., list[str]]

NO_RANDOM = {IPV4: False, IPV6: False}
POOLS = [{"cidr": "10.244.0.0/16", "masquerade": True}, {"cidr": "2001:db8:1::/64", "masquerade": True}]
FIPS = [
    {"external": "172.18.1.4", "internal": "10.0.240.2"},
    {"external": "172.16.1.3", "internal": "10.0.240.2"},
    {"external": "2001:db8:3::2", "internal": "2001:db8:2::2"},
]


def masq_state(family: str = IPV4, **values: Any) -> Desired:
    return masq.desired(read_pools(POOLS)[0], masq.MasqOptions(**values), family)[0]


def floating_state(family: str = IPV4, mappings: Any = (), **values: Any) -> Desired:
    return floating.desired(read_mappings(mappings)[0], floating.FloatingOptions(**values), family)[0]


def loops_state(family: str, cidrs: list[str], **values: Any) -> Desired:
    return loops.desired(read_cidrs(cidrs)[0], loops.LoopOptions(**values), family)[0]


def hosts_state(addresses: list[tuple[str, str]], **values: Any) -> Desired:
    return hosts.desired(addresses, hosts.HostOptions(**values), IPV4)[0]


def of_chain(name: str, text: list[str]) -> list[str]:
    return [line for line in text if line.startswith(f"-A {name} ")]


A0_MEMBERS = frozenset(("10.244.0.0/16", "10.245.0.7"))


def test_a0_sets() -> None:
    pools, _warnings = read_pools([*POOLS[:1], {"cidr": "10.245.0.7/32", "masquerade": True}])
    state, warnings = masq.desired(pools, masq.MasqOptions(), IPV4)
    assert state.sets == (
        IpSet("cali40network-ip-pools", "hash:net", 1048576, A0_MEMBERS),
        IpSet("cali40masq-ipam-pools", "hash:net", 1048576, A0_MEMBERS),
    )
    assert warnings == []
    assert hosts_state([("10.0.0.1", "eth0")]).sets == (
        IpSet("cali40this-host", "hash:ip", 1048576, frozenset(("10.0.0.1",))),
    )


A1 = """\
-A OUTPUT -m comment --comment "cali:tVnHkvAo15HuiPy0" -j cali-OUTPUT
-A POSTROUTING -m comment --comment "cali:0i8pjzKKPyA34aQD" -j cali-POSTROUTING
-A PREROUTING -m comment --comment "cali:6gwbT8clXdHdC1b1" -j cali-PREROUTING
-A cali-OUTPUT -m comment --comment "cali:GBTAv2p5CwevEyJm" -j cali-fip-dnat
-A cali-POSTROUTING -m comment --comment "cali:Z-c7XtVd2Bq7s_hA" -j cali-fip-snat
-A cali-POSTROUTING -m comment --comment "cali:nYKhEzDlr11Jccal" -j cali-nat-outgoing
-A cali-PREROUTING -m comment --comment "cali:r6XmIziWUJsdOK6Z" -j cali-fip-dnat
-A cali-nat-outgoing -m comment --comment "cali:W_qq_N2KSTWyCvrX" -m set --match-set cali40masq-ipam-pools src \
-m set ! --match-set cali40network-ip-pools dst -j MASQUERADE --random-fully
"""


def test_a1_nat_of_one_pool(lines: Lines) -> None:
    one_way = lines("nat", masq_state(), floating_state())
    assert one_way == A1.splitlines()
    assert lines("nat", floating_state(), masq_state()) == one_way


def test_rules_without_ids_say_the_same(lines: Lines) -> None:
    bare = lines("nat", masq_state(rule_hashes=False), floating_state(rule_hashes=False))
    assert bare == [split_id(line)[0] for line in A1.splitlines()]
    assert not any("cali:" in line for line in bare)


POOLS_ONLY = "-m set --match-set cali40masq-ipam-pools src -m set ! --match-set cali40network-ip-pools dst"
AND_HOSTS = f"{POOLS_ONLY} -m set ! --match-set cali40all-hosts-net dst"
A2 = f"""\
-A cali-nat-outgoing -o eth+ -p tcp -m comment --comment "cali:xokvdyu31GTVzWBO" {AND_HOSTS} \
-j MASQUERADE --to-ports 32768-65535 --random-fully
-A cali-nat-outgoing -o eth+ -p tcp -m comment --comment "cali:pwbPT5X0abYjwM-U" {AND_HOSTS} -j RETURN
-A cali-nat-outgoing -o eth+ -p udp -m comment --comment "cali:-RWoiyOwJNhJMKRZ" {AND_HOSTS} \
-j MASQUERADE --to-ports 32768-65535 --random-fully
-A cali-nat-outgoing -o eth+ -p udp -m comment --comment "cali:uzj1LwUY_EtSVqfN" {AND_HOSTS} -j RETURN
-A cali-nat-outgoing -o eth+ -m comment --comment "cali:qqCrwK3pA8rU-7sd" {AND_HOSTS} -j MASQUERADE --random-fully
"""


def test_a2_port_range_filter_and_hosts(lines: Lines) -> None:
    state = masq_state(nat_port_range="32768:65535", interface_filter="eth+", exclusions="pools_and_hosts")
    assert of_chain("cali-nat-outgoing", lines("nat", state)) == A2.splitlines()


A3 = f"""\
-A cali-nat-outgoing -p tcp -m comment --comment "cali:h6QoEdtas_BgnNmT" {POOLS_ONLY} \
-j SNAT --to-source 192.168.0.1:99-100
-A cali-nat-outgoing -p tcp -m comment --comment "cali:hFPDtapVoxn56H1C" {POOLS_ONLY} -j RETURN
-A cali-nat-outgoing -p udp -m comment --comment "cali:cwSm5hKo1MT0iCOz" {POOLS_ONLY} \
-j SNAT --to-source 192.168.0.1:99-100
-A cali-nat-outgoing -p udp -m comment --comment "cali:igAu_9LU15XT-fYl" {POOLS_ONLY} -j RETURN
-A cali-nat-outgoing -m comment --comment "cali:x-QxKnIMwznnDdC2" {POOLS_ONLY} -j SNAT --to-source 192.168.0.1
"""


def test_a3_fixed_address_and_port_range(lines: Lines) -> None:
    state = masq_state(nat_outgoing_address="192.168.0.1", nat_port_range="99:100", random_fully=NO_RANDOM)
    assert of_chain("cali-nat-outgoing", lines("nat", state)) == A3.splitlines()


#: Felix's rules for a tunnel, which are no part of any of ours.
TUNNEL = (
    '-o vxlan.calico -p udp -m comment --comment "cali:k5tPXc7Lt1qvBU9K" -m addrtype ! --src-type LOCAL '
    "--limit-iface-out -m addrtype --src-type LOCAL -j MASQUERADE --to-ports 4790-65535 --random-fully",
    '-o vxlan.calico -m comment --comment "cali:ZUy_r64wRDl4JBc4" -m addrtype ! --src-type LOCAL --limit-iface-out '
    "-m addrtype --src-type LOCAL -j MASQUERADE --random-fully",
)
A4 = """\
-A cali-POSTROUTING -m comment --comment "cali:Z-c7XtVd2Bq7s_hA" -j cali-fip-snat
-A cali-POSTROUTING -m comment --comment "cali:nYKhEzDlr11Jccal" -j cali-nat-outgoing
-A cali-PREROUTING -m comment --comment "cali:r6XmIziWUJsdOK6Z" -j cali-fip-dnat
-A cali-PREROUTING -d 169.254.169.254/32 -p tcp -m comment --comment "cali:LNkCDrB90i2Y56UD" \
-m multiport --dports 80 -j DNAT --to-destination 127.0.0.1:8775
-A cali-fip-dnat -d 172.16.1.3/32 -m comment --comment "cali:tNLwGk9z1UZNPNbW" -j DNAT --to-destination 10.0.240.2
-A cali-fip-dnat -d 172.18.1.4/32 -m comment --comment "cali:OU0OBM4pzE9sD4jJ" -j DNAT --to-destination 10.0.240.2
-A cali-fip-snat -s 10.0.240.2/32 -d 10.0.240.2/32 -m comment --comment "cali:DweygdPL2z-tP8xi" \
-j SNAT --to-source 172.16.1.3 --random-fully
"""


def test_a4_floating_ips_and_metadata(lines: Lines) -> None:
    state = floating_state(mappings=FIPS, metadata_address="127.0.0.1")
    text = lines("nat", state, masq_state())
    shown = ("cali-POSTROUTING", "cali-PREROUTING", "cali-fip-dnat", "cali-fip-snat")
    assert [line for name in shown for line in of_chain(name, text)] == A4.splitlines()


def test_a4_tunnel_rules_of_felix_keep_their_text() -> None:
    for state in (masq_state(), floating_state()):
        shared = state.tables["nat"].shared[-1]
        assert [shared.rank_of(rule) for rule in TUNNEL] == [None, None]
        stamped = shared.stamp(["-j cali-fip-snat", "-j cali-nat-outgoing", *TUNNEL])
        assert stamped == [line.partition("-POSTROUTING ")[2] for line in A4.splitlines()[:2]] + list(TUNNEL)


A5 = """\
-A cali-fip-dnat -d 2001:db8:3::2/128 -m comment --comment "cali:l1-K_FHWxjq3YH-4" \
-j DNAT --to-destination 2001:db8:2::2
-A cali-fip-snat -s 2001:db8:2::2/128 -d 2001:db8:2::2/128 -m comment --comment "cali:Bn-N9djPN7auSGN3" \
-j SNAT --to-source 2001:db8:3::2 --random-fully
-A cali-nat-outgoing -m comment --comment "cali:Y4sh__lNLsPKa_Pw" -m set --match-set cali60masq-ipam-pools src \
-m set ! --match-set cali60network-ip-pools dst -j MASQUERADE --random-fully
"""


def test_a5_ipv6(lines: Lines) -> None:
    text = lines("nat", masq_state(IPV6), floating_state(IPV6, mappings=FIPS, metadata_address="10.0.0.1"))
    assert text[-3:] == A5.splitlines()
    # The metadata server is IPv4's.
    assert len(of_chain("cali-PREROUTING", text)) == 1


#: Felix's policy rules before ours, and what is ours.
A6_FORWARD = """\
-m comment --comment "cali:W_vvds1Nw3n9QE2f" -j MARK --set-xmark 0x0/0x1a0000
-m comment --comment "cali:ZfgmjuiLaA8Pg0kp" -m mark --mark 0x0/0x10000 -j cali-from-hep-forward
-i cali+ -m comment --comment "cali:tAzwBLPaV-j53OOZ" -j cali-from-wl-dispatch
-o cali+ -m comment --comment "cali:4Z0Pf0byo05NFe-P" -j cali-to-wl-dispatch
-m comment --comment "cali:hQ7Oc16wmUtLuneJ" -j cali-to-hep-forward
-m comment --comment "cali:rnKNH2WxGcRQcIlD" -j cali-cidr-block
"""
A6_BLOCK = """\
-A cali-cidr-block -d 1.2.3.4/32 -m comment --comment "cali:qtp40dcPiH3LY35u" -j DROP
-A cali-cidr-block -d 10.96.0.0/12 -m comment --comment "cali:pcGY_b8CM3nZzGQO" -j DROP
-A cali-cidr-block -d 203.0.113.0/24 -m comment --comment "cali:rDJfk4lDuSLAme9I" -j DROP
"""


def test_a6_blocked_ranges(lines: Lines) -> None:
    text = lines("filter", loops_state(IPV4, ["203.0.113.0/24", "10.96.0.0/12", "1.2.3.4/32", "fd5f::/119"]))
    assert of_chain("cali-cidr-block", text) == A6_BLOCK.splitlines()
    assert of_chain("FORWARD", text) == ['-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD']


def test_a6_the_entry_behind_felix_rules_has_felix_id() -> None:
    rules = A6_FORWARD.splitlines()
    [shared] = loops_state(IPV4, []).tables["filter"].shared
    assert [shared.rank_of(rule) for rule in rules] == [None] * 5 + [1]
    assert shared.stamp([*rules[:5], shared.entries[0].rule]) == rules


def test_an_id_that_cannot_be_proved_does_not_count() -> None:
    rules = A6_FORWARD.splitlines()
    [shared] = loops_state(IPV4, []).tables["filter"].shared
    alone = shared.stamp(["-j cali-cidr-block"])
    assert alone != rules[5:]
    stranger = rules[0].replace("0x1a0000", "0x1b0000")
    assert shared.stamp([stranger, "-j ACCEPT", "-j cali-cidr-block"]) == [stranger, "-j ACCEPT", *alone]


A7 = """\
-A cali-forward-check -m comment --comment "cali:Pbldlb4FaULvpdD8" -m conntrack --ctstate RELATED,ESTABLISHED -j RETURN
-A cali-forward-check -p tcp -m comment --comment "cali:ZD-6UxuUtGW-xtzg" \
-m comment --comment "To kubernetes NodePort service" -m multiport --dports 30000:32767 \
-m set --match-set cali40this-host dst -g cali-set-endpoint-mark
-A cali-forward-check -p udp -m comment --comment "cali:CbPfUajQ2bFVnDq4" \
-m comment --comment "To kubernetes NodePort service" -m multiport --dports 30000:32767 \
-m set --match-set cali40this-host dst -g cali-set-endpoint-mark
-A cali-forward-check -m comment --comment "cali:jmhU0ODogX-Zfe5g" -m comment --comment "To kubernetes service" \
-m set ! --match-set cali40this-host dst -j cali-set-endpoint-mark
-A cali-set-endpoint-mark -i cali+ -m comment --comment "cali:MN61lcxFj1yWuYBo" \
-m comment --comment "Unknown endpoint" -j DROP
-A cali-set-endpoint-mark -m comment --comment "cali:KUbTDva6Lcfp6vkT" -m comment --comment "Non-Cali endpoint mark" \
-j MARK --set-xmark 0x200000/0xffe00000
"""


def test_a7_ipvs_chains(lines: Lines) -> None:
    state = hosts_state([("10.0.0.1", "eth0")], forward_check=True)
    assert lines("filter", state) == A7.splitlines()
    chains = state.tables["filter"].chains
    assert [chain.exists_only for chain in chains.values()] == [True, False]


@pytest.mark.parametrize(
    ("family", "cidr", "line"),
    [
        (
            IPV4,
            "10.96.0.0/12",
            '-A cali-cidr-block -d 10.96.0.0/12 -m comment --comment "cali:qO09anU-GTmEKPEb" '
            "-j REJECT --reject-with icmp-port-unreachable",
        ),
        (
            IPV6,
            "fd5f::/119",
            '-A cali-cidr-block -d fd5f::/119 -m comment --comment "cali:KNz8WuyB5YBJlUMg" '
            "-j REJECT --reject-with icmp6-port-unreachable",
        ),
    ],
)
def test_a7_a8_reject(lines: Lines, family: str, cidr: str, line: str) -> None:
    assert of_chain("cali-cidr-block", lines("filter", loops_state(family, [cidr], action="reject"))) == [line]
