# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""EndpointSlice -> endpoints by service port."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.kube.fields import Item
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import Layout
from ansible_collections.metal.nodenet.plugins.module_utils.kube.services import PortKey
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Address, parse_address
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6

SERVICE_LABEL = "kubernetes.io/service-name"

_ADDRESS_TYPES = {"IPv4": IPV4, "IPv6": IPV6}
_NO_HINTS: frozenset[str] = frozenset()


class Endpoint(NamedTuple):
    """One endpoint of one service port."""

    #: Canonical address.
    address: str
    #: ``10.0.0.1:80`` or ``[fd00::1]:80``: what it is called in comments, chain names and the order of endpoints.
    text: str
    #: The same with the canonical address: where the traffic goes, and what tells endpoints apart.
    target: str
    ready: bool
    serving: bool
    terminating: bool
    #: Empty where the slice does not say.
    node: str
    zone_hints: frozenset[str]
    node_hints: frozenset[str]


class _Place(NamedTuple):
    """An endpoint of a slice before it meets the slice's ports."""

    #: As it goes before ``:port``, with brackets for IPv6: as the layout wants it, and canonical.
    host: str
    canonical_host: str
    address: str
    rest: tuple[bool, bool, bool, str, frozenset[str], frozenset[str]]


def read_slice(item: Item, layout: Layout, into: dict[str, dict[PortKey, list[Endpoint]]]) -> None:
    """Add the endpoints of an EndpointSlice to ``into``: family -> service port -> endpoints.

    A slice that belongs to no Service, of addressType FQDN, or with an excluding label adds nothing.
    Raises :class:`ObjectError`.
    """
    service = item.text(item.labels, SERVICE_LABEL, f"metadata.labels[{SERVICE_LABEL}]")
    if not service or not layout.slice_exclusions.isdisjoint(item.labels):
        return
    family = _ADDRESS_TYPES.get(item.text(item.raw, "addressType", "addressType"))
    if family is None:
        if item.raw.get("addressType") != "FQDN":
            raise item.error("addressType", item.raw.get("addressType"), "is not one of IPv4, IPv6, FQDN")
        return
    ports = _ports(item)
    if not ports:
        return
    places = _places(item, layout, family)
    endpoints = into[family]
    for name, protocol, port in ports:
        key = PortKey(item.namespace, service, name, protocol)
        endpoints.setdefault(key, []).extend([
            Endpoint(address, f"{host}:{port}", f"{canonical}:{port}", *rest)
            for host, canonical, address, rest in places
        ])


def _ports(item: Item) -> list[tuple[str, str, int]]:
    """Name, protocol and number of each port that can have endpoints."""
    ports = []
    for index, raw in enumerate(item.mappings(item.raw, "ports", "ports")):
        field = f"ports[{index}]"
        protocol = item.protocol(raw, f"{field}.protocol")
        port = item.port(raw, "port", f"{field}.port")
        if raw.get("name") is None:
            item.warn(f"{field}.name", None, 'is not set: the port is left out (a port without a name has name "")')
        elif port:
            ports.append((item.port_name(raw, f"{field}.name"), protocol, port))
    return ports


def _places(item: Item, layout: Layout, family: str) -> list[_Place]:
    places = []
    several = False
    for index, raw in enumerate(item.mappings(item.raw, "endpoints", "endpoints")):
        addresses = raw.get("addresses")
        if not isinstance(addresses, list):
            addresses = item.sequence(raw, "addresses", f"endpoints[{index}].addresses")
        if not addresses:
            continue
        if len(addresses) > 1 and not several:
            several = True
            item.warn(f"endpoints[{index}].addresses", addresses, "has several addresses: only the first is used")
        given = addresses[0]
        address = _address(item, f"endpoints[{index}].addresses[0]", given, family)
        if address is None:
            continue
        shown = given if layout.endpoint_text_as_given and not address.zeros else address.text
        canonical = address.text
        if family == IPV6:
            shown, canonical = f"[{shown}]", f"[{canonical}]"
        places.append(_Place(shown, canonical, address.text, _rest(item, raw, index)))
    return places


def _address(item: Item, field: str, text: object, family: str) -> Address | None:
    if not isinstance(text, str):
        raise item.error(field, text, "is not a string")
    try:
        address = parse_address(text)
    except ValueError:
        item.warn(field, text, "is left out: not an IP address")
        return None
    if address.family != family:
        item.warn(field, text, f"is left out: not an {family} address")
        return None
    if address.zeros:
        item.warn(field, text, f"has leading zeros, which are read as decimal: {address.text}")
    return address


def _rest(item: Item, raw: Mapping[str, Any], index: int) -> tuple[
        bool, bool, bool, str, frozenset[str], frozenset[str]]:
    """The fields of an Endpoint from ``ready`` on."""
    ready = serving = True
    terminating = False
    conditions = raw.get("conditions")
    if conditions and not _plainly_ready(conditions):
        field = f"endpoints[{index}].conditions"
        conditions = item.mapping(raw, "conditions", field)
        ready = item.flag(conditions, "ready", f"{field}.ready", True)
        serving = item.flag(conditions, "serving", f"{field}.serving", True)
        terminating = item.flag(conditions, "terminating", f"{field}.terminating", False)
    node = item.text(raw, "nodeName", f"endpoints[{index}].nodeName")
    if not raw.get("hints"):
        return ready, serving, terminating, node, _NO_HINTS, _NO_HINTS
    field = f"endpoints[{index}].hints"
    hints = item.mapping(raw, "hints", field)
    return (ready, serving, terminating, node, _hints(item, hints, "forZones", field),
            _hints(item, hints, "forNodes", field))


def _plainly_ready(conditions: Any) -> bool:
    """Whether it says what is taken for granted; nearly all endpoints of a cluster do."""
    return isinstance(conditions, dict) and conditions.get("ready") is True and (
        len(conditions) == 1 or (len(conditions) == 3 and conditions.get("serving") is True
                                 and conditions.get("terminating") is False))


def _hints(item: Item, hints: Mapping[str, Any], key: str, field: str) -> frozenset[str]:
    return frozenset(item.text(entry, "name", f"{field}.{key}[].name")
                     for entry in item.mappings(hints, key, f"{field}.{key}"))
