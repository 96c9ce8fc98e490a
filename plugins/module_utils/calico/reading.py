# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and networks in objects and options: read in one spelling, or refused by name.

Leading zeros are decimal, as Kubernetes reads them, with a warning. An IPv4 address in IPv6 clothes is refused: Calico
takes it for IPv6, and the tools for IPv4.
"""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import (
    BITS,
    Address,
    Network,
    parse_address,
    parse_network,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4
from ansible_collections.metal.nodenet.plugins.module_utils.objects import Fields

_ZEROS = "is read as {}: leading zeros are decimal"


def read_address(item: Fields, field: str, value: object) -> Address:
    """A plain address. Raises :class:`ObjectError` for anything else, a prefix length included."""
    try:
        if not isinstance(value, str):
            raise ValueError
        address = parse_address(value)
    except ValueError:
        raise item.error(field, value, "is not an IP address" + _no_length(value)) from None
    _refuse_mapped(item, field, value, address.family)
    if address.zeros:
        item.warn(field, value, _ZEROS.format(address.text))
    return address


def read_network(item: Fields, field: str, value: object, bare: bool = False) -> Network:
    """A CIDR, its host bits dropped with a warning; with ``bare`` also an address, as the network of it alone.

    Raises :class:`ObjectError` for anything else.
    """
    if bare and isinstance(value, str) and "/" not in value:
        return network_of(read_address(item, field, value))
    try:
        if not isinstance(value, str):
            raise ValueError
        network = parse_network(value)
    except ValueError:
        raise item.error(field, value, "is not a CIDR" + (" or an IP address" if bare else "")) from None
    _refuse_mapped(item, field, value, network.family)
    if network.zeros:
        item.warn(field, value, _ZEROS.format(network.text))
    if has_host_bits(value, network):
        item.warn(field, value, f"has host bits, which are dropped: {network.text}")
    return network


def read_member(item: Fields, field: str, value: object, bare: bool = False) -> Network:
    """As :func:`read_network`, for a set: the kernel takes no network of length 0."""
    network = read_network(item, field, value, bare)
    if network.length == 0:
        raise item.error(field, value, "holds every address: ipset takes no such member, and nothing would be outside")
    return network


def network_of(address: Address) -> Network:
    """The network that holds one address and no other."""
    return parse_network(f"{address.text}/{BITS[address.family]}")


def has_host_bits(text: str, network: Network) -> bool:
    """Whether a CIDR's text names an address that is not the first one of its network."""
    return parse_address(text.partition("/")[0]).text != network.text.partition("/")[0]


def overlap(one: Network, other: Network) -> bool:
    """Whether two networks have an address in common."""
    shift = BITS[one.family] - min(one.length, other.length)
    return one.family == other.family and one.first >> shift == other.first >> shift


def as_member(network: Network) -> str:
    """The network as ``ipset save`` prints it: a single address without its length."""
    return network.text.partition("/")[0] if network.length == BITS[network.family] else network.text


def _refuse_mapped(item: Fields, field: str, value: str, family: str) -> None:
    if family == IPV4 and ":" in value:
        raise item.error(field, value, "is an IPv4 address written as IPv6; write it as IPv4")


def _no_length(value: object) -> str:
    if not isinstance(value, str) or "/" not in value:
        return ""
    return "; only a plain address is one, without a prefix length"
