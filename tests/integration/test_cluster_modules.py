# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One file for all modules: each reads its kinds of it, and gives the same as for the objects given inline."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.reduce import reduce_items
from ansible_collections.metal.nodenet.plugins.modules import calico_masq, floating_ip, service_loop_block
from support.builders import endpoint_slice, service
from support.node import Node

POOL = {"apiVersion": "crd.projectcalico.org/v1", "kind": "IPPool", "metadata": {"name": "pods"},
        "spec": {"cidr": "10.244.0.0/16", "natOutgoing": True, "blockSize": 26}}
BGP = {"apiVersion": "projectcalico.org/v3", "kind": "BGPConfiguration", "metadata": {"name": "default"},
       "spec": {"serviceClusterIPs": [{"cidr": "10.96.0.0/12"}], "asNumber": 64512}}
HOST = {"apiVersion": "v1", "kind": "Node",
        "metadata": {"name": "node-1", "annotations": {"projectcalico.org/IPv4Address": "192.0.2.11/24"}},
        "status": {"addresses": [{"type": "InternalIP", "address": "198.51.100.11"}]}}
POD = {"apiVersion": "v1", "kind": "Pod",
       "metadata": {"name": "web", "namespace": "shop", "annotations": {
           "cni.projectcalico.org/floatingIPs": '["198.51.100.10"]', "cni.projectcalico.org/podIP": "10.244.1.9/32"}},
       "spec": {"nodeName": "node-1"}, "status": {"phase": "Running", "podIPs": [{"ip": "10.244.1.5"}]}}
ENDPOINT = {"apiVersion": "projectcalico.org/v3", "kind": "WorkloadEndpoint",
            "metadata": {"name": "node--1-k8s-web-eth0", "namespace": "shop"},
            "spec": {"node": "node-1", "orchestrator": "k8s", "ipNetworks": ["10.244.1.6/32"],
                     "ipNATs": [{"externalIP": "198.51.100.11", "internalIP": "10.244.1.6"}]}}
ALL = [service(), endpoint_slice("10.244.1.5"), HOST, POOL, BGP, POD, ENDPOINT]


def cluster(folder: Path, items: list[Any]) -> str:
    (folder / "cluster.json").write_text(json.dumps({"kind": "List", "items": items}))
    return str(folder / "cluster.json")


@pytest.mark.parametrize("cut", [False, True], ids=["whole", "reduced"])
@pytest.mark.parametrize(("module", "inline", "options"), [
    pytest.param(calico_masq, {"pools": [POOL]}, {}, id="pools"),
    pytest.param(calico_masq, {"pools": [POOL], "hosts": [HOST]},
                 {"exclusions": "pools_and_hosts", "calico_version": "3.31"}, id="pools and hosts"),
    pytest.param(floating_ip, {"objects": [POD, ENDPOINT]}, {"node_name": "node-1"}, id="floating IPs"),
    pytest.param(service_loop_block, {"bgp_configuration": BGP, "pools": [POOL]}, {}, id="service addresses"),
])
def test_a_module_reads_its_kinds(nft_node: Node, tmp_path: Path, module: ModuleType, inline: dict[str, Any],
                                  options: dict[str, Any], cut: bool) -> None:
    path = cluster(tmp_path, reduce_items(ALL) if cut else ALL)
    given = nft_node.module(module=module, state="rendered", **inline, **options)
    read = nft_node.module(module=module, state="rendered", cluster=path, **options)
    assert read["rendered"] == given["rendered"]
    assert "10." in json.dumps(read["rendered"])


def test_hosts_that_are_given_count_instead_of_the_nodes(nft_node: Node, tmp_path: Path) -> None:
    found = nft_node.module(module=calico_masq, state="rendered", cluster=cluster(tmp_path, ALL), hosts=["192.0.2.99"],
                            exclusions="pools_and_hosts", calico_version="3.31")
    assert "192.0.2.99" in json.dumps(found["rendered"])
    assert "192.0.2.11" not in json.dumps(found["rendered"])


def test_pools_that_are_given_are_looked_at_besides_those_of_the_file(nft_node: Node, tmp_path: Path) -> None:
    path = cluster(tmp_path, [{**BGP, "spec": {"serviceClusterIPs": [{"cidr": "10.0.0.0/8"}]}}, POOL])
    refused = nft_node.module(module=service_loop_block, cluster=path, strict=True)
    assert "10.244.0.0/16" in refused["msg"]
    refused = nft_node.module(module=service_loop_block, cluster=cluster(tmp_path, [BGP]), pools=["10.100.0.0/16"],
                              strict=True)
    assert "10.100.0.0/16" in refused["msg"]


def test_a_file_without_pools_is_refused(nft_node: Node, tmp_path: Path) -> None:
    path = cluster(tmp_path, [service()])
    assert f"cluster: {path} holds no IPPool" in nft_node.module(module=calico_masq, cluster=path)["msg"]
    assert nft_node.module(module=calico_masq, state="rendered", cluster=path, allow_empty=True)["changed"] is False


def test_what_is_no_object_is_named(nft_node: Node, tmp_path: Path) -> None:
    path = cluster(tmp_path, [POOL, "half an object"])
    assert "'half an object' is not a mapping" in nft_node.module(module=calico_masq, cluster=path)["msg"]


@pytest.mark.parametrize("module", [calico_masq, floating_ip, service_loop_block])
def test_what_only_looks_or_removes_reads_no_file(nft_node: Node, module: ModuleType) -> None:
    for state in ("gathered", "absent"):
        assert nft_node.module(module=module, state=state, cluster="/nowhere")["changed"] is False
