# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names, ownership, and the frame around the rules."""

from __future__ import annotations

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.kube.names import endpoint_chain, port_hash
from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import read_cluster
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.kube.rules import desired, nothing
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, IPV4, target_of
from support.builders import ALL, WITH_FALLBACK, endpoint_slice, named, render, sep, service


@pytest.mark.parametrize(
    ("title", "protocol", "expected"),
    [
        ("ns1/svc1:p80", "tcp", "XPGD46QRK7WJZT7O"),
        ("ns8/unnamed", "tcp", "AERR24AE2CPKKBP2"),
        ("ns7/itp:dns", "udp", "I73Y34MZYY2NDEUY"),
        ("ns7/itp:s", "sctp", "6EP2RPILNHGX5Q5P"),
        ("ns9/six:p80", "tcp", "KA44KLMITE26AARI"),
    ],
)
def test_hashes_of_service_ports(title: str, protocol: str, expected: str) -> None:
    assert port_hash(title, protocol) == expected


@pytest.mark.parametrize(
    ("title", "endpoint", "expected"),
    [
        ("ns1/svc1:p80", "10.180.0.1:80", "SXIVWICOYRO3J4NJ"),
        ("ns9/six:p80", "[fd00:10::5]:80", "UFTEIIYJIEAYC4ZR"),
        ("ns8/unnamed", "10.180.1.9:8080", "LBQXKPEC4YICR5OB"),
    ],
)
def test_hashes_of_endpoints(title: str, endpoint: str, expected: str) -> None:
    assert endpoint_chain(title, "tcp", endpoint) == f"KUBE-SEP-{expected}"


FIXED = {
    "mangle": {"KUBE-PROXY-CANARY"},
    "filter": {"KUBE-SERVICES", "KUBE-EXTERNAL-SERVICES", "KUBE-FORWARD", "KUBE-NODEPORTS", "KUBE-PROXY-CANARY"},
    "nat": {"KUBE-SERVICES", "KUBE-NODEPORTS", "KUBE-POSTROUTING", "KUBE-MARK-MASQ", "KUBE-PROXY-CANARY"},
}


@pytest.mark.parametrize("layout", ALL)
def test_an_empty_cluster_has_the_fixed_chains(layout: str) -> None:
    older = layout == "1.24"
    for family in FAMILIES:
        tables = render([], layout, family).state.tables
        assert set(tables["mangle"].chains) == FIXED["mangle"]
        assert set(tables["filter"].chains) == FIXED["filter"] | (
            set() if older else {"KUBE-PROXY-FIREWALL", "KUBE-FIREWALL"}
        )
        assert set(tables["nat"].chains) == FIXED["nat"] | ({"KUBE-MARK-DROP"} if older else set())


@pytest.mark.parametrize("layout", ALL)
def test_every_target_exists(layout: str) -> None:
    objects = [
        service(
            lb=["198.51.100.5"],
            externalTrafficPolicy="Local",
            sessionAffinity="ClientIP",
            loadBalancerSourceRanges=["192.0.2.0/24"],
            ports=[{"name": "http", "port": 80, "nodePort": 30080}],
        ),
        endpoint_slice("10.0.1.1", "10.0.1.2"),
    ]
    for table in render(objects, layout, node_name="node1").state.tables.values():
        written = set()
        for chain in table.chains.values():
            targets = {target_of(rule) for rule in chain.rules if target_of(rule).startswith("KUBE-")}
            # what is jumped to comes first, so that batches can be loaded in this order
            assert targets <= written
            assert table.owns(chain.name)
            written.add(chain.name)
        assert {target_of(jump.rule) for jump in table.jumps} <= written
        assert {target_of(jump.rule) for jump in table.jumps} <= table.entries


def test_titles_are_for_people() -> None:
    chains = render([service(), endpoint_slice("10.0.1.1")]).state.tables["nat"].chains
    assert chains[named("SVC")].title == "default/web:http (tcp)"
    assert chains[sep("10.0.1.1:8080")].title == "default/web:http (tcp) -> 10.0.1.1:8080"


def test_the_six_shared_chains_have_no_order() -> None:
    tables = render([]).state.tables
    assert {
        (table, chain.name)
        for table, content in tables.items()
        for chain in content.chains.values()
        if not chain.ordered
    } == {
        ("nat", "KUBE-SERVICES"),
        ("nat", "KUBE-NODEPORTS"),
        ("filter", "KUBE-SERVICES"),
        ("filter", "KUBE-EXTERNAL-SERVICES"),
        ("filter", "KUBE-NODEPORTS"),
        ("filter", "KUBE-PROXY-FIREWALL"),
    }


@pytest.mark.parametrize(
    ("layout", "drop", "firewall"), [("1.24", True, False), ("1.30", False, True), ("1.36", False, True)]
)
def test_what_is_ours(layout: str, drop: bool, firewall: bool) -> None:
    tables = render([], layout).state.tables
    nat, filtering = tables["nat"], tables["filter"]
    for prefix in ("SVC", "SVL", "SEP", "FW", "EXT", "XLB"):
        assert nat.owns(f"KUBE-{prefix}-LEFTOVER")
        assert not filtering.owns(f"KUBE-{prefix}-LEFTOVER")
    assert nat.owns("KUBE-MARK-DROP") is drop
    assert filtering.owns("KUBE-FIREWALL") is firewall
    assert filtering.owns("KUBE-PROXY-FIREWALL")
    assert ("KUBE-FIREWALL" in filtering.entries) is firewall
    assert ("KUBE-FIREWALL" in filtering.neighbours) is not firewall
    assert "KUBE-PROXY-FIREWALL" in filtering.entries
    for name in (
        "DOCKER",
        "cali-PREROUTING",
        "KUBE-KUBELET-CANARY",
        "KUBE-HOSTPORTS",
        "KUBE-IPTABLES-HINT",
        "PREROUTING",
    ):
        assert not any(table.owns(name) for table in tables.values())


@pytest.mark.parametrize("layout", WITH_FALLBACK)
def test_only_the_firewall_jumps_may_move(layout: str) -> None:
    jumps = render([], layout).state.tables["filter"].jumps
    assert [jump.parent for jump in jumps if not jump.ranked] == ["INPUT", "OUTPUT"]
    assert all(jump.rule == "-j KUBE-FIREWALL" for jump in jumps if not jump.ranked)


def test_standing_in_for_the_kubelet() -> None:
    plain = render([], "1.24").state.tables
    assert plain["nat"].chains["KUBE-MARK-DROP"].exists_only
    state = render([], "1.24", provide_mark_drop=True)
    assert state.chain("nat", "KUBE-MARK-DROP") == ["-j MARK --set-xmark 0x8000/0x8000"]
    assert state.chain("filter", "KUBE-FIREWALL") == [
        '-m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x8000/0x8000 -j DROP'
    ]
    filtering = state.state.tables["filter"]
    assert [jump.parent for jump in filtering.jumps if jump.rule == "-j KUBE-FIREWALL"] == ["INPUT", "OUTPUT"]
    assert filtering.owns("KUBE-FIREWALL")
    assert filtering.neighbours == ("cali-",)


@pytest.mark.parametrize("shared", [False, True])
def test_nothing_owns_everything(shared: bool) -> None:
    state = nothing(IPV4, shared_with_kubelet=shared)
    for table in state.tables.values():
        assert (table.chains, table.jumps) == ({}, ())
    for layout in ALL:
        for name, table in render([], layout).state.tables.items():
            kubelets = {"KUBE-FIREWALL", "KUBE-MARK-DROP"}
            for chain in table.chains:
                assert state.tables[name].owns(chain) is (shared or chain not in kubelets)
    assert ("KUBE-FIREWALL" in state.tables["filter"].entries) is shared


def test_a_cluster_is_read_for_one_layout() -> None:
    with pytest.raises(ValueError, match="read for 1.30, not for 1.36"):
        desired(read_cluster([], LAYOUTS["1.30"]), ProxyOptions(layout=LAYOUTS["1.36"]), IPV4)


@pytest.mark.parametrize("layout", ALL)
def test_all_chains_of_a_service_port_are_one_unit_and_the_common_chains_are_of_none(layout: str) -> None:
    services = [service(name, clusterIP=f"10.96.0.{at}", lb=[f"203.0.113.{at}"], externalTrafficPolicy="Local",
                        loadBalancerSourceRanges=["192.0.2.0/24"], sessionAffinity="ClientIP")
                for at, name in enumerate(("web", "api"), 1)]
    slices = [endpoint_slice("10.180.0.1", "10.180.1.2", name=name, service_name=name) for name in ("web", "api")]
    everything = render([*services, *slices], layout)
    wanted = everything.state.tables["nat"]
    found = wanted.units({name: chain.rules for name, chain in wanted.chains.items()})
    by_title: dict[str, set[str]] = {}
    for name, chain in wanted.chains.items():
        if name in FIXED["nat"] | {"KUBE-MARK-DROP"}:
            assert name not in found
        else:
            by_title.setdefault(chain.title.split(" ")[0], set()).add(found[name])
    assert sorted(map(len, by_title.values())) == [1, 1]
    assert len(set.union(*by_title.values())) == 2
