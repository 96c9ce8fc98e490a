# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of one kube-proxy on one node."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import Layout
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import (
    BITS,
    Address,
    Network,
    is_loopback,
    parse_address,
    parse_network,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, IPV4, IPV6
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

PRIMARY = "primary"
#: The bit that the kubelet's rule drops by.
DROP_BIT = 15
DROP_MARK = 1 << DROP_BIT

DETECT_MODES = ("", "cluster_cidr", "node_cidr", "bridge_interface", "interface_prefix")

_CIDR_MODES = ("cluster_cidr", "node_cidr")
#: What the kernel takes: 15 characters and the NUL.
_INTERFACE_LENGTH = 15
_interface = re.compile(r"[A-Za-z0-9_.@:%=,~-]+").fullmatch


def _loopbacks() -> dict[str, str]:
    return {IPV4: "127.0.0.1", IPV6: "::1"}


def _random_fully() -> dict[str, bool]:
    return {IPV4: True, IPV6: True}


@dataclass(frozen=True)
class ProxyOptions:
    """What the rules depend on besides the cluster. Raises ``ValueError`` naming the option and the value."""

    layout: Layout
    #: Compared with ``nodeName`` of endpoints as it is.
    node_name: str = ""
    #: Empty: not known, no zone hints are followed.
    zone: str = ""
    #: Family to the Node object's host IP.
    node_ips: dict[str, str] = field(default_factory=_loopbacks)
    #: The addresses of the node's interfaces, loopback included.
    local_addresses: Sequence[str] = ("127.0.0.1", "::1")
    #: CIDRs of addresses that take node ports; empty for all; or the single word ``primary`` (layout 1.36).
    nodeport_addresses: Sequence[str] = ()
    localhost_nodeports: bool = True
    #: How pod traffic is told apart: one of DETECT_MODES, ``""`` for not at all.
    detect_local: str = ""
    #: For the CIDR modes: the first of each family counts, empty texts do not.
    cidrs: Sequence[str] = ()
    #: For the interface modes: the name, or the prefix without ``+``.
    interface: str = ""
    masquerade_all: bool = False
    masquerade_bit: int = 14
    #: Family to whether its iptables knows ``--random-fully``.
    random_fully: dict[str, bool] = field(default_factory=_random_fully)
    #: conntrack is liberal about TCP windows: no INVALID rule (from layout 1.30 on).
    tcp_be_liberal: bool = False
    #: Layout 1.24: give what the kubelet of that time gave, the mark of KUBE-MARK-DROP and the rule that drops by it.
    provide_mark_drop: bool = False
    #: CIDRs; external IPs of Services outside of them get no rules. None: no limit.
    allowed_external_ips: Sequence[str] | None = None
    #: Bits of the packet mark that another agent uses.
    foreign_mark_mask: int = 0

    def __post_init__(self) -> None:
        self._check_mark()
        self._check_detect()
        self._cidrs()
        _networks("allowed_external_ips", self.allowed_external_ips or ())
        if PRIMARY not in self.nodeport_addresses:
            _networks("nodeport_addresses", self.nodeport_addresses)
        elif len(self.nodeport_addresses) > 1:
            raise ValueError(f"nodeport_addresses: {PRIMARY!r} stands alone: {shown(list(self.nodeport_addresses))}")
        elif not self.layout.primary_word:
            raise ValueError(f"nodeport_addresses: {PRIMARY!r} is not known in layout {self.layout.name}")
        for address in self.local_addresses:
            _address("node_addresses", address)
        for family, address in self.node_ips.items():
            if family not in FAMILIES or _address("node_ips", address) != family:
                raise ValueError(f"node_ips: {shown(address)} is not an {family} address")
        if not self.localhost_nodeports and not self.layout.excludes_loopback:
            raise ValueError(f"localhost_nodeports: False is not possible in layout {self.layout.name}, which always "
                             "serves node ports on loopback addresses")
        if self.provide_mark_drop and not self.layout.marks_drops:
            raise ValueError(f"provide_mark_drop: layout {self.layout.name} has no mark to drop by")

    @property
    def mark(self) -> str:
        """The masquerade mark as ``iptables-save`` prints it."""
        return hex(1 << self.masquerade_bit)

    @property
    def has_firewall(self) -> bool:
        """Whether KUBE-FIREWALL is part of the state; otherwise it is the kubelet's."""
        return self.layout.owns_firewall or self.provide_mark_drop

    def detect_cidr(self, family: str) -> str | None:
        """The CIDR that pods of a family are in, canonical; None where the mode has none."""
        if self.detect_local in _CIDR_MODES:
            for network in self._cidrs():
                if network.family == family:
                    return network.text
        return None

    def detect_interface(self) -> str | None:
        """The interface that pods are behind, as iptables matches it; None where the mode has none."""
        if self.detect_local == "bridge_interface":
            return self.interface
        return f"{self.interface}+" if self.detect_local == "interface_prefix" else None

    def nodeport_networks(self, family: str) -> list[Network]:
        """The networks whose addresses take node ports; empty for all addresses."""
        if PRIMARY in self.nodeport_addresses:
            node_ip = self.node_ips.get(family)
            address = parse_address(node_ip) if node_ip else None
            if address is None or is_loopback(address):
                return []
            return [parse_network(f"{address.text}/{BITS[family]}")]
        networks = [one for one in _networks("nodeport_addresses", self.nodeport_addresses) if one.family == family]
        return [] if any(network.length == 0 for network in networks) else networks

    def serves_localhost(self, family: str) -> bool:
        """Whether node ports answer on loopback addresses (always where the layout has no switch, IPv4)."""
        if family != IPV4 or not self.localhost_nodeports:
            return False
        networks = self.nodeport_networks(IPV4)
        lowest = Address(IPV4, "127.0.0.0")
        return not networks or any(network.text.startswith("127.") or network.has(lowest) for network in networks)

    def nodeport_ips(self, family: str) -> list[str]:
        """The node's addresses in :meth:`nodeport_networks`, sorted."""
        networks = self.nodeport_networks(family)
        keeps_loopback = not self.layout.excludes_loopback or (family == IPV4 and self.localhost_nodeports)
        found = set()
        for text in self.local_addresses:
            address = parse_address(text)
            if any(network.has(address) for network in networks) and (keeps_loopback or not is_loopback(address)):
                found.add(address.text)
        return sorted(found)

    def node_ip(self, family: str) -> str:
        """The node's address as the rule for source ranges sees it."""
        if not self.layout.knows_node_ips:
            return "0.0.0.0" if family == IPV4 else "::"
        return parse_address(self.node_ips.get(family) or _loopbacks()[family]).text

    def _cidrs(self) -> list[Network]:
        return _networks("detect_local.cidrs", [text for text in self.cidrs if text != ""])

    def _check_mark(self) -> None:
        bit = self.masquerade_bit
        if not isinstance(bit, int) or isinstance(bit, bool) or not 0 <= bit <= 31:
            raise ValueError(f"masquerade_bit: {shown(bit)} is not an integer from 0 to 31")
        if self.foreign_mark_mask < 0 or self.foreign_mark_mask > 0xFFFFFFFF:
            raise ValueError(f"foreign_mark_mask: {self.foreign_mark_mask:#x} is not a mask of 32 bits")
        if 1 << bit & self.foreign_mark_mask:
            raise ValueError(f"masquerade_bit: {bit} is in the mask of another agent, {self.foreign_mark_mask:#x}")
        if self.provide_mark_drop and bit == DROP_BIT:
            raise ValueError(f"masquerade_bit: {bit} is the bit that provide_mark_drop drops by")

    def _check_detect(self) -> None:
        if self.detect_local not in DETECT_MODES:
            raise ValueError(f"detect_local.mode: {shown(self.detect_local)} is not one of "
                             f"{', '.join(DETECT_MODES[1:])}")
        if self.detect_local in _CIDR_MODES:
            for network in self._cidrs():
                # The negated match of it cannot be written, and there is nothing to tell apart.
                if network.length == 0:
                    raise ValueError(f"detect_local.cidrs: {network.text!r} holds every address, not only pods'")
        if self.detect_local not in ("bridge_interface", "interface_prefix"):
            return
        name = self.detect_interface() or ""
        if not _interface(self.interface):
            raise ValueError(f"detect_local.interface: {shown(self.interface)} is not the name of an interface, which "
                             f"mode {self.detect_local} needs")
        if len(name) > _INTERFACE_LENGTH:
            raise ValueError(f"detect_local.interface: {shown(name)} is longer than {_INTERFACE_LENGTH} characters")


def _networks(option: str, texts: Sequence[str]) -> list[Network]:
    networks = []
    for text in texts:
        try:
            networks.append(parse_network(text))
        except (ValueError, AttributeError):
            raise ValueError(f"{option}: {shown(text)} is not a CIDR") from None
    return networks


def _address(option: str, text: str) -> str:
    try:
        return parse_address(text).family
    except (ValueError, TypeError, AttributeError):
        raise ValueError(f"{option}: {shown(text)} is not an IP address") from None
