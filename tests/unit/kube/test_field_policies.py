# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Field cases about policies, ports and marks."""

from __future__ import annotations

import re

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV6
from support.builders import ALL, WITH_FALLBACK, endpoint, endpoint_slice, named, render, service

NODE_PORT = [{"name": "http", "port": 80, "nodePort": 30080}]
LAST = "kubernetes service nodeports; NOTE: this must be the last rule in this chain"


@pytest.mark.parametrize("layout", ALL)
def test_f069_services_without_endpoints_reject_where_input_sees_it(layout: str) -> None:
    state = render([service(type="NodePort", ports=NODE_PORT, externalIPs=["198.51.100.9"])], layout)
    none, reject = (
        '-m comment --comment "default/web:http has no endpoints"',
        "-j REJECT --reject-with icmp-port-unreachable",
    )
    assert state.chain("filter", "KUBE-SERVICES") == [f"-d 10.96.0.10/32 -p tcp {none} -m tcp --dport 80 {reject}"]
    assert state.chain("filter", "KUBE-EXTERNAL-SERVICES") == [
        f"-d 198.51.100.9/32 -p tcp {none} -m tcp --dport 80 {reject}",
        f"-p tcp {none} -m addrtype --dst-type LOCAL -m tcp --dport 30080 {reject}",
    ]
    assert {jump.parent for jump in state.state.tables["filter"].jumps if "KUBE-EXTERNAL-SERVICES" in jump.rule} == {
        "INPUT",
        "FORWARD",
    }
    assert len(state.chain("nat", "KUBE-SERVICES")) == 1
    assert state.chain("nat", "KUBE-NODEPORTS") == []


def test_f069_ipv6_rejects_in_its_own_words() -> None:
    state = render([service(clusterIP="fd00:96::10")], family=IPV6)
    assert state.chain("filter", "KUBE-SERVICES")[0].endswith("-j REJECT --reject-with icmp6-port-unreachable")


@pytest.mark.parametrize("layout", ALL)
def test_f070_the_node_port_jump_stays_last(layout: str) -> None:
    objects = [
        service(type="NodePort", ports=NODE_PORT),
        endpoint_slice("10.0.1.1"),
        service("zz", "zz", clusterIP="10.96.0.11"),
        endpoint_slice("10.0.1.2", name="zz", namespace="zz", service_name="zz"),
    ]
    everywhere = render(objects, layout).state.tables["nat"].chains["KUBE-SERVICES"]
    assert (everywhere.ordered, everywhere.tail) == (False, 1)
    assert everywhere.rules[-1] == f'-m comment --comment "{LAST}" -m addrtype --dst-type LOCAL -j KUBE-NODEPORTS'
    listed = render(
        objects,
        layout,
        nodeport_addresses=["192.0.2.0/24"],
        local_addresses=["127.0.0.1", "192.0.2.9", "192.0.2.11", "198.51.100.1"],
    )
    chain = listed.state.tables["nat"].chains["KUBE-SERVICES"]
    assert chain.tail == 2
    assert list(chain.rules[-2:]) == [
        f'-d 192.0.2.{last}/32 -m comment --comment "{LAST}" -j KUBE-NODEPORTS' for last in (11, 9)
    ]


def test_f070_addresses_that_match_nothing() -> None:
    objects = [service(type="NodePort", ports=NODE_PORT), endpoint_slice("10.0.1.1")]
    for layout, rules in (("1.24", 0), ("1.30", 1), ("1.36", 1)):
        state = render(objects, layout, nodeport_addresses=["203.0.113.0/24"])
        assert state.state.tables["nat"].chains["KUBE-SERVICES"].tail == 0
        assert len(state.chain("nat", "KUBE-NODEPORTS")) == rules


@pytest.mark.parametrize("layout", ALL)
def test_f072_localhost_to_a_local_node_port_is_masqueraded_before_the_local_chain(layout: str) -> None:
    state = render(
        [
            service(type="NodePort", ports=NODE_PORT, externalTrafficPolicy="Local"),
            endpoint_slice(endpoint("10.0.1.1", node="node1")),
        ],
        layout,
        node_name="node1",
        detect_local="cluster_cidr",
        cidrs=["10.0.0.0/16"],
    )
    chain = state.chain("nat", named("EXT"))
    assert chain[-1] == f"-j {named('SVL')}"
    # 127.0.0.0/8 is LOCAL, so this covers it in every version that has KUBE-EXT-
    assert any("--src-type LOCAL -j KUBE-MARK-MASQ" in rule for rule in chain[:-1])


@pytest.mark.parametrize("layout", ALL)
def test_f073_a_health_check_port_that_is_a_node_port_too(layout: str) -> None:
    state = render(
        [
            service("lb", lb=["198.51.100.5"], externalTrafficPolicy="Local", healthCheckNodePort=30073),
            service(
                "other", clusterIP="10.96.0.11", type="NodePort", ports=[{"name": "x", "port": 80, "nodePort": 30073}]
            ),
            endpoint_slice("10.0.1.1", name="other", service_name="other", port_name="x"),
        ],
        layout,
    )
    assert state.chain("filter", "KUBE-NODEPORTS") == [
        '-p tcp -m comment --comment "default/lb:http health check node port" -m tcp --dport 30073 -j ACCEPT'
    ]
    assert state.warned("default/lb", "default/other", "30073")
    assert len(state.chain("nat", "KUBE-NODEPORTS")) == 1


def test_f073_the_ports_of_one_service_share_the_health_check_port() -> None:
    ports = [{"name": "a", "port": 80}, {"name": "b", "port": 81}]
    state = render(
        [service(lb=["198.51.100.5"], externalTrafficPolicy="Local", healthCheckNodePort=30073, ports=ports)]
    )
    assert len(state.chain("filter", "KUBE-NODEPORTS")) == 2
    assert state.warnings == []


def test_f074_two_services_with_one_external_ip() -> None:
    objects = [
        service("b", externalIPs=["198.51.100.9"]),
        service("a", clusterIP="10.96.0.11", externalIPs=["198.51.100.9"]),
    ]
    slices = [endpoint_slice("10.0.1.1", name=one, service_name=one) for one in "ab"]
    state = render(objects + slices)
    claims = [rule for rule in state.chain("nat", "KUBE-SERVICES") if "198.51.100.9" in rule]
    assert [re.findall("default/.", rule)[0] for rule in claims] == ["default/a", "default/b"]
    assert state.warned("default/b", "198.51.100.9", "default/a:http")
    assert render(list(reversed(objects + slices))).rules() == state.rules()


def test_f074_an_external_ip_that_is_somebody_elses() -> None:
    node = {
        "kind": "Node",
        "metadata": {"name": "node2"},
        "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.1"}]},
    }
    state = render(
        [
            node,
            service("c", externalIPs=["192.0.2.1", "10.96.0.11", "192.0.2.7"]),
            service("d", clusterIP="10.96.0.11"),
        ],
        local_addresses=["192.0.2.7"],
    )
    assert state.warned("default/c", "192.0.2.1", "node node2")
    assert state.warned("default/c", "192.0.2.7", "this node")
    assert state.warned("default/c", "10.96.0.11", "cluster IP of default/d")


def test_f074_external_ips_outside_of_the_permitted_networks() -> None:
    state = render(
        [service(externalIPs=["198.51.100.9", "203.0.113.4"]), endpoint_slice("10.0.1.1")],
        allowed_external_ips=["203.0.113.0/24"],
    )
    assert not any("198.51.100.9" in rule for rule in state.rules())
    assert any("203.0.113.4" in rule for rule in state.rules())
    assert state.warned("default/web", "198.51.100.9", "allowed_external_ips")


@pytest.mark.parametrize("layout", ALL)
def test_f076_marks_touch_their_own_bit_only(layout: str) -> None:
    state = render(
        [service(type="NodePort", ports=NODE_PORT), endpoint_slice("10.0.1.1")],
        layout,
        foreign_mark_mask=0xFFFF0000,
        masquerade_all=True,
    )
    marks = {rule.split("mark ")[-1].split(" ")[0] for rule in state.rules() if "-xmark " in rule or "--mark " in rule}
    assert marks == {"0x4000/0x4000", "0x4000/0x0"}


def test_f076_a_bit_of_another_agent_is_refused() -> None:
    with pytest.raises(ValueError, match=r"masquerade_bit: 18 .*0xffff0000"):
        render([], masquerade_bit=18, foreign_mark_mask=0xFFFF0000)


@pytest.mark.parametrize("layout", WITH_FALLBACK)
def test_localhost_node_ports(layout: str) -> None:
    on = render([], layout)
    assert "-d 127.0.0.0/8" in on.chain("filter", "KUBE-FIREWALL")[0]
    off = render([], layout, localhost_nodeports=False)
    assert off.state.tables["filter"].chains["KUBE-FIREWALL"].exists_only
    assert off.chain("nat", "KUBE-SERVICES")[0].startswith("! -d 127.0.0.0/8 ")
    six = render([], layout, IPV6)
    assert six.state.tables["filter"].chains["KUBE-FIREWALL"].exists_only
    assert six.chain("nat", "KUBE-SERVICES")[0].startswith("! -d ::1/128 ")


def test_interfaces_as_local_detector() -> None:
    objects = [service(lb=["198.51.100.5"], externalTrafficPolicy="Local"), endpoint_slice("10.0.1.1")]
    state = render(objects, detect_local="interface_prefix", interface="veth")
    assert state.chain("nat", named("SVC"))[0].startswith("-d 10.96.0.10/32 ! -i veth+ -p tcp ")
    assert state.chain("nat", named("EXT"))[0].startswith("-i veth+ -m comment ")
    assert (
        "! -i cni0 " in render(objects, detect_local="bridge_interface", interface="cni0").chain("nat", named("SVC"))[0]
    )


def test_layout_1_30_lets_cluster_ip_services_have_a_local_policy() -> None:
    objects = [
        service(externalIPs=["198.51.100.9"], externalTrafficPolicy="Local"),
        endpoint_slice(endpoint("10.0.2.1", node="node2")),
    ]
    assert not render(objects, "1.24").names("nat", "KUBE-SVL-")
    assert render(objects, "1.24").chain("nat", named("EXT"))[-1] == f"-j {named('SVC')}"
    for layout in WITH_FALLBACK:
        assert len(render(objects, layout).chain("filter", "KUBE-EXTERNAL-SERVICES")) == 1


def test_random_fully_and_liberal() -> None:
    plain = render([], random_fully={"ipv4": False, "ipv6": True})
    assert plain.chain("nat", "KUBE-POSTROUTING")[-1].endswith("-j MASQUERADE")
    assert render([], family=IPV6).chain("nat", "KUBE-POSTROUTING")[-1].endswith("-j MASQUERADE --random-fully")
    for layout, count in (("1.24", 3), ("1.30", 2), ("1.36", 2)):
        assert len(render([], layout, tcp_be_liberal=True).chain("filter", "KUBE-FORWARD")) == count
