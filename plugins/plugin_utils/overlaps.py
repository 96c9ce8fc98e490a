# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Finds address ranges of a cluster that must not have an address in common."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.shown import one_line, shown
from ansible_collections.metal.nodenet.plugins.plugin_utils.libraries import on_the_controller

POOL, SERVICES, POD_CIDR, HOSTS = "pool", "service CIDR", "pod CIDR", "node network"

#: Which uses of addresses exclude each other. Pod CIDRs in pools are normal, and so are nodes in node networks.
_CONFLICTS = frozenset(frozenset(pair) for pair in (
    (POOL, POOL), (POOL, SERVICES), (SERVICES, SERVICES), (POD_CIDR, SERVICES),
    (HOSTS, POOL), (HOSTS, SERVICES), (HOSTS, POD_CIDR)))
#: Beyond that, more texts tell nobody more.
_SHOWN = 20


class Range(NamedTuple):
    """One network and what it is used for."""

    use: str
    #: Whose it is, for people.
    owner: str
    version: int
    first: int
    last: int
    text: str


def overlaps(ranges: Iterable[Range]) -> list[str]:
    """What ranges that exclude each other have in common, as sentences.

    Networks are nested or apart, so one walk by address with a stack of those around the current one finds all.
    """
    found: list[str] = []
    around: list[Range] = []
    for one in sorted(set(ranges), key=lambda each: (each.version, each.first, -each.last, each.use == HOSTS, each)):
        while around and (around[-1].version, around[-1].last) < (one.version, one.first):
            around.pop()
        for other in reversed(around):
            if frozenset((one.use, other.use)) in _CONFLICTS and not _same_services(one, other):
                found.append(_sentence(other, one))
                if len(found) > _SHOWN:
                    return [*found[:_SHOWN], "…"]
        # A node holds nothing but itself, and there may be thousands of one network.
        if one.first != one.last or one.use != HOSTS:
            around.append(one)
    return found


def ranges_of(items: Iterable[Any], service_cidrs: Sequence[str], node_networks: Sequence[str]) -> Iterator[Range]:
    """The ranges that objects and options name. Raises ``ClusterFileError`` for what is no network."""
    for index, text in enumerate(service_cidrs):
        yield _range(SERVICES, f"service_cidrs[{index}]", text)
    for index, text in enumerate(node_networks):
        yield _range(HOSTS, f"node_networks[{index}]", text)
    for item in items:
        kind = item.get("kind") if isinstance(item, dict) else None
        if kind == "IPPool":
            yield _range(POOL, f"IPPool {_name(item)}", _part(item, "spec").get("cidr"))
        elif kind == "ServiceCIDR":
            for text in _texts(_part(item, "spec").get("cidrs")):
                yield _range(SERVICES, f"ServiceCIDR {_name(item)}", text)
        elif kind == "Node":
            yield from _of_node(item)


def _of_node(item: Mapping[str, Any]) -> Iterator[Range]:
    owner = f"Node {_name(item)}"
    spec = _part(item, "spec")
    for text in _texts(spec.get("podCIDRs")) or _texts([spec.get("podCIDR")]):
        yield _range(POD_CIDR, owner, text)
    addresses = _part(item, "status").get("addresses")
    for entry in addresses if isinstance(addresses, list) else ():
        if isinstance(entry, dict) and entry.get("type") in ("InternalIP", "ExternalIP"):
            yield _range(HOSTS, owner, entry.get("address"))


def _range(use: str, owner: str, text: object) -> Range:
    with on_the_controller():
        import netaddr

    try:
        if not isinstance(text, str):
            raise ValueError
        network = netaddr.IPNetwork(text)
    except (netaddr.AddrFormatError, ValueError):
        raise ClusterFileError(f"{owner}: {shown(text)} is not a network or an address") from None
    return Range(use, owner, network.version, network.first, network.last, str(network.cidr))


def _same_services(one: Range, other: Range) -> bool:
    """The option and the object may say the same."""
    return one.use == other.use == SERVICES and (one.first, one.last) == (other.first, other.last)


def _sentence(other: Range, one: Range) -> str:
    relation = "is the same as" if (one.first, one.last) == (other.first, other.last) else "is inside of"
    return f"{one.use} {one.text} ({one.owner}) {relation} {other.use} {other.text} ({other.owner})"


def _part(item: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = item.get(key)
    return value if isinstance(value, dict) else {}


def _texts(value: Any) -> list[str]:
    return [text for text in value if isinstance(text, str) and text] if isinstance(value, list) else []


def _name(item: Mapping[str, Any]) -> str:
    return one_line(_part(item, "metadata").get("name"))
