# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses on the interfaces of this network namespace, asked over netlink."""

from __future__ import annotations

import socket
import struct

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import parse_address
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.netlink import (
    NETLINK_ROUTE,
    Netlink,
    attributes,
)

_RTM_GETADDR = 22
_IFADDRMSG = struct.Struct("=BBBBI")
_IFA_ADDRESS, _IFA_LOCAL = 1, 2


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
