# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Flows: finds and deletes the connection tracking entries that a change leaves behind.

The kernel is asked over netlink, as kube-proxy 1.36 does: one dump finds the flows, one message deletes each. The
``conntrack`` program would be one process per address and endpoint, and a package that a node may not have.
"""

from __future__ import annotations

import errno
import socket
import struct
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import FlowError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.netlink import (
    NETLINK_NETFILTER,
    Netlink,
    attribute,
    attributes,
)

UDP = 17
#: An address and a port.
Endpoint = tuple[str, int]

_GET, _DELETE = 0x101, 0x102
_NFGENMSG = struct.Struct("=BBH")
_CTA_TUPLE_ORIG, _CTA_TUPLE_REPLY, _CTA_ID, _CTA_ZONE = 1, 2, 12, 18
_NESTED = 0x8000
_FAMILY = {IPV4: socket.AF_INET, IPV6: socket.AF_INET6}


class FlowSelector(NamedTuple):
    """Flows of one frontend that must go: all of them but those that an endpoint of ``keep`` answers."""

    family: str
    #: Original destination: these addresses, and this UDP port; port 0 means every port of every protocol.
    addresses: frozenset[str]
    port: int
    #: Port 0 of an endpoint means every port.
    keep: frozenset[Endpoint]
    #: The service, and why, for people.
    service: str
    reason: str

    @property
    def protocol_name(self) -> str:
        """``udp`` or ``any``."""
        return "udp" if self.port else "any"


class Flow(NamedTuple):
    """One flow: who asked what, and who answers. Ports are 0 where the protocol has none."""

    family: str
    protocol: int
    source: Endpoint
    destination: Endpoint
    answering: Endpoint
    #: What the kernel needs to find it again.
    key: bytes


def find_flows(selectors: Sequence[FlowSelector]) -> list[Flow]:
    """The flows which the selectors select, from one dump per family. Raises ``FlowError``."""
    found: list[Flow] = []
    for family in dict.fromkeys(selector.family for selector in selectors):
        wanted = _by_frontend(selector for selector in selectors if selector.family == family)
        found += [flow for flow in _dump(family) if _selected(flow, wanted)]
    return found


def delete_flows(flows: Sequence[Flow]) -> int:
    """Delete the flows and return how many were still there. Raises ``FlowError``."""
    deleted = 0
    if not flows:
        return deleted
    try:
        with Netlink(NETLINK_NETFILTER) as link:
            for flow in flows:
                try:
                    link.request(_DELETE, _NFGENMSG.pack(_FAMILY[flow.family], 0, 0) + flow.key)
                    deleted += 1
                except OSError as error:
                    if error.errno != errno.ENOENT:
                        raise
    except OSError as error:
        raise FlowError(f"stale flows could not be deleted ({deleted} of {len(flows)} are gone): {error}") from None
    return deleted


def _by_frontend(selectors: Iterable[FlowSelector]) -> dict[Endpoint, frozenset[Endpoint]]:
    return {(address, selector.port): selector.keep for selector in selectors for address in selector.addresses}


def _selected(flow: Flow, wanted: dict[Endpoint, frozenset[Endpoint]]) -> bool:
    keep = wanted.get(flow.destination) if flow.protocol == UDP else None
    if keep is None:
        keep = wanted.get((flow.destination[0], 0))
    return keep is not None and not keep & {flow.answering, (flow.answering[0], 0)}


def _dump(family: str) -> Iterator[Flow]:
    try:
        with Netlink(NETLINK_NETFILTER) as link:
            messages = link.dump(_GET, _NFGENMSG.pack(_FAMILY[family], 0, 0))
    except OSError as error:
        raise FlowError(f"{family}: the kernel's connection tracking table could not be read: {error}") from None
    for message in messages:
        try:
            flow = _read(family, message)
        except ValueError as error:
            raise FlowError(f"{family}: the kernel's connection tracking table holds no flow: {error}") from None
        if flow is not None:
            yield flow


def _read(family: str, message: bytes) -> Flow | None:
    parts = dict(attributes(message, _NFGENMSG.size))
    original = _tuple(parts.get(_CTA_TUPLE_ORIG, b""))
    reply = _tuple(parts.get(_CTA_TUPLE_REPLY, b""))
    if original is None or reply is None:
        return None
    protocol, source, destination = original
    key = attribute(_CTA_TUPLE_ORIG | _NESTED, parts[_CTA_TUPLE_ORIG])
    for kind in (_CTA_ID, _CTA_ZONE):
        if kind in parts:
            key += attribute(kind, parts[kind])
    return Flow(family, protocol, source, destination, reply[1], key)


def _tuple(data: bytes) -> tuple[int, Endpoint, Endpoint] | None:
    """Protocol, source and destination of one direction of a flow."""
    parts = dict(attributes(data))
    protocol = dict(attributes(parts.get(2, b"")))
    addresses = dict(attributes(parts.get(1, b"")))
    source, destination = addresses.get(1) or addresses.get(3), addresses.get(2) or addresses.get(4)
    if source is None or destination is None:
        return None
    return (int.from_bytes(protocol.get(1, b""), "big"), (_text(source), int.from_bytes(protocol.get(2, b""), "big")),
            (_text(destination), int.from_bytes(protocol.get(3, b""), "big")))


def _text(packed: bytes) -> str:
    return socket.inet_ntop(socket.AF_INET if len(packed) == 4 else socket.AF_INET6, packed)
