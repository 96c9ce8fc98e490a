# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Clusters of any size, alike in shape: services of one port, every 20th a node port, endpoints on 100 nodes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

_NODES = 100


def cluster(services: int, endpoints: int) -> list[dict[str, Any]]:
    """The objects of a cluster with ``services`` services of ``endpoints`` endpoints each."""
    return [_node(), *(item for index in range(services) for item in _service(index, endpoints))]


def _node() -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node1", "labels": {}}, "spec": {},
            "status": {"addresses": [{"type": "InternalIP", "address": "192.0.2.11"}]}}


def _service(index: int, endpoints: int) -> Iterator[dict[str, Any]]:
    namespace, name = f"ns{index % 50}", f"svc-{index}"
    address = f"10.{96 + (index + 1) // 65536}.{(index + 1) // 256 % 256}.{(index + 1) % 256}"
    port: dict[str, Any] = {"name": "http", "port": 80, "protocol": "TCP"}
    exposed = index % 20 == 0
    if exposed:
        port["nodePort"] = 30000 + index // 20
    yield {"apiVersion": "v1", "kind": "Service", "metadata": {"namespace": namespace, "name": name},
           "spec": {"type": "NodePort" if exposed else "ClusterIP", "clusterIP": address, "clusterIPs": [address],
                    "ipFamilies": ["IPv4"], "ports": [port]}}
    first = index * endpoints + 1
    yield {"apiVersion": "discovery.k8s.io/v1", "kind": "EndpointSlice", "addressType": "IPv4",
           "metadata": {"namespace": namespace, "name": f"{name}-a", "labels": {"kubernetes.io/service-name": name}},
           "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
           "endpoints": [{"addresses": [f"10.{128 + pod // 65536}.{pod // 256 % 256}.{pod % 256}"],
                          "nodeName": f"node{pod % _NODES}", "conditions": {"ready": True}}
                         for pod in range(first, first + endpoints)]}
