# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which UDP flows a change leaves behind, told from the rules alone.

Connection tracking keeps a UDP flow as long as packets come, whatever the rules say by then: to a pod that is gone, or
past the service to nothing. No memory of earlier runs is needed: the rules in the kernel say which endpoints each
frontend had, the new rules say which it will have, and both are read the same way.

A frontend is an address and UDP port that clients use. Flows of a frontend are stale when

- it is no longer there, or has no endpoints any more (kube-proxy 1.36 leaves these until it has some again);
- it had no endpoints and now has: clients are stuck on the untranslated flow;
- an endpoint left it: flows to that endpoint, also while it only terminates (kube-proxy from 1.30 on waits until it is
  gone; a later run could not see it any more).

Only flows that no endpoint of the new rules answers are selected, by address and port; node ports only on addresses of
the node. A frontend whose endpoints stay or grow loses none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.conntrack import Endpoint, FlowSelector
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import family_of
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Desired, Tables, target_of

Chains = Mapping[str, Sequence[str]]

_DESTINATION = re.compile(r"-d ([0-9a-fA-F.:]+)/\d+ ")
_PORT = re.compile(r" --dport (\d+)\b")
_TO = re.compile(r" --to-destination \[?([0-9a-fA-F.:]+?)\]?:(\d+)(?: |$)")
_COMMENT = re.compile(r'--comment "?([^ "]+)')

#: Stands for the addresses of the node in the frontend of a node port.
_NODE = ""


class _Frontend(NamedTuple):
    endpoints: frozenset[Endpoint]
    service: str


def stale_flows(current: Tables, desired: Desired, local_addresses: Sequence[str]) -> list[FlowSelector]:
    """Selectors of the flows that are stale once ``desired`` is in force. Pure; shows nothing where nothing changes."""
    wanted = desired.tables.get("nat")
    before = _frontends(current["nat"].chains if "nat" in current else {})
    after = _frontends({chain.name: chain.rules for chain in wanted.chains.values()} if wanted else {})
    node = frozenset(address for address in local_addresses if family_of(address) == desired.family)
    out = []
    for address, port in sorted(before.keys() | after.keys()):
        old, new = before.get((address, port)), after.get((address, port))
        reason = _reason(old, new)
        if reason:
            out.append(FlowSelector(desired.family, frozenset({address}) if address != _NODE else node, port,
                                    new.endpoints if new else frozenset(), (new or old or _NOTHING).service, reason))
    return out


_NOTHING = _Frontend(frozenset(), "")


def _reason(old: _Frontend | None, new: _Frontend | None) -> str:
    had, has = (old or _NOTHING).endpoints, (new or _NOTHING).endpoints
    if old and not has:
        return "it is no longer served"
    if has and not had:
        return "it is served from now on"
    gone = had - has
    if gone:
        return "endpoints left: " + ", ".join(sorted(f"{ip} port {port}" for ip, port in gone))
    return ""


def _frontends(chains: Chains) -> dict[Endpoint, _Frontend]:
    """Address and port of each UDP frontend to the endpoints that its rules lead to."""
    found: dict[Endpoint, _Frontend] = {}
    known: dict[str, frozenset[Endpoint]] = {}
    for rule, address in _entries(chains):
        port = _PORT.search(rule)
        if not port:
            continue
        comment = _COMMENT.search(rule)
        key = (address, int(port.group(1)))
        endpoints = _endpoints(target_of(rule), chains, known)
        if key in found:
            endpoints |= found[key].endpoints
        found[key] = _Frontend(endpoints, comment.group(1) if comment else "")
    return found


def _entries(chains: Chains) -> Iterator[tuple[str, str]]:
    for rule in chains.get("KUBE-SERVICES", ()):
        if "-p udp " in rule:
            address = _DESTINATION.search(rule)
            if address:
                yield rule, address.group(1)
    for rule in chains.get("KUBE-NODEPORTS", ()):
        if "-p udp " in rule:
            yield rule, _NODE


def _endpoints(chain: str, chains: Chains, known: dict[str, frozenset[Endpoint]]) -> frozenset[Endpoint]:
    """The endpoints below a chain: service and policy chains lead to endpoint chains, those translate."""
    if chain in known:
        return known[chain]
    # Guards against a loop, which the kernel would not load but a text may hold.
    known[chain] = frozenset()
    found: set[Endpoint] = set()
    for rule in chains.get(chain, ()):
        to = _TO.search(rule)
        if to:
            found.add((to.group(1), int(to.group(2))))
        else:
            found |= _endpoints(target_of(rule), chains, known)
    known[chain] = frozenset(found)
    return known[chain]
