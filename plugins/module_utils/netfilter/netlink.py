# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The few netlink messages that the engine needs: ask, dump, delete. Standard library only."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections.abc import Iterator

NETLINK_ROUTE = 0
NETLINK_NETFILTER = 12

NLM_F_REQUEST = 0x1
NLM_F_ACK = 0x4
NLM_F_DUMP = 0x300
_NLM_F_DUMP_INTR = 0x10
_NLMSG_ERROR = 2
_NLMSG_DONE = 3
_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_RECEIVE_BYTES = 1 << 18
_TRIES = 5
#: The two flag bits of an attribute's type.
_TYPE_MASK = 0x3FFF


class Netlink:
    """One netlink socket, used as a context manager. All errors are ``OSError``."""

    def __init__(self, protocol: int) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES * 8)
        self._socket.bind((0, 0))
        self._sequence = 0

    def __enter__(self) -> Netlink:
        return self

    def __exit__(self, *_exception: object) -> None:
        self._socket.close()

    def dump(self, kind: int, body: bytes) -> list[bytes]:
        """All messages that answer a dump request. A dump that the kernel calls inconsistent is asked for again."""
        for _attempt in range(_TRIES):
            self._send(kind, NLM_F_REQUEST | NLM_F_DUMP, body)
            found, whole = self._collect()
            if whole:
                return found
        raise OSError(errno.EINTR, f"the kernel's list changed during each of {_TRIES} reads")

    def request(self, kind: int, body: bytes, flags: int = 0) -> None:
        """Send one request and wait for its acknowledgement."""
        self._send(kind, NLM_F_REQUEST | NLM_F_ACK | flags, body)
        self._collect()

    def _send(self, kind: int, flags: int, body: bytes) -> None:
        self._sequence += 1
        self._socket.send(_HEADER.pack(_HEADER.size + len(body), kind, flags, self._sequence, 0) + body)

    def _collect(self) -> tuple[list[bytes], bool]:
        found: list[bytes] = []
        whole = True
        while True:
            data = self._socket.recv(_RECEIVE_BYTES)
            at = 0
            while at + _HEADER.size <= len(data):
                length, kind, flags, sequence, _port = _HEADER.unpack_from(data, at)
                body = data[at + _HEADER.size:at + length]
                at += (length + 3) & ~3
                if sequence != self._sequence:
                    continue
                whole = whole and not flags & _NLM_F_DUMP_INTR
                if kind == _NLMSG_DONE:
                    return found, whole
                if kind == _NLMSG_ERROR:
                    _raise(body)
                    return found, whole
                found.append(body)


def _raise(body: bytes) -> None:
    code = struct.unpack_from("=i", body)[0]
    if code:
        raise OSError(-code, os.strerror(-code))


def attributes(data: bytes, start: int = 0) -> Iterator[tuple[int, bytes]]:
    """Type and value of each attribute in ``data`` from ``start`` on."""
    at = start
    while at + 4 <= len(data):
        length, kind = _ATTRIBUTE.unpack_from(data, at)
        if length < 4:
            return
        yield kind & _TYPE_MASK, data[at + 4:at + length]
        at += (length + 3) & ~3


def attribute(kind: int, value: bytes) -> bytes:
    """One attribute, padded. Nested attributes carry the flag 0x8000 in ``kind``."""
    return _ATTRIBUTE.pack(4 + len(value), kind) + value + b"\0" * (-len(value) % 4)
