# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What objects ask for, read by a simple mind: every frontend, endpoint, pool and address that any of them names.

Nothing in the rules may be more than that. It is not the policy: it asks what *may* be there.
"""

from __future__ import annotations

import contextlib
import ipaddress
import json
import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

_PROTOCOLS = {"TCP": "tcp", "UDP": "udp", "SCTP": "sctp"}


class Asked(NamedTuple):
    """What Services and slices name."""

    #: namespace/name of a Service, address and protocol and port
    frontends: set[tuple[str, str, str, int]]
    node_ports: set[tuple[str, str, int]]
    health_ports: set[tuple[str, int]]
    #: namespace/name of the Service that a slice names, protocol, endpoint
    endpoints: set[tuple[str, str, str]]
    ranges: set[str]


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def address_of(text: Any) -> str | None:
    """An address in one spelling, None if it is none."""
    if not isinstance(text, str) or len(text) > 20_000_000:
        return None
    text = text.strip(" \t")
    if not re.fullmatch(r"[0-9A-Fa-f:.]+", text):
        return None
    groups = [part.lstrip("0") or ("0" if part else "") for part in re.split(r"[:.]", text)]
    marks = re.findall(r"[:.]", text)
    text = "".join(group + mark for group, mark in zip(groups, [*marks, ""]))
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return None
    mapped = getattr(address, "ipv4_mapped", None)
    return str(mapped or address)


def network_of(text: Any) -> str | None:
    """A network in one spelling; an address is the network of it alone."""
    if not isinstance(text, str):
        return None
    host, slash, length = text.strip(" \t").partition("/")
    address = address_of(host)
    if address is None or (slash and not re.fullmatch(r"[0-9]{1,9}", length)):
        return None
    if slash and ":" in host and ":" not in address:  # an IPv4 network in IPv6 clothes
        length = str(int(length) - 96)
    try:
        return str(ipaddress.ip_network(f"{address}/{int(length)}" if slash else address, strict=False))
    except ValueError:
        return None


def _owner(item: dict[str, Any], name: Any) -> str:
    return f"{_dict(item.get('metadata')).get('namespace') or 'default'}/{name}"


def asked(objects: Iterable[Any]) -> Asked:
    """What the Services and EndpointSlices among the objects ask for."""
    found = Asked(set(), set(), set(), set(), set())
    for item in objects:
        kind = _dict(item).get("kind")
        if kind == "Service":
            _of_service(item, found)
        elif kind == "EndpointSlice":
            _of_slice(item, found)
    return found


def _of_service(item: dict[str, Any], found: Asked) -> None:
    spec = _dict(item.get("spec"))
    owner = _owner(item, _dict(item.get("metadata")).get("name"))
    ingress = _list(_dict(_dict(item.get("status")).get("loadBalancer")).get("ingress"))
    texts = [spec.get("clusterIP"), *_list(spec.get("clusterIPs")), *_list(spec.get("externalIPs")),
             *(_dict(entry).get("ip") for entry in ingress)]
    addresses = {address_of(text) for text in texts} - {None}
    found.ranges.update(network_of(text) or "" for text in _list(spec.get("loadBalancerSourceRanges")))
    found.ranges.update(network_of(address) or "" for address in addresses)
    if _number(spec.get("healthCheckNodePort")):
        found.health_ports.add((owner, spec["healthCheckNodePort"]))
    for port in map(_dict, _list(spec.get("ports"))):
        protocol = port.get("protocol") or "TCP"
        if not isinstance(protocol, str) or protocol not in _PROTOCOLS or not _number(port.get("port")):
            continue
        found.frontends.update((owner, str(address), _PROTOCOLS[protocol], port["port"]) for address in addresses)
        if _number(port.get("nodePort")):
            found.node_ports.add((owner, _PROTOCOLS[protocol], port["nodePort"]))


def _number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _of_slice(item: dict[str, Any], found: Asked) -> None:
    owner = _owner(item, _dict(_dict(item.get("metadata")).get("labels")).get("kubernetes.io/service-name"))
    addresses = {address_of(text) for entry in map(_dict, _list(item.get("endpoints")))
                 for text in _list(entry.get("addresses"))[:1]} - {None}
    for port in map(_dict, _list(item.get("ports"))):
        protocol = port.get("protocol") or "TCP"
        if isinstance(protocol, str) and protocol in _PROTOCOLS and _number(port.get("port")):
            for address in map(str, addresses):
                host = f"[{address}]" if ":" in address else address
                found.endpoints.add((owner, _PROTOCOLS[protocol], f"{host}:{port['port']}"))


def strings(tree: Any) -> Iterator[str]:
    """Every text in a tree, without recursion."""
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, str):
            yield one
        elif isinstance(one, dict):
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def networks_named(objects: Iterable[Any], *kinds: str) -> set[str]:
    """Every network or address that objects of some kinds (or without one) have as text anywhere."""
    found: set[str] = set()
    for item in objects:
        if isinstance(item, dict) and item.get("kind") not in (*kinds, None):
            continue
        for text in strings(item):
            if len(text) < 4096:
                parts = [text, *text.split(",")]
                if text.startswith("["):
                    with contextlib.suppress(ValueError, RecursionError):
                        parts += strings(json.loads(text))
                for part in parts:
                    found.update(filter(None, (network_of(part), network_of(part.strip().partition("/")[0]))))
            else:
                found.update(filter(None, (network_of(text),)))
    return found
