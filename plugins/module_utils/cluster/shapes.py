# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which fields of which kinds the modules read: data, for everything that cuts a cluster down or asks for it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

#: The annotation by which a Pod asks for floating IPs; Pods without it are read by no module.
FLOATING_IPS = "cni.projectcalico.org/floatingIPs"

_HEAD = {"apiVersion": True, "kind": True}

#: Kind to fields. True keeps a value whole; a list applies to each item of a list.
SHAPES: dict[str, Mapping[str, Any]] = {
    "Service": {
        **_HEAD,
        "metadata": {"name": True, "namespace": True, "labels": True, "annotations": {
            "service.kubernetes.io/topology-aware-hints": True, "service.kubernetes.io/topology-mode": True}},
        "spec": {"type": True, "clusterIP": True, "clusterIPs": True, "ipFamilies": True, "externalIPs": True,
                 "ports": [{"name": True, "port": True, "protocol": True, "nodePort": True}],
                 "sessionAffinity": True, "sessionAffinityConfig": True, "internalTrafficPolicy": True,
                 "externalTrafficPolicy": True, "healthCheckNodePort": True, "loadBalancerSourceRanges": True},
        "status": {"loadBalancer": {"ingress": [{"ip": True, "ipMode": True, "hostname": True}]}},
    },
    "EndpointSlice": {
        **_HEAD, "metadata": {"name": True, "namespace": True, "labels": True},
        "addressType": True, "ports": True,
        "endpoints": [{"addresses": True, "nodeName": True, "conditions": True, "hints": True}],
    },
    "Node": {
        **_HEAD,
        "metadata": {"name": True, "labels": True, "annotations": {
            "projectcalico.org/IPv4Address": True, "projectcalico.org/IPv6Address": True}},
        "spec": {"podCIDR": True, "podCIDRs": True}, "status": {"addresses": True},
    },
    "IPPool": {
        **_HEAD, "metadata": {"name": True}, "spec": {"cidr": True, "natOutgoing": True, "allowedUses": True},
    },
    "BGPConfiguration": {
        **_HEAD, "metadata": {"name": True},
        "spec": {"serviceClusterIPs": True, "serviceExternalIPs": True, "serviceLoadBalancerIPs": True},
    },
    "WorkloadEndpoint": {
        **_HEAD, "metadata": {"name": True, "namespace": True},
        "spec": {"node": True, "orchestrator": True, "ipNetworks": True, "ipNATs": True},
    },
    "Pod": {
        **_HEAD,
        "metadata": {"name": True, "namespace": True, "deletionTimestamp": True, "annotations": {
            FLOATING_IPS: True, "cni.projectcalico.org/podIPs": True, "cni.projectcalico.org/podIP": True,
            "vpc.amazonaws.com/pod-ips": True}},
        "spec": {"nodeName": True, "hostNetwork": True},
        "status": {"phase": True, "podIP": True, "podIPs": [{"ip": True}]},
    },
}
