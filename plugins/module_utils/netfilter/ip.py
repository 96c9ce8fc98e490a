# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""IP addresses and networks in one spelling each.

Reading is as lenient as Kubernetes is: leading zeros are decimal (``010.0.0.1`` is ``10.0.0.1``), blanks around the
text and host bits of a network are dropped, an IPv4-mapped IPv6 address is IPv4. Writing is strict: dotted decimal,
or IPv6 as RFC 5952 has it, so equal addresses are equal texts and nothing is handed raw to the tools.
"""

from __future__ import annotations

import re
import socket
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

BITS = {IPV4: 32, IPV6: 128}

_MAPPED = b"\0" * 10 + b"\xff\xff"
_octets = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)\.([0-9]+)").fullmatch
_digits = re.compile(r"[0-9]{1,9}").fullmatch
_long_group = re.compile(r"(?<![0-9A-Fa-f.])0+(?=[0-9A-Fa-f]{4})")


class Address(NamedTuple):
    """One address: ``family`` (``ipv4`` or ``ipv6``) and its canonical ``text``."""

    family: str
    text: str
    #: True where leading zeros were read as decimal: other readers take them as octal, so say so.
    zeros: bool = False


class Network(NamedTuple):
    """One network: canonical ``text`` (``10.0.0.0/8``), its first address as a number, and the prefix length."""

    family: str
    text: str
    first: int
    length: int
    zeros: bool = False

    def has(self, address: Address) -> bool:
        """Whether an address lies in the network."""
        shift = BITS[self.family] - self.length
        return address.family == self.family and number(address) >> shift == self.first >> shift


def parse_address(text: str) -> Address:
    """Read an address of either family. Raises ``ValueError`` with the text if it is none."""
    try:
        if socket.inet_ntoa(socket.inet_pton(socket.AF_INET, text)) == text:
            return Address(IPV4, text)
    except (OSError, ValueError):
        pass
    return _lenient_address(text)


def parse_network(text: str) -> Network:
    """Read a CIDR of either family and drop its host bits. Raises ``ValueError`` with the text if it is none."""
    address_text, slash, length_text = text.strip(" \t").partition("/")
    if not slash or not _digits(length_text) or address_text.strip() != address_text:
        raise ValueError(f"not a CIDR: {shown(text)}")
    try:
        packed, zeros = _pack(address_text)
    except ValueError:
        raise ValueError(f"not a CIDR: {shown(text)}") from None
    length = int(length_text)
    if len(packed) == 16 and packed[:12] == _MAPPED and length >= 96:
        packed, length = packed[12:], length - 96
    bits = len(packed) * 8
    if length > bits:
        raise ValueError(f"not a CIDR: {shown(text)}")
    shift = bits - length
    first = int.from_bytes(packed, "big") >> shift << shift
    family = IPV4 if bits == 32 else IPV6
    return Network(family, f"{_print(first.to_bytes(bits // 8, 'big'))}/{length}", first, length, zeros)


def number(address: Address) -> int:
    """The address as an integer."""
    return int.from_bytes(socket.inet_pton(socket.AF_INET if address.family == IPV4 else socket.AF_INET6, address.text),
                          "big")


def family_of(text: str) -> str | None:
    """``ipv4`` or ``ipv6`` for the text of an address, None if it is none."""
    try:
        return parse_address(text).family
    except ValueError:
        return None


def is_loopback(address: Address) -> bool:
    """Whether the address is in 127.0.0.0/8, or ``::1``."""
    return address.text == "::1" if address.family == IPV6 else address.text.startswith("127.")


def single(address: Address) -> str:
    """The address as ``iptables-save`` prints a match on it: with its full prefix length."""
    return f"{address.text}/{BITS[address.family]}"


def _lenient_address(text: str) -> Address:
    packed, zeros = _pack(text.strip(" \t"))
    if packed[:12] == _MAPPED and len(packed) == 16:
        packed = packed[12:]
    return Address(IPV4 if len(packed) == 4 else IPV6, _print(packed), zeros)


def _pack(text: str) -> tuple[bytes, bool]:
    """The bytes of an address, 4 or 16, and whether leading zeros of a decimal were read."""
    if ":" not in text:
        return _pack4(text)
    head, _colon, last = text.rpartition(":")
    zeros = False
    if "." in last:
        four, zeros = _pack4(last)
        text = f"{head}:{four[0]:x}{four[1]:02x}:{four[2]:x}{four[3]:02x}"
    try:
        return socket.inet_pton(socket.AF_INET6, _long_group.sub("", text)), zeros
    except (OSError, ValueError):
        raise ValueError(f"not an IP address: {shown(text)}") from None


def _pack4(text: str) -> tuple[bytes, bool]:
    match = _octets(text)
    if not match:
        raise ValueError(f"not an IP address: {shown(text)}")
    parts = match.groups()
    # Only the last digits can matter; a text of a thousand digits must not cost.
    short = [part.lstrip("0") or "0" for part in parts]
    if any(len(part) > 3 or int(part) > 255 for part in short):
        raise ValueError(f"not an IP address: {shown(text)}")
    return bytes(map(int, short)), any(part != clean for part, clean in zip(parts, short))


def _print(packed: bytes) -> str:
    if len(packed) == 4:
        return socket.inet_ntoa(packed)
    text = socket.inet_ntop(socket.AF_INET6, packed)
    if "." not in text:
        return text
    # The C library writes ::a.b.c.d for small numbers, RFC 5952 readers such as Go do not.
    if packed[:12] == _MAPPED:
        return f"::ffff:{packed[12] << 8 | packed[13]:x}:{packed[14] << 8 | packed[15]:x}"
    high, low = packed[12] << 8 | packed[13], packed[14] << 8 | packed[15]
    return f"::{high:x}:{low:x}"
