# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Blocking packets to service addresses that nobody serves, which would go round in circles between the node and its
router: Felix's service loop manager. A packet to a service that has endpoints is translated before it gets here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ansible_collections.metal.nodenet.plugins.module_utils.calico import names, ownership, pieces, shared
from ansible_collections.metal.nodenet.plugins.module_utils.calico.options import CalicoOptions, one_of
from ansible_collections.metal.nodenet.plugins.module_utils.calico.reading import overlap
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import FelixRule, render
from ansible_collections.metal.nodenet.plugins.module_utils.calico.service_cidrs import ServiceCidr
from ansible_collections.metal.nodenet.plugins.module_utils.calico.state import one_table
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Network
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain, Desired, SharedChain

DROP = "drop"
REJECT = "reject"
DISABLED = "disabled"


@dataclass(frozen=True)
class LoopOptions(CalicoOptions):
    """How loops are blocked. Raises ``ValueError`` naming the option and the value."""

    #: ``drop``, ``reject``, or ``disabled`` for a chain without rules.
    action: str = DROP
    #: Refuse a range that overlaps a pool or holds an address of the node, instead of warning.
    strict: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("action", self.action, (DROP, REJECT, DISABLED))


def desired(cidrs: Iterable[ServiceCidr], options: LoopOptions, family: str, pools: Sequence[Network] = (),
            node_networks: Sequence[Network] = ()) -> tuple[Desired, list[str]]:
    """What the node should hold of one family, and what the caller should tell its user about.

    ``cidrs``: ``service_cidrs.read_cidrs`` or ``read_bgp_configuration``. ``pools`` and ``node_networks``: what should
    not be blocked, the node's addresses as networks of one address. Raises ``ValueError`` for overlaps where
    ``strict`` is set.
    """
    mine = _each_once(one for one in cidrs if one.network.family == family)
    blocked = [] if options.action == DISABLED else mine
    warnings = _overlaps(blocked, "the pool", pools) + _overlaps(blocked, "an address of the node", node_networks)
    if warnings and options.strict:
        raise ValueError("; ".join(warnings))
    target = pieces.reject(family) if options.action == REJECT else pieces.DROP
    rules = [FelixRule((pieces.destination(one.text, one.network), target)) for one in blocked]
    # Felix writes a range twice that is in two lists.
    chain = Chain(names.CIDR_BLOCK, render(names.CIDR_BLOCK, rules, options.rule_hashes), repeats=True)
    return one_table(family, "filter", ownership.LOOP_CHAINS, [chain], [_forward(options, wanted=True)]), warnings


def nothing(family: str, options: LoopOptions | None = None) -> Desired:
    """What the node should hold where nothing is blocked any more: no chain, and no entry in a shared one."""
    return one_table(family, "filter", ownership.LOOP_CHAINS, (), [_forward(options or LoopOptions(), wanted=False)])


def _each_once(cidrs: Iterable[ServiceCidr]) -> list[ServiceCidr]:
    """Each range once, sorted by its text as Felix does."""
    by_network: dict[str, ServiceCidr] = {}
    for one in sorted(cidrs):
        by_network.setdefault(one.network.text, one)
    return list(by_network.values())


def _overlaps(cidrs: Sequence[ServiceCidr], what: str, networks: Sequence[Network]) -> list[str]:
    return [f"cidrs: {one.text!r} overlaps {what} {network.text}: packets to its addresses would not be forwarded"
            for one in cidrs for network in networks if overlap(one.network, network)]


def _forward(options: LoopOptions, wanted: bool) -> SharedChain:
    entries = {shared.FORWARD_BLOCK: FelixRule((pieces.jump(names.CIDR_BLOCK),))} if wanted else {}
    return shared.shared_chain(names.FORWARD, (shared.FORWARD_BLOCK,), entries, options)
