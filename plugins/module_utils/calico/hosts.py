# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's own addresses: Felix's host IP manager, and the chain of IPVS mode that looks at them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.metal.nodenet.plugins.module_utils.calico import names, ownership, pieces
from ansible_collections.metal.nodenet.plugins.module_utils.calico.options import (
    DEFAULT_MAXELEM,
    INTERFACE_LENGTH,
    CalicoOptions,
    at_least_one,
    port_range,
)
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import FelixRule, render
from ansible_collections.metal.nodenet.plugins.module_utils.calico.state import make_set, one_table
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import parse_address
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain, Desired
from ansible_collections.metal.nodenet.plugins.module_utils.shown import one_line, shown

#: How many ports one match takes; a range counts as two.
_PORT_SLOTS = 15

_plain = re.compile(r"[A-Za-z0-9_-]{1,15}").fullmatch


@dataclass(frozen=True)
class HostOptions(CalicoOptions):
    """Which interfaces count, and what looks at the set. Raises ``ValueError`` naming the option and the value."""

    #: Interfaces of pods: what begins with one of these is left out.
    workload_prefixes: Sequence[str] = ("cali",)
    #: Names of interfaces to leave out, or ``/regular expression/`` for a part of the name.
    exclude_interfaces: Sequence[str] = ("kube-ipvs0",)
    #: Give the chains of IPVS mode, for Felix's ``cali-INPUT`` to jump to.
    forward_check: bool = False
    #: Ports and ranges ``MIN:MAX`` of node ports.
    nodeport_ranges: Sequence[int | str] = ("30000:32767",)
    max_ipset_size: int = DEFAULT_MAXELEM

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least_one("max_ipset_size", self.max_ipset_size)
        for prefix in self.workload_prefixes:
            if not isinstance(prefix, str) or not _plain(prefix):
                raise ValueError(f"workload_prefixes: {shown(prefix)} is not the beginning of an interface's name")
            if self.forward_check and len(prefix) >= INTERFACE_LENGTH:
                raise ValueError(f"workload_prefixes: {shown(prefix)} is too long for a rule, which needs a + behind "
                                 "it")
        for text in self.exclude_interfaces:
            _exclusion(text)
        port_splits(self.nodeport_ranges)

    def counts(self, interface: str) -> bool:
        """Whether the addresses of an interface are those of the host."""
        if interface.startswith(tuple(self.workload_prefixes)):
            return False
        return not any(_exclusion(text).search(interface) for text in self.exclude_interfaces)


def desired(addresses: Iterable[tuple[str, str]], options: HostOptions, family: str) -> tuple[Desired, list[str]]:
    """What the node should hold of one family, and what the caller should tell its user about.

    ``addresses``: destination and interface of each route of type local in the table local, as
    ``ip route show table local type local`` has them; what follows a ``/`` does not matter, so ``lo`` gives
    ``127.0.0.0`` too. Raises ``ValueError`` where the set cannot hold them.
    """
    members = frozenset(address for address, interface in _read(addresses, family) if options.counts(interface))
    name = names.set_name(family, names.THIS_HOST)
    warnings = [] if members else [f"{name} is empty: no interface of the host has a local {family} address"]
    sets = [make_set(name, "hash:ip", members, options.max_ipset_size)]
    if not options.forward_check:
        # The chains may be Felix's, on a node with IPVS; only who asks for them, or for their removal, means them.
        return one_table(family, "filter", frozenset(), (), (), sets, ownership.host_sets(family)), warnings
    chains = [_set_endpoint_mark(options), _forward_check(options, family)]
    return one_table(family, "filter", ownership.HOST_CHAINS, chains, (), sets, ownership.host_sets(family)), warnings


def nothing(family: str) -> Desired:
    """What the node should hold without any of this: no chain and no set."""
    return one_table(family, "filter", ownership.HOST_CHAINS, owned_sets=ownership.host_sets(family))


def port_splits(ranges: Sequence[int | str]) -> list[str]:
    """Ports and ranges as matches take them, 15 slots each, in the order given. Raises ``ValueError``."""
    splits: list[list[str]] = []
    left = 0
    for value in ranges:
        low, high = port_range("nodeport_ranges", value)
        text, slots = (str(low), 1) if low == high else (f"{low}:{high}", 2)
        if slots > left:
            splits.append([])
            left = _PORT_SLOTS
        splits[-1].append(text)
        left -= slots
    return [",".join(split) for split in splits]


def _read(addresses: Iterable[tuple[str, str]], family: str) -> Iterable[tuple[str, str]]:
    for text, interface in addresses:
        try:
            address = parse_address(text.partition("/")[0])
        except (ValueError, AttributeError):
            raise ValueError(f"addresses: {shown(text)} on {one_line(interface)} is not an IP address") from None
        if address.family == family:
            yield address.text, interface


def _exclusion(text: str) -> re.Pattern[str]:
    """What finds the names that are left out."""
    if isinstance(text, str) and len(text) > 2 and text.startswith("/") and text.endswith("/"):
        try:
            return re.compile(text[1:-1])
        except re.error as error:
            raise ValueError(f"exclude_interfaces: {shown(text)} is not a regular expression: {error}") from None
    if not isinstance(text, str) or not _plain(text):
        raise ValueError(f"exclude_interfaces: {shown(text)} is neither the name of an interface nor a /regular "
                         "expression/")
    return re.compile(rf"\A{re.escape(text)}\Z")


def _forward_check(options: HostOptions, family: str) -> Chain:
    this_host = names.set_name(family, names.THIS_HOST)
    rules = [FelixRule((pieces.conntrack_state("RELATED,ESTABLISHED"), pieces.RETURN))]
    for ports in port_splits(options.nodeport_ranges):
        for protocol in ("tcp", "udp"):
            rules.append(FelixRule((pieces.protocol(protocol), pieces.destination_ports(ports),
                                    pieces.in_set(this_host, "dst"), pieces.goto(names.SET_ENDPOINT_MARK)),
                                   "To kubernetes NodePort service"))
    rules.append(FelixRule((pieces.not_in_set(this_host, "dst"), pieces.jump(names.SET_ENDPOINT_MARK)),
                           "To kubernetes service"))
    return Chain(names.FORWARD_CHECK, render(names.FORWARD_CHECK, rules, options.rule_hashes))


def _set_endpoint_mark(options: HostOptions) -> Chain:
    """The chain without any endpoint. Where Felix runs, it has rules of its own in it, so it only must be there."""
    rules = [FelixRule((pieces.in_interface(f"{prefix}+"), pieces.DROP), "Unknown endpoint")
             for prefix in options.workload_prefixes]
    rules.append(FelixRule((pieces.set_mark(options.version.no_endpoint_mark),), "Non-Cali endpoint mark"))
    return Chain(names.SET_ENDPOINT_MARK, render(names.SET_ENDPOINT_MARK, rules, options.rule_hashes),
                 exists_only=True)
