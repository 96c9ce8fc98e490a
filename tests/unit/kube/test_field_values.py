# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Field cases about values in objects that break rendering."""

from __future__ import annotations

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.kube.service_chains import probability
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV6
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.quoting import tokenise
from support.builders import ALL, NEWEST, WITH_FALLBACK, endpoint_slice, named, render, sep, service

WEB_80 = '-p tcp -m comment --comment "default/web:http {}" -m tcp --dport 80'


def test_f017_probabilities_are_those_that_are_read_back() -> None:
    measured = {
        2: "0.50000000000",
        3: "0.33333333349",
        4: "0.25000000000",
        5: "0.20000000019",
        6: "0.16666666651",
        7: "0.14285714272",
        9: "0.11111111101",
        10: "0.10000000009",
    }
    assert {count: probability(count) for count in measured} == measured
    state = render([service(), endpoint_slice("10.0.1.1", "10.0.1.2", "10.0.1.3")])
    assert [rule.partition("--probability ")[2].split(" ")[0] for rule in state.chain("nat", named("SVC"))] == [
        "0.33333333349",
        "0.50000000000",
        "",
    ]


def test_f018_rules_are_in_the_form_that_save_prints() -> None:
    state = render(
        [service(sessionAffinity="ClientIP"), endpoint_slice("10.0.1.1"), service("dead", clusterIP="10.96.0.9")],
        detect_local="cluster_cidr",
        cidrs=["10.0.0.9/16"],
    )
    chain = sep("10.0.1.1:8080")
    assert state.chain("nat", named("SVC")) == [
        f"! -s 10.0.0.0/16 -d 10.96.0.10/32 {WEB_80.format('cluster IP')} -j KUBE-MARK-MASQ",
        '-m comment --comment "default/web:http -> 10.0.1.1:8080" -m recent --rcheck --seconds 10800 --reap '
        f"--name {chain} --mask 255.255.255.255 --rsource -j {chain}",
        f'-m comment --comment "default/web:http -> 10.0.1.1:8080" -j {chain}',
    ]
    assert state.chain("nat", chain) == [
        '-s 10.0.1.1/32 -m comment --comment "default/web:http" -j KUBE-MARK-MASQ',
        f'-p tcp -m comment --comment "default/web:http" -m recent --set --name {chain} '
        "--mask 255.255.255.255 --rsource -m tcp -j DNAT --to-destination 10.0.1.1:8080",
    ]
    assert state.chain("filter", "KUBE-SERVICES") == [
        '-d 10.96.0.9/32 -p tcp -m comment --comment "default/dead:http has no endpoints" -m tcp --dport 80 '
        "-j REJECT --reject-with icmp-port-unreachable"
    ]
    assert state.chain("nat", "KUBE-MARK-MASQ") == ["-j MARK --set-xmark 0x4000/0x4000"]


@pytest.mark.parametrize("layout", ALL)
def test_f044_ranges_of_the_other_family_leave_the_address_open_and_say_so(layout: str) -> None:
    state = render(
        [service(lb=["198.51.100.5"], loadBalancerSourceRanges=["2001:db8::/32"]), endpoint_slice("10.0.1.1")], layout
    )
    assert state.names("nat", "KUBE-FW-") == []
    assert f"-d 198.51.100.5/32 {WEB_80.format('loadbalancer IP')} -j {named('EXT')}" in state.chain(
        "nat", "KUBE-SERVICES"
    )
    assert state.warned("Service default/web", "loadBalancerSourceRanges", "198.51.100.5", "ipv4")


@pytest.mark.parametrize("layout", ALL)
def test_f045_blanks_around_a_range_are_trimmed(layout: str) -> None:
    state = render(
        [service(lb=["198.51.100.5"], loadBalancerSourceRanges=[" 192.0.2.0/24 "]), endpoint_slice("10.0.1.1")], layout
    )
    sources = [rule for rule in state.chain("nat", named("FW")) if "-s " in rule]
    assert sources == [f'-s 192.0.2.0/24 -m comment --comment "default/web:http loadbalancer IP" -j {named("EXT")}']


RANGES = {"loadBalancerSourceRanges": ["0.0.0.0/0", "192.0.2.0/24"]}


def test_f046_a_range_of_length_zero_opens_the_load_balancer() -> None:
    state = render([service(lb=["198.51.100.5"], **RANGES), endpoint_slice("10.0.1.1")])
    assert state.names("nat", "KUBE-FW-") == []
    assert state.chain("filter", "KUBE-PROXY-FIREWALL") == []
    assert state.warned("Service default/web", "0.0.0.0/0", "198.51.100.5")


@pytest.mark.parametrize("layout", ["1.24", "1.30"])
def test_f046_older_layouts_have_a_rule_for_every_source(layout: str) -> None:
    state = render([service(lb=["198.51.100.5"], **RANGES), endpoint_slice("10.0.1.1")], layout)
    note = '-m comment --comment "default/web:http loadbalancer IP"'
    assert state.chain("nat", named("FW"))[:3] == [
        f"{note} -j {named('EXT')}",
        f"-s 192.0.2.0/24 {note} -j {named('EXT')}",
        f"-s 198.51.100.5/32 {note} -j {named('EXT')}",
    ]
    assert state.warned("Service default/web", "0.0.0.0/0")


@pytest.mark.parametrize("layout", ALL)
def test_f047_leading_zeros_are_decimal_and_named(layout: str) -> None:
    state = render(
        [
            service(lb=["198.051.100.5"], externalIPs=["192.0.2.010"], loadBalancerSourceRanges=["010.1.2.3/8"]),
            endpoint_slice("10.000.1.1"),
        ],
        layout,
    )
    destinations = [rule.split(" ")[1] for rule in state.chain("nat", "KUBE-SERVICES")[:3]]
    assert destinations == ["10.96.0.10/32", "192.0.2.10/32", "198.51.100.5/32"]
    assert state.chain("nat", named("FW"))[0].startswith("-s 10.0.0.0/8 ")
    assert state.names("nat", "KUBE-SEP-") == [sep("10.0.1.1:8080")]
    for value in ("198.051.100.5", "192.0.2.010", "010.1.2.3/8"):
        assert state.warned("Service default/web", value, "decimal")
    assert state.warned("EndpointSlice default/web-a", "endpoints[0].addresses[0]", "10.000.1.1", "decimal")


def test_f048_one_spelling_for_one_address() -> None:
    state = render(
        [
            service(
                clusterIP="fd00:96::10",
                lb=["2001:DB8:0:0::5", "2001:db8::5"],
                loadBalancerSourceRanges=["2001:DB8:0:0::/64", "2001:db8::/64"],
            ),
            endpoint_slice("fd00::10.0.0.34", "FD00::A00:22", address_type="IPv6"),
        ],
        family=IPV6,
    )
    assert state.names("nat", "KUBE-SEP-") == [sep("[fd00::a00:22]:8080")]
    assert [rule.split(" ")[1] for rule in state.chain("nat", "KUBE-SERVICES")[:2]] == [
        "fd00:96::10/128",
        "2001:db8::5/128",
    ]
    assert len([rule for rule in state.chain("nat", named("FW")) if rule.startswith("-s 2001:db8::/64 ")]) == 1
    assert state.warned("Service default/web", "2001:db8::5", "twice")


def test_f048_older_layouts_name_the_chain_after_the_given_text() -> None:
    state = render(
        [service(clusterIP="fd00:96::10"), endpoint_slice("FD00::5", "fd00::5", address_type="IPv6")], "1.30", IPV6
    )
    (name,) = state.names("nat", "KUBE-SEP-")
    assert name in (sep("[FD00::5]:8080"), sep("[fd00::5]:8080"))
    assert state.chain("nat", name)[1].endswith("--to-destination [fd00::5]:8080")


def test_f049_ipv6_targets_have_brackets() -> None:
    state = render(
        [service(clusterIP="fd00:96::10"), endpoint_slice("2001:db8::1", port=80, address_type="IPv6")], family=IPV6
    )
    assert state.chain("nat", sep("[2001:db8::1]:80"))[1].endswith("-j DNAT --to-destination [2001:db8::1]:80")


@pytest.mark.parametrize("cidrs", [[""], []])
def test_f050_without_a_cidr_there_is_no_source_match(cidrs: list[str]) -> None:
    state = render(
        [service(lb=["198.51.100.5"], externalTrafficPolicy="Local"), endpoint_slice("10.0.1.1")],
        detect_local="cluster_cidr",
        cidrs=cidrs,
    )
    assert len(state.chain("nat", named("SVC"))) == 1
    assert not any("pod traffic" in rule for rule in state.chain("nat", named("EXT")))
    assert not any("-s  " in rule for rule in state.rules())


TWO_IPS = {"lb": ["198.51.100.4", "198.51.100.5"], "loadBalancerSourceRanges": ["192.0.2.0/24"]}


@pytest.mark.parametrize("layout", WITH_FALLBACK)
def test_f052_one_firewall_chain_with_the_denial_last(layout: str) -> None:
    state = render([service(**TWO_IPS), endpoint_slice("10.0.1.1")], layout, node_ips={"ipv4": "192.0.2.2"})
    note = f'-m comment --comment "default/web:http loadbalancer IP" -j {named("EXT")}'
    assert state.chain("nat", named("FW")) == [
        f"-s 192.0.2.0/24 {note}",
        f"-s 198.51.100.4/32 {note}",
        f"-s 198.51.100.5/32 {note}",
        '-m comment --comment "other traffic to default/web:http will be dropped by KUBE-PROXY-FIREWALL"',
    ]
    assert [rule.split(" ")[1] for rule in state.chain("filter", "KUBE-PROXY-FIREWALL")] == [
        "198.51.100.4/32",
        "198.51.100.5/32",
    ]


def test_f052_layout_1_24_repeats_the_block_as_the_real_one_did() -> None:
    state = render([service(**TWO_IPS), endpoint_slice("10.0.1.1")], "1.24")
    note = '-m comment --comment "default/web:http loadbalancer IP" -j'
    assert state.chain("nat", named("FW")) == [f"-s 192.0.2.0/24 {note} {named('EXT')}", f"{note} KUBE-MARK-DROP"] * 2


def test_f053_the_denial_of_one_service_leaves_others_alone() -> None:
    other = [
        service("b", clusterIP="10.96.0.2", lb=["198.51.100.6"]),
        endpoint_slice("10.0.2.1", name="b", service_name="b"),
    ]
    restricted = [
        service(
            "a",
            lb=["198.51.100.5"],
            loadBalancerSourceRanges=["192.0.2.0/24"],
            ports=[{"name": "http", "port": 80, "nodePort": 30080}],
        ),
        endpoint_slice("10.0.1.1", name="a", service_name="a"),
    ]
    alone, both = render(other), render(other + restricted)
    assert both.chain("filter", "KUBE-PROXY-FIREWALL") == [
        '-d 198.51.100.5/32 -p tcp -m comment --comment "default/a:http traffic not accepted by '
        f'{named("FW", "default/a:http")}" -m tcp --dport 80 -j DROP'
    ]
    for table, content in alone.state.tables.items():
        for chain in content.chains.values():
            kept = [rule for rule in both.chain(table, chain.name) if "default/a:" not in rule]
            assert kept == list(chain.rules)
    # ranges do not cover node ports
    assert both.chain("nat", "KUBE-NODEPORTS")[0].endswith(named("EXT", "default/a:http"))


def test_f054_long_names_make_comments_that_survive_and_chains_that_fit() -> None:
    namespace, name, port = "n" * 63, "s" * 150, "p" * 15
    state = render(
        [
            service(name, namespace, ports=[{"name": port, "port": 80, "nodePort": 30080}], type="NodePort"),
            endpoint_slice("10.0.1.1", "10.0.1.2", service_name=name, namespace=namespace, port_name=port),
        ]
    )
    assert max(len(chain) for table in state.state.tables.values() for chain in table.chains) <= 28
    longest = 0
    for rule in state.rules():
        for value, quoted in tokenise(rule):
            longest = max(longest, len(value.encode()) if quoted else 0)
    assert longest == 255


def test_f064_headless_external_name_and_foreign_services_have_no_rules() -> None:
    good = [service(), endpoint_slice("10.0.1.1")]
    bad = [
        service("outside", type="ExternalName", clusterIP="", externalName="example.net"),
        service("headless", clusterIP="None", externalIPs=["198.51.100.9"]),
        service("foreign", clusterIP="10.96.0.7", labels={"service.kubernetes.io/service-proxy-name": "other"}),
    ]
    slices = [endpoint_slice("10.0.2.1", name=one, service_name=one) for one in ("outside", "headless", "foreign")]
    for layout in ALL:
        assert render(good + bad + slices, layout).rules() == render(good, layout).rules()


@pytest.mark.parametrize(("layout", "excluded"), [("1.24", True), ("1.30", True), (NEWEST, False)])
def test_the_headless_label_counts_on_services_of_older_layouts(layout: str, excluded: bool) -> None:
    state = render([service(labels={"service.kubernetes.io/headless": ""}), endpoint_slice("10.0.1.1")], layout)
    assert (state.names("nat", "KUBE-SVC-") == []) is excluded


def test_f065_a_proxying_balancer_is_not_cut_short() -> None:
    state = render(
        [
            service(
                lb=[{"ip": "198.51.100.5", "ipMode": "Proxy"}, {"hostname": "lb.example.net"}],
                ports=[{"name": "http", "port": 80, "nodePort": 30080}],
            ),
            endpoint_slice("10.0.1.1"),
        ]
    )
    assert not any("198.51.100.5" in rule for rule in state.rules())
    assert len(state.chain("nat", "KUBE-NODEPORTS")) == 1


def test_addresses_that_cannot_be_read_are_left_out_and_named() -> None:
    state = render(
        [
            service(lb=["lb", "198.51.100.5"], externalIPs=["1.2.3"], loadBalancerSourceRanges=["x", "192.0.2.0/24"]),
            endpoint_slice("10.0.1.300", "10.0.1.1"),
        ]
    )
    for words in (
        ("status.loadBalancer.ingress[0].ip", "'lb'"),
        ("spec.externalIPs[0]", "'1.2.3'"),
        ("spec.loadBalancerSourceRanges[0]", "'x'"),
    ):
        assert state.warned("Service default/web", *words)
    assert state.warned("EndpointSlice default/web-a", "endpoints[0].addresses[0]", "10.0.1.300")
    assert state.names("nat", "KUBE-SEP-") == [sep("10.0.1.1:8080")]
