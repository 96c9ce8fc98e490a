# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of this network namespace, asked over netlink."""

from __future__ import annotations

import socket
import struct
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import parse_address
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.netlink import (
    NETLINK_ROUTE,
    Netlink,
    attributes,
)

_RTM_GETADDR = 22
_IFADDRMSG = struct.Struct("=BBBBI")
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_RTM_GETROUTE = 26
_RTMSG = struct.Struct("=BBBBBBBBI")
_RTA_DST, _RTA_OIF, _RTA_TABLE = 1, 4, 15
_RT_TABLE_LOCAL = 255
_RTN_LOCAL = 2


class LocalRoute(NamedTuple):
    """One destination that the kernel takes for this node's own: its address without length, and its interface."""

    family: str
    address: str
    interface: str


def local_addresses() -> list[str]:
    """Canonical texts of all addresses of both families, loopback included, sorted. Raises ``NetfilterError``."""
    try:
        with Netlink(NETLINK_ROUTE) as link:
            messages = link.dump(_RTM_GETADDR, _IFADDRMSG.pack(socket.AF_UNSPEC, 0, 0, 0, 0))
    except OSError as error:
        raise NetfilterError(f"the node's addresses could not be read: {error}") from None
    found = set()
    for message in messages:
        family = message[0]
        parts = dict(attributes(message, _IFADDRMSG.size))
        # On a point-to-point link the first one is the peer's.
        packed = parts.get(_IFA_LOCAL) or parts.get(_IFA_ADDRESS)
        if packed and family in (socket.AF_INET, socket.AF_INET6):
            found.add(parse_address(socket.inet_ntop(family, packed)).text)
    return sorted(found)


def local_routes() -> list[LocalRoute]:
    """The routes of type local in the table local, of both families, sorted. Raises ``NetfilterError``."""
    found = set()
    try:
        with Netlink(NETLINK_ROUTE) as link:
            for family in (socket.AF_INET, socket.AF_INET6):
                for message in link.dump(_RTM_GETROUTE, _RTMSG.pack(family, 0, 0, 0, 0, 0, 0, 0, 0)):
                    route = _local_route(family, message)
                    if route is not None:
                        found.add(route)
    except OSError as error:
        raise NetfilterError(f"the node's local routes could not be read: {error}") from None
    return sorted(found)


def _local_route(family: int, message: bytes) -> LocalRoute | None:
    _family, _length, _source, _tos, short_table, _protocol, _scope, kind, _flags = _RTMSG.unpack_from(message)
    parts = dict(attributes(message, _RTMSG.size))
    table = struct.unpack("=I", parts[_RTA_TABLE])[0] if _RTA_TABLE in parts else short_table
    if kind != _RTN_LOCAL or table != _RT_TABLE_LOCAL or _RTA_DST not in parts or _RTA_OIF not in parts:
        return None
    try:
        name = socket.if_indextoname(struct.unpack("=I", parts[_RTA_OIF])[0])
    except OSError:
        # A pod went while we were reading, and its interface with it.
        return None
    return LocalRoute(IPV4 if family == socket.AF_INET else IPV6, socket.inet_ntop(family, parts[_RTA_DST]), name)
