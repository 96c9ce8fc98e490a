# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects as they should be, of every kind that is read: what hostile ones are made from."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from support.builders import endpoint, endpoint_slice, service

Object = dict[str, Any]

NODE = "node-1"
LAYOUTS = ("1.24", "1.30", "1.36")


def item(api: str, kind: str, name: str, **fields: Any) -> Object:
    """An object without a namespace."""
    return {"apiVersion": api, "kind": kind, "metadata": {"name": name}, **fields}


def services(namespace: str, number: int, name: str = "") -> list[Object]:
    """A Service that has everything, and its slices of both families. ``number`` keeps addresses apart."""
    name = name or f"web-{number}"
    ports = [{"name": "http", "port": 80, "protocol": "TCP", "nodePort": 30000 + number},
             {"name": "dns", "port": 53, "protocol": "UDP"}]
    one = service(
        name, namespace, ports, lb=[f"203.0.113.{number}", {"ip": f"2001:db8:9::{number}", "ipMode": "VIP"}],
        labels={"app": "web"}, annotations={"service.kubernetes.io/topology-aware-hints": "Auto"},
        clusterIP=f"10.96.0.{number}", clusterIPs=[f"10.96.0.{number}", f"fd00:96::{number}"],
        ipFamilies=["IPv4", "IPv6"],
        externalIPs=[f"198.51.100.{number}"], sessionAffinity="ClientIP",
        sessionAffinityConfig={"clientIP": {"timeoutSeconds": 600}}, internalTrafficPolicy="Cluster",
        externalTrafficPolicy="Local", healthCheckNodePort=31000 + number,
        loadBalancerSourceRanges=["192.0.2.0/24", "2001:db8:8::/48"])
    v4 = endpoint_slice(
        endpoint(f"10.244.{number}.1", node=NODE, zones=["a"], nodes=[NODE], ready=True, serving=True,
                 terminating=False),
        endpoint(f"10.244.{number}.2", node="node-2", ready=False, serving=True, terminating=True),
        name=f"{name}-4", service_name=name, namespace=namespace)
    v4["ports"].append({"name": "dns", "port": 5353, "protocol": "UDP"})
    v6 = endpoint_slice(f"fd00:244:{number}::1", name=f"{name}-6", service_name=name, namespace=namespace,
                        address_type="IPv6")
    return [one, v4, v6]


def plain(namespace: str, number: int) -> list[Object]:
    """A Service with nothing that it need not have, and its slice."""
    one = service("plain", namespace, [{"port": 443}], clusterIP=f"10.96.1.{number}")
    return [one, endpoint_slice(f"10.244.{number}.9", name="plain-4", service_name="plain", namespace=namespace,
                                port_name="")]


def node(name: str, number: int) -> Object:
    """A Node as Kubernetes and Calico write it."""
    one = item("v1", "Node", name, spec={"podCIDR": f"10.244.{number}.0/24",
                                         "podCIDRs": [f"10.244.{number}.0/24", f"fd00:244:{number}::/64"]},
               status={"addresses": [{"type": "InternalIP", "address": f"192.0.2.{number}"},
                                     {"type": "ExternalIP", "address": f"2001:db8::{number}"},
                                     {"type": "Hostname", "address": name}]})
    one["metadata"]["labels"] = {"topology.kubernetes.io/zone": "a"}
    one["metadata"]["annotations"] = {"projectcalico.org/IPv4Address": f"192.0.2.{number}/24"}
    return one


def calico() -> list[Object]:
    """One object of every kind of Calico's, and a Pod with floating IPs."""
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop", "annotations": {
        "cni.projectcalico.org/floatingIPs": '["198.51.100.70", "2001:db8:7::70"]',
        "cni.projectcalico.org/podIP": "10.244.1.70/32"}},
        "spec": {"nodeName": NODE}, "status": {"phase": "Running", "podIP": "10.244.1.70",
                                               "podIPs": [{"ip": "10.244.1.70"}, {"ip": "fd00:244::70"}]}}
    workload = {"apiVersion": "projectcalico.org/v3", "kind": "WorkloadEndpoint",
                "metadata": {"name": "node--1-k8s-web-eth0", "namespace": "shop"},
                "spec": {"node": NODE, "orchestrator": "k8s", "ipNetworks": ["10.244.1.71/32"],
                         "ipNATs": [{"externalIP": "198.51.100.71", "internalIP": "10.244.1.71"}]}}
    return [
        item("crd.projectcalico.org/v1", "IPPool", "pods", spec={"cidr": "10.244.0.0/16", "natOutgoing": True,
                                                                 "allowedUses": ["Workload", "Tunnel"]}),
        item("projectcalico.org/v3", "IPPool", "pods-6", spec={"cidr": "fd00:244::/48", "natOutgoing": True}),
        item("projectcalico.org/v3", "BGPConfiguration", "default", spec={
            "serviceClusterIPs": [{"cidr": "10.96.0.0/12"}, {"cidr": "fd00:96::/108"}],
            "serviceExternalIPs": [{"cidr": "198.51.100.0/24"}],
            "serviceLoadBalancerIPs": [{"cidr": "203.0.113.0/24"}]}),
        item("projectcalico.org/v3", "FelixConfiguration", "default", spec={"natPortRange": "32768:65535",
                                                                            "natOutgoingAddress": "192.0.2.1"}),
        item("crd.projectcalico.org/v1", "IPAMBlock", "10-244-0-0-26", spec={"cidr": "10.244.0.0/26"}),
        item("networking.k8s.io/v1", "ServiceCIDR", "kubernetes", spec={"cidrs": ["10.96.0.0/12", "fd00:96::/108"]}),
        pod, workload,
    ]


def cluster() -> list[Object]:
    """A small cluster with something of everything."""
    return [*services("shop", 1), *services("shop", 2), node(NODE, 11), node("node-2", 12), *calico()]


kinds = st.sampled_from(("Service", "EndpointSlice", "Node", "IPPool", "BGPConfiguration", "Pod", "WorkloadEndpoint",
                         "FelixConfiguration", "IPAMBlock", "ServiceCIDR", "List", "ServiceList", "IPPoolList"))
