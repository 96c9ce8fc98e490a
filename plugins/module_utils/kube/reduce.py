# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cuts a cluster down to what the modules read, so that little travels to a node. Values are kept as they are."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

#: Which fields of a kind are read. True keeps a value whole; a list applies to each item of a list.
_SHAPES: dict[str, Mapping[str, Any]] = {
    "Service": {
        "apiVersion": True, "kind": True,
        "metadata": {"name": True, "namespace": True, "labels": True, "annotations": {
            "service.kubernetes.io/topology-aware-hints": True, "service.kubernetes.io/topology-mode": True}},
        "spec": {"type": True, "clusterIP": True, "clusterIPs": True, "ipFamilies": True, "externalIPs": True,
                 "ports": [{"name": True, "port": True, "protocol": True, "nodePort": True}],
                 "sessionAffinity": True, "sessionAffinityConfig": True, "internalTrafficPolicy": True,
                 "externalTrafficPolicy": True, "healthCheckNodePort": True, "loadBalancerSourceRanges": True},
        "status": {"loadBalancer": {"ingress": [{"ip": True, "ipMode": True, "hostname": True}]}},
    },
    "EndpointSlice": {
        "apiVersion": True, "kind": True, "metadata": {"name": True, "namespace": True, "labels": True},
        "addressType": True, "ports": True,
        "endpoints": [{"addresses": True, "nodeName": True, "conditions": True, "hints": True}],
    },
    "Node": {
        "apiVersion": True, "kind": True, "metadata": {"name": True, "labels": True},
        "spec": {"podCIDR": True, "podCIDRs": True}, "status": {"addresses": True},
    },
}


def reduce_items(items: Iterable[Any]) -> list[Any]:
    """The items of the kinds that are read, with only the fields that are read. What is malformed stays to be named."""
    out = []
    for item in items:
        if not isinstance(item, dict):
            out.append(item)
            continue
        shape = _SHAPES.get(str(item.get("kind")))
        if shape is not None:
            out.append(_cut(item, shape))
    return out


def _cut(value: Any, shape: Any) -> Any:
    if shape is True:
        return value
    if isinstance(shape, list):
        return [_cut(item, shape[0]) for item in value] if isinstance(value, list) else value
    if not isinstance(value, dict):
        return value
    return {key: _cut(value[key], part) for key, part in shape.items() if key in value}
