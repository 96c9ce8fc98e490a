# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Masquerading of what pods send to the outside: Felix's masquerade manager.

A packet is masqueraded whose source is in a pool that wants it and whose destination is in no pool at all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.metal.nodenet.plugins.module_utils.calico import names, ownership, pieces, shared
from ansible_collections.metal.nodenet.plugins.module_utils.calico.options import (
    DEFAULT_MAXELEM,
    INTERFACE_LENGTH,
    NatOptions,
    at_least_one,
    one_of,
    port_range,
)
from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import Pool
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import FelixRule, Piece, render
from ansible_collections.metal.nodenet.plugins.module_utils.calico.state import net_set, one_table
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Network, parse_address
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    IPV4,
    Chain,
    Desired,
    IpSet,
    SharedChain,
)
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

POOLS_ONLY = "pools"
POOLS_AND_HOSTS = "pools_and_hosts"

_interface = re.compile(r"[A-Za-z0-9:._+-]+").fullmatch


@dataclass(frozen=True)
class MasqOptions(NatOptions):
    """What masquerading depends on besides the pools. Raises ``ValueError`` naming the option and the value."""

    #: A fixed source address for IPv4, instead of that of the interface. Empty: none.
    nat_outgoing_address: str = ""
    #: Source ports for TCP and UDP: ``32768:65535``, a single port, or 0 or nothing for any.
    nat_port_range: int | str = ""
    #: Masquerade only what leaves by this interface; a ``+`` at the end stands for the rest. Empty: all.
    interface_filter: str = ""
    #: What is not masqueraded: traffic to ``pools``, or to ``pools_and_hosts``.
    exclusions: str = POOLS_ONLY
    max_ipset_size: int = DEFAULT_MAXELEM

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("exclusions", self.exclusions, (POOLS_ONLY, POOLS_AND_HOSTS))
        if self.exclusions == POOLS_AND_HOSTS and not self.version.has_exclusions:
            raise ValueError(f"exclusions: {shown(self.exclusions)} is not known in calico_version "
                             f"{self.calico_version}")
        at_least_one("max_ipset_size", self.max_ipset_size)
        self._check_filter()
        self._check_address()
        if self.ports is not None and self.ports[0] == 0 and self.nat_outgoing_address:
            raise ValueError(f"nat_port_range: {shown(self.nat_port_range)} begins with port 0, which iptables refuses "
                             "together with nat_outgoing_address")

    @property
    def ports(self) -> tuple[int, int] | None:
        """The range of source ports, None for any."""
        if self.nat_port_range in ("", None):
            return None
        ports = port_range("nat_port_range", self.nat_port_range)
        return ports if ports[1] else None

    @property
    def excludes_hosts(self) -> bool:
        """Whether there is a set of hosts. In eBPF the mark says it all."""
        return self.exclusions == POOLS_AND_HOSTS and not self.bpf

    def _check_filter(self) -> None:
        name = self.interface_filter
        if name and not _interface(name):
            raise ValueError(f"interface_filter: {shown(name)} is not the name of an interface, which may end in +")
        if len(name) > INTERFACE_LENGTH:
            raise ValueError(f"interface_filter: {shown(name)} is longer than {INTERFACE_LENGTH} characters")

    def _check_address(self) -> None:
        text = self.nat_outgoing_address
        try:
            fits = not text or (parse_address(text) == (IPV4, text, False))
        except (ValueError, TypeError, AttributeError):
            fits = False
        if not fits:
            raise ValueError(f"nat_outgoing_address: {shown(text)} is not an IPv4 address")


def desired(pools: Iterable[Pool], options: MasqOptions, family: str,
            hosts: Sequence[Network] = ()) -> tuple[Desired, list[str]]:
    """What the node should hold of one family, and what the caller should tell its user about.

    ``hosts``: the hosts' addresses (``nodes.read_nodes``), for ``exclusions``. Raises ``ValueError`` where a set cannot
    hold its members.
    """
    mine = [pool for pool in pools if pool.network.family == family]
    active = any(pool.masquerade for pool in mine)
    rules = _rules(options, family) if active else []
    chain = Chain(names.NAT_OUTGOING, render(names.NAT_OUTGOING, rules, options.rule_hashes))
    warnings = _warnings(options, family, active, hosts)
    return one_table(family, "nat", ownership.MASQ_CHAINS, [chain], [_postrouting(options, family, wanted=True)],
                     [] if options.bpf else _sets(mine, options, family, hosts),
                     ownership.masq_sets(family, options.excludes_hosts)), warnings


def nothing(family: str, options: NatOptions | None = None) -> Desired:
    """What the node should hold where nothing masquerades any more: no chain and no set of any version."""
    postrouting = _postrouting(options or NatOptions(), family, wanted=False)
    return one_table(family, "nat", ownership.MASQ_CHAINS, (), [postrouting], (),
                     ownership.masq_sets(family, all_hosts=True))


def _warnings(options: MasqOptions, family: str, active: bool, hosts: Sequence[Network]) -> list[str]:
    warnings = []
    if active and options.nat_outgoing_address and family != IPV4:
        warnings.append(f"nat_outgoing_address: {options.nat_outgoing_address!r} is for IPv4; IPv6 gets the address "
                        "of the interface")
    if active and not options.random_fully[family]:
        warnings.append(f"{family}: this iptables does not know --random-fully; masquerading goes without it")
    if options.excludes_hosts and not hosts:
        warnings.append(f"exclusions: {shown(options.exclusions)} excludes no host, for hosts is empty")
    return warnings


def _postrouting(options: NatOptions, family: str, wanted: bool) -> SharedChain:
    entries = {}
    if wanted:
        entries[shared.POSTROUTING_OUTGOING] = FelixRule((pieces.jump(names.NAT_OUTGOING),))
        loopback = options.version.bpf_loopback
        if options.bpf and loopback:
            entries[shared.POSTROUTING_LOOPBACK] = FelixRule(
                (pieces.marked(loopback), pieces.masquerade(None, options.random_fully[family])),
                shared.LOOPBACK_COMMENT)
    return shared.shared_chain(names.POSTROUTING, (shared.POSTROUTING_LOOPBACK, shared.POSTROUTING_OUTGOING), entries,
                               options)


def _sets(pools: Sequence[Pool], options: MasqOptions, family: str, hosts: Sequence[Network]) -> list[IpSet]:
    everything = [pool.network for pool in pools if not (pool.lb_only and options.version.excludes_lb_only)]
    masquerading = [pool.network for pool in pools if pool.masquerade]
    size = options.max_ipset_size
    sets = [net_set(family, options.version.network_pools_id, everything, size),
            net_set(family, names.MASQ_POOLS, masquerading, size)]
    if options.excludes_hosts:
        sets.append(net_set(family, names.ALL_HOSTS, hosts, size))
    return sets


def _rules(options: MasqOptions, family: str) -> list[FelixRule]:
    match = _matches(options, family)
    outside = (pieces.out_interface(options.interface_filter),) if options.interface_filter else ()
    rules = []
    # Ports are of TCP and UDP only; each of the two returns, or a packet without a free port would get any.
    for protocol in ("tcp", "udp") if options.ports else ():
        narrowed = (*match, pieces.protocol(protocol), *outside)
        rules.append(FelixRule((*narrowed, _target(options, family, options.ports))))
        rules.append(FelixRule((*narrowed, pieces.RETURN)))
    rules.append(FelixRule((*match, *outside, _target(options, family, None))))
    return rules


def _matches(options: MasqOptions, family: str) -> tuple[Piece, ...]:
    if options.bpf:
        return (pieces.marked(options.version.bpf_outgoing),)
    source = pieces.in_set(names.set_name(family, names.MASQ_POOLS), "src")
    other_sets = [options.version.network_pools_id] + ([names.ALL_HOSTS] if options.excludes_hosts else [])
    return (source, *(pieces.not_in_set(names.set_name(family, set_id), "dst") for set_id in other_sets))


def _target(options: MasqOptions, family: str, ports: tuple[int, int] | None) -> Piece:
    random_fully = options.random_fully[family]
    if options.nat_outgoing_address and family == IPV4:
        return pieces.snat(options.nat_outgoing_address, ports, random_fully)
    return pieces.masquerade(ports, random_fully)
