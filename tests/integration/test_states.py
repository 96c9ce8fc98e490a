# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states, and options that are refused before anything is touched."""

from __future__ import annotations

import os
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.apply import BATCH
from support.builders import endpoint_slice, named, service
from support.node import Node
from support.shims import Shims

CLUSTER = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5", "10.244.2.5")]}


def ours(text: str) -> list[str]:
    return [line for line in text.splitlines() if "KUBE-" in line]


@pytest.mark.parametrize("layout", ["1.24", "1.30", "1.36"])
def test_rendered_and_gathered_have_one_form(kube_node: Node, layout: str) -> None:
    rendered = kube_node.module(state="rendered", layout=layout, **CLUSTER)
    assert not rendered["changed"]
    assert ours("".join(kube_node.saves().values())) == []
    kube_node.four_ways(**CLUSTER, layout=layout, backend=kube_node.backend)
    gathered = kube_node.module(state="gathered")
    assert not gathered["changed"]
    assert gathered["gathered"] == rendered["rendered"]


def test_rendered_text_loads_as_it_is(kube_node: Node) -> None:
    for family, tables in kube_node.module(state="rendered", **CLUSTER)["rendered"].items():
        for text in tables.values():
            kube_node.load(family, text)
    assert not kube_node.module(check=True, **CLUSTER)["changed"]


def test_rendered_needs_neither_root_nor_iptables(nft_node: Node) -> None:
    result = nft_node.module(state="rendered", **CLUSTER, user=65534, environment={"PATH": "/nonexistent"})
    assert named("SVC") in result["rendered"]["ipv4"]["nat"]


def test_gathered_on_an_empty_node_is_empty(kube_node: Node) -> None:
    assert kube_node.module(state="gathered")["gathered"] == {"ipv4": {}, "ipv6": {}}


def test_absent_on_an_empty_node_changes_nothing(kube_node: Node) -> None:
    assert not kube_node.module(state="absent")["changed"]
    assert ours("".join(kube_node.saves().values())) == []


def test_the_diff_names_the_service_and_shows_only_what_changes(kube_node: Node) -> None:
    many = [service(name=f"s{number}", clusterIP=f"10.96.1.{number}") for number in range(20)]
    slices = [endpoint_slice(f"10.244.1.{number}", name=f"s{number}", service_name=f"s{number}")
              for number in range(20)]
    kube_node.four_ways(services=many, endpoint_slices=slices, backend=kube_node.backend)
    slices[7] = endpoint_slice("10.244.1.7", "10.244.2.7", name="s7", service_name="s7")
    result = kube_node.four_ways(services=many, endpoint_slices=slices)
    assert [entry["after_header"] for entry in result["diff"]] == ["ipv4 nat"]
    entry = result["diff"][0]
    svc = named("SVC", "default/s7:http")
    assert f"# {svc}: default/s7:http (tcp)" in entry["before"]
    assert "default/s7:http (tcp) -> 10.244.2.7:8080" in entry["after"]
    assert "default/s6" not in entry["before"] + entry["after"]
    assert len(entry["after"].splitlines()) == 3 + 4
    assert result["plan"]["chains"] == {"added": 1, "changed": 1, "removed": 0}
    gone = kube_node.four_ways(services=many[:7] + many[8:], endpoint_slices=slices)
    assert f"# {svc}: default/s7:http" in gone["diff"][0]["before"]


REFUSED: list[tuple[dict[str, Any], list[str]]] = [
    ({"services": []}, ["services", "allow_empty"]),
    ({**CLUSTER, "masquerade_bit": 32}, ["masquerade_bit", "32"]),
    ({**CLUSTER, "masquerade_bit": 18, "foreign_mark_mask": "0xffff0000"}, ["masquerade_bit", "18", "0xffff0000"]),
    ({**CLUSTER, "foreign_mark_mask": "all"}, ["foreign_mark_mask", "all"]),
    ({**CLUSTER, "nodeport_addresses": ["192.0.2.0/99"]}, ["nodeport_addresses", "192.0.2.0/99"]),
    ({**CLUSTER, "nodeport_addresses": ["primary"], "layout": "1.30"}, ["nodeport_addresses", "primary", "1.30"]),
    ({**CLUSTER, "node_addresses": ["nowhere"]}, ["node_addresses", "nowhere"]),
    ({**CLUSTER, "detect_local": {"mode": "interface_prefix", "interface": "a-name-of-16-ch"}},
     ["detect_local.interface", "a-name"]),
    ({**CLUSTER, "detect_local": {"mode": "bridge_interface"}}, ["detect_local.interface", "bridge_interface"]),
    ({**CLUSTER, "detect_local": {"mode": "node_cidr"}, "node_name": "n9"}, ["node_cidr", "n9", "detect_local.cidrs"]),
    ({**CLUSTER, "detect_local": {"cidrs": ["10.0.0.0"]}}, ["detect_local.cidrs", "10.0.0.0"]),
    ({**CLUSTER, "lock_timeout": 0}, ["lock_timeout", "0"]),
    ({**CLUSTER, "layout": "1.24", "localhost_nodeports": False}, ["localhost_nodeports", "1.24"]),
    ({"services": [{**service(), "kind": "Pod"}]}, ["services[0].kind", "Pod"]),
    ({"services": [service(ports=[{"port": "http"}])]}, ["Service default/web", "spec.ports[0].port", "'http'"]),
    ({"services": [service(ports=[{"port": 80, "protocol": "ICMP"}])]}, ["Service default/web", "protocol", "ICMP"]),
    ({"services": [service(), service(clusterIP="10.96.0.99")]}, ["Service default/web", "twice"]),
    ({"cluster": "/no/such/file", "remote_src": True}, ["/no/such/file"]),
]


@pytest.mark.parametrize(("arguments", "words"), REFUSED, ids=[" ".join(words)[:40] for _arguments, words in REFUSED])
def test_bad_input_is_refused_by_name_before_anything_is_touched(nft_node: Node, arguments: dict[str, Any],
                                                                 words: list[str]) -> None:
    nft_node.module(**CLUSTER)
    before = nft_node.saves()
    result = nft_node.module(**arguments)
    assert result["failed"]
    for word in words:
        assert word in result["msg"]
    assert nft_node.saves() == before


def test_an_empty_cluster_is_believed_when_told_so(kube_node: Node) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    kube_node.four_ways(services=[], allow_empty=True)
    assert "KUBE-SVC-" not in kube_node.save("ipv4")
    assert ":KUBE-SERVICES" in kube_node.save("ipv4")


def test_f062_a_node_name_that_no_endpoint_knows_is_a_warning(nft_node: Node) -> None:
    entry = {"addresses": ["10.244.1.5"], "nodeName": "worker-01.example.net", "conditions": {}}
    result = nft_node.module(services=[service()], endpoint_slices=[endpoint_slice(entry)], node_name="worker-01")
    assert any("worker-01.example.net" in warning for warning in result["warnings"])
    assert len([warning for warning in result["warnings"] if "worker-01" in warning]) == 1


def test_the_node_name_is_the_host_name_unless_given(nft_node: Node) -> None:
    here = os.uname().nodename.lower()
    entry = {"addresses": ["10.244.1.5"], "nodeName": here, "conditions": {}}
    local = service(internalTrafficPolicy="Local")
    nft_node.module(services=[local], endpoint_slices=[endpoint_slice(entry)])
    assert named("SVL") in nft_node.save("ipv4")


def test_a_large_load_is_cut_into_restores_and_gives_the_same(kube_node: Node, shims: Shims,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    """More new chains than one restore may hold, and as many to remove."""
    services = [service(name=f"s{number}", clusterIP=f"10.96.{number // 200}.{number % 200 + 1}")
                for number in range(400)]
    slices = [endpoint_slice(f"10.244.{number // 200}.{number % 200 + 1}", name=f"s{number}", service_name=f"s{number}")
              for number in range(400)]
    result = kube_node.four_ways(services=services, endpoint_slices=slices, backend=kube_node.backend)
    assert result["plan"]["chains"]["added"] > 800
    cut = kube_node.saves()
    kube_node.module(state="absent")
    for name in ("iptables", f"iptables-{kube_node.backend}"):
        shims.add(name + "-restore", 'echo x >> "$HERE/restores"; exec "$REAL" "$@"')
    arguments = {"services": services, "endpoint_slices": slices, "backend": kube_node.backend}
    kube_node.module(**arguments, environment=shims.environment)
    assert len(shims.log("restores")) == (3 if kube_node.backend == "nft" else 1)
    kube_node.module(state="absent")
    monkeypatch.setitem(BATCH, "nft", 10_000)
    kube_node.module(**arguments)
    assert kube_node.saves() == cut
    monkeypatch.undo()
    kube_node.four_ways(services=services[:3], endpoint_slices=slices[:3])
    kube_node.four_ways(state="absent")
    assert ours("".join(kube_node.saves().values())) == []


def test_f074_a_long_chain_that_was_edited_is_the_one_that_a_first_load_gives(kube_node: Node) -> None:
    """Where two services claim one address, the order decides; so every node must have the same one."""
    def cluster(numbers: list[int]) -> dict[str, Any]:
        names = [f"s{number}" for number in numbers]
        return {"services": [service(name=name, clusterIP=f"10.96.1.{number}") for name, number in zip(names, numbers)],
                "endpoint_slices": [endpoint_slice(f"10.244.1.{number}", name=name, service_name=name)
                                    for name, number in zip(names, numbers)]}

    second = cluster([*range(1, 50), *range(52, 150)])
    kube_node.four_ways(**cluster([*range(1, 140)]), backend=kube_node.backend)
    edited = kube_node.four_ways(**second)
    assert edited["plan"]["chains"]["changed"] == 1
    after_edit = kube_node.saves()
    kube_node.four_ways(state="absent")
    kube_node.four_ways(**second, backend=kube_node.backend)
    assert kube_node.saves() == after_edit


def test_a_family_that_is_named_twice_is_written_once(kube_node: Node) -> None:
    arguments = {**CLUSTER, "backend": kube_node.backend}
    predicted = kube_node.module(check=True, **arguments, families=["ipv4"])
    assert kube_node.module(**arguments, families=["ipv4", "ipv4"])["plan"] == predicted["plan"]
    assert kube_node.save("ipv4").count("-A PREROUTING -m comment --comment \"kubernetes service portals\"") == 1
