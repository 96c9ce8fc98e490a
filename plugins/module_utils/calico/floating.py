# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Floating IPs: external addresses that lead to a pod, Felix's floating IP manager.

The source rule is only for a pod that talks to its own external address. Everything is compared as text, as Felix does:
``10.0.0.10`` is lower than ``10.0.0.9``.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.metal.nodenet.plugins.module_utils.calico import names, ownership, pieces, shared
from ansible_collections.metal.nodenet.plugins.module_utils.calico.floating_ips import FloatingIP
from ansible_collections.metal.nodenet.plugins.module_utils.calico.options import NatOptions, port_range
from ansible_collections.metal.nodenet.plugins.module_utils.calico.reading import network_of
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import FelixRule, Piece, render
from ansible_collections.metal.nodenet.plugins.module_utils.calico.state import one_table
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import parse_address, parse_network
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, Chain, Desired, SharedChain
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

_METADATA_PORT = 8775


@dataclass(frozen=True)
class FloatingOptions(NatOptions):
    """What floating IPs depend on besides the mappings. Raises ``ValueError`` naming the option and the value."""

    #: Otherwise only those of OpenStack count.
    enabled: bool = True
    #: Where OpenStack's metadata server is: ``ADDRESS`` or ``ADDRESS:PORT``, IPv4. Empty: no rule for it.
    metadata_address: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.metadata_target()

    def metadata_target(self) -> str:
        """The metadata server as ``ADDRESS:PORT``; empty where there is none."""
        text = self.metadata_address
        if not text:
            return ""
        address, colon, port = text.partition(":")
        try:
            low, high = port_range("metadata_address", port) if colon else (_METADATA_PORT, _METADATA_PORT)
            if parse_address(address) != (IPV4, address, False) or not 0 < low == high:
                raise ValueError
        except ValueError:
            raise ValueError(f"metadata_address: {shown(text)} is not an IPv4 address, with or without :PORT") from None
        return f"{address}:{low}"


def desired(floating_ips: Iterable[FloatingIP], options: FloatingOptions, family: str) -> tuple[Desired, list[str]]:
    """What the node should hold of one family, and what the caller should tell its user about.

    ``floating_ips``: those of this node (``floating_ips.read_mappings``, ``read_endpoints``).
    """
    mine = [one for one in floating_ips if one.internal.family == family]
    counting = [one for one in mine if options.enabled or one.always]
    warnings = []
    if len(counting) < len(mine):
        warnings.append(f"enabled: False leaves out {len(mine) - len(counting)} floating IPs of {family}")
    warnings += _ties(counting)
    dnat, snat = aggregate(counting)
    if snat and not options.random_fully[family]:
        warnings.append(f"{family}: this iptables does not know --random-fully; translating goes without it")
    chains = [_snat_chain(snat, options, family)]
    if not options.bpf:
        chains.insert(0, _dnat_chain(dnat, options))
    return one_table(family, "nat", ownership.FLOATING_CHAINS, chains, _shared(options, family, wanted=True)), warnings


def nothing(family: str, options: FloatingOptions | None = None) -> Desired:
    """What the node should hold without any floating IP: no chain, and no entry in a shared one."""
    return one_table(family, "nat", ownership.FLOATING_CHAINS, (),
                     _shared(options or FloatingOptions(), family, wanted=False))


def aggregate(floating_ips: Iterable[FloatingIP]) -> tuple[dict[str, str], dict[str, str]]:
    """External to internal addresses, and back, each sorted by key: of several, the lowest text.

    An internal address that loses every external one goes without.
    """
    dnat: dict[str, str] = {}
    for one in floating_ips:
        external, internal = one.external.text, one.internal.text
        dnat[external] = min(internal, dnat.get(external, internal))
    snat: dict[str, str] = {}
    for external, internal in dnat.items():
        snat[internal] = min(external, snat.get(internal, external))
    return dict(sorted(dnat.items())), dict(sorted(snat.items()))


def _ties(floating_ips: Sequence[FloatingIP]) -> list[str]:
    """What there was to choose from, and what was chosen."""
    dnat, snat = aggregate(floating_ips)
    wanted_by: dict[str, dict[str, str]] = {}
    for one in floating_ips:
        wanted_by.setdefault(one.external.text, {})[one.internal.text] = one.endpoint
    reached_by: dict[str, list[str]] = {}
    for external, internal in dnat.items():
        reached_by.setdefault(internal, []).append(external)
    warnings = []
    for external, internal in dnat.items():
        pods = wanted_by[external]
        if len(pods) > 1:
            listed = ", ".join(f"{address} ({pods[address]})" for address in sorted(pods))
            warnings.append(f"floating IP {external} is mapped to {listed}: it leads to {internal}, the lowest text")
    for internal, external in snat.items():
        if len(reached_by[internal]) > 1:
            warnings.append(f"{internal} has the floating IPs {', '.join(reached_by[internal])}: it reaches itself "
                            f"from {external}, the lowest text")
    return warnings


def _dnat_chain(dnat: dict[str, str], options: FloatingOptions) -> Chain:
    rules = [FelixRule((_to(external), pieces.dnat(internal))) for external, internal in dnat.items()]
    return Chain(names.FIP_DNAT, render(names.FIP_DNAT, rules, options.rule_hashes))


def _snat_chain(snat: dict[str, str], options: FloatingOptions, family: str) -> Chain:
    rules = [FelixRule((_to(internal), _from(internal), pieces.snat(external, None, options.random_fully[family])))
             for internal, external in snat.items()]
    return Chain(names.FIP_SNAT, render(names.FIP_SNAT, rules, options.rule_hashes))


def _to(address: str) -> Piece:
    return pieces.destination(address, network_of(parse_address(address)))


def _from(address: str) -> Piece:
    return pieces.source(address, network_of(parse_address(address)))


def _shared(options: FloatingOptions, family: str, wanted: bool) -> list[SharedChain]:
    to_dnat, to_snat = FelixRule((pieces.jump(names.FIP_DNAT),)), FelixRule((pieces.jump(names.FIP_SNAT),))
    prerouting, output, postrouting = {}, {}, {}
    if wanted:
        postrouting[shared.POSTROUTING_FIP] = to_snat
    if wanted and not options.bpf:
        prerouting[shared.PREROUTING_FIP] = to_dnat
        output[shared.OUTPUT_FIP] = to_dnat
        if options.metadata_address and family == IPV4:
            prerouting[shared.PREROUTING_METADATA] = _metadata(options)
    return [
        shared.shared_chain(names.PREROUTING, (shared.PREROUTING_FIP, shared.PREROUTING_METADATA), prerouting, options),
        shared.shared_chain(names.OUTPUT, (shared.OUTPUT_FIP,), output, options),
        shared.shared_chain(names.POSTROUTING, (shared.POSTROUTING_FIP,), postrouting, options),
    ]


def _metadata(options: FloatingOptions) -> FelixRule:
    return FelixRule((pieces.protocol("tcp"), pieces.destination_ports("80"),
                      pieces.destination(shared.METADATA, parse_network(shared.METADATA)),
                      pieces.dnat(options.metadata_target())))
