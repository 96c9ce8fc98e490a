# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Floating IPs as they are given: mappings, WorkloadEndpoint objects, or Pod objects with an annotation."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.calico.reading import read_address
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.shapes import FLOATING_IPS
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Address, parse_address
from ansible_collections.metal.nodenet.plugins.module_utils.objects import Fields, Item, flatten

_POD_IPS = "cni.projectcalico.org/podIPs"
_POD_IP = "cni.projectcalico.org/podIP"
_AWS_POD_IPS = "vpc.amazonaws.com/pod-ips"
_FINISHED = ("Failed", "Succeeded", "Completed")
_OPENSTACK = "openstack"


class FloatingIP(NamedTuple):
    """One external address that leads to one internal address, both of one family."""

    external: Address
    internal: Address
    #: Whose it is, for people.
    endpoint: str
    #: It counts even where floating IPs are not enabled.
    always: bool = False


def read_mappings(raws: Iterable[object]) -> tuple[list[FloatingIP], list[str]]:
    """The floating IPs of a list of ``{external: …, internal: …, endpoint: …}``, the last one optional; and warnings.

    They are for this node, whoever wrote the list has seen to that. Raises :class:`ObjectError`.
    """
    warnings: list[str] = []
    found = []
    for place, raw in flatten("mappings", raws):
        item = Fields(place, raw, warnings)
        item.only(("external", "internal", "endpoint"))
        external = read_address(item, "external", raw.get("external"))
        internal = read_address(item, "internal", raw.get("internal"))
        _same_family(item, "external", external, internal)
        found.append(FloatingIP(external, internal, item.text(raw, "endpoint", "endpoint") or place))
    return found, warnings


def read_endpoints(raws: Iterable[object], node_name: str) -> tuple[list[FloatingIP], list[str]]:
    """The floating IPs of a list of WorkloadEndpoint and Pod objects (or Lists of them) on one node; and warnings.

    Other kinds and objects on other nodes are not looked at. Raises :class:`ObjectError`, and ``ValueError`` without
    ``node_name``.
    """
    if not node_name:
        raise ValueError("node_name: '' does not say which objects are on this node")
    warnings: list[str] = []
    found: list[FloatingIP] = []
    for place, raw in flatten("objects", raws):
        kind = raw.get("kind")
        if not isinstance(kind, str):
            raise Fields(place, raw, warnings).error("kind", kind, "is not the kind of an object")
        if kind == "WorkloadEndpoint":
            found += _of_endpoint(Item(kind, raw, warnings), node_name)
        elif kind == "Pod":
            found += _of_pod(Item(kind, raw, warnings), node_name)
    return found, list(dict.fromkeys(warnings))


def _same_family(item: Fields, field: str, external: Address, internal: Address) -> None:
    if external.family != internal.family:
        raise item.error(field, external.text, f"is not of the family of {internal.text}")


def _of_endpoint(item: Item, node_name: str) -> list[FloatingIP]:
    spec = item.mapping(item.raw, "spec", "spec")
    if item.text(spec, "node", "spec.node") != node_name or not item.texts(spec, "ipNetworks", "spec.ipNetworks"):
        return []
    always = item.text(spec, "orchestrator", "spec.orchestrator") == _OPENSTACK
    found = []
    for index, nat in enumerate(item.mappings(spec, "ipNATs", "spec.ipNATs")):
        field = f"spec.ipNATs[{index}]"
        external = _plain(item, f"{field}.externalIP", item.text(nat, "externalIP", f"{field}.externalIP"))
        internal = _plain(item, f"{field}.internalIP", item.text(nat, "internalIP", f"{field}.internalIP"))
        if external and internal:
            _same_family(item, f"{field}.externalIP", external, internal)
            found.append(FloatingIP(external, internal, f"{item.namespace}/{item.name}", always))
    return found


def _plain(item: Item, field: str, text: str) -> Address | None:
    """A plain address; Calico leaves out an entry that has anything else, so it is left out here, with a warning."""
    try:
        parse_address(text)
    except ValueError:
        item.warn(field, text, "is left out: not a plain IP address")
        return None
    return read_address(item, field, text)


def _of_pod(item: Item, node_name: str) -> list[FloatingIP]:
    text = item.text(item.annotations, FLOATING_IPS, f"metadata.annotations[{FLOATING_IPS}]")
    spec = item.mapping(item.raw, "spec", "spec")
    if not text or item.text(spec, "nodeName", "spec.nodeName") != node_name:
        return []
    if item.flag(spec, "hostNetwork", "spec.hostNetwork", False) or _is_finished(item):
        return []
    # With several addresses of a family, the last one.
    internals = {address.family: address for address in _pod_addresses(item)}
    found = []
    for index, entry in enumerate(_annotated(item, text)):
        field = f"metadata.annotations[{FLOATING_IPS}][{index}]"
        external = _plain(item, field, entry)
        if external is None:
            continue
        if external.family in internals:
            found.append(FloatingIP(external, internals[external.family], f"{item.namespace}/{item.name}"))
        else:
            item.warn(field, entry, f"is left out: the pod has no {external.family} address")
    return found


def _is_finished(item: Item) -> bool:
    """Whether the pod has given its addresses back."""
    status = item.mapping(item.raw, "status", "status")
    if item.text(status, "phase", "status.phase") in _FINISHED:
        return True
    meta = item.mapping(item.raw, "metadata", "metadata")
    return bool(meta.get("deletionTimestamp")) and item.annotations.get(_POD_IP) == ""


def _annotated(item: Item, text: str) -> list[str]:
    field = f"metadata.annotations[{FLOATING_IPS}]"
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, list) or not all(isinstance(entry, str) for entry in value):
        raise item.error(field, text, "is not a JSON list of strings")
    return value


def _pod_addresses(item: Item) -> list[Address]:
    """The addresses of the pod, from the first place that has any."""
    status = item.mapping(item.raw, "status", "status")
    for field, texts in _places(item, status):
        given = [text for text in texts if text]
        if given:
            return [read_address(item, field, text.strip().partition("/")[0]) for text in given]
    return []


def _places(item: Item, status: Mapping[str, Any]) -> Iterable[tuple[str, list[str]]]:
    pod_ips = item.mappings(status, "podIPs", "status.podIPs")
    yield "status.podIPs", [item.text(entry, "ip", "status.podIPs[].ip") for entry in pod_ips]
    yield "status.podIP", [item.text(status, "podIP", "status.podIP")]
    for key in (_POD_IPS, _POD_IP, _AWS_POD_IPS):
        field = f"metadata.annotations[{key}]"
        yield field, item.text(item.annotations, key, field).split(",")
