# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which UDP flows a change leaves behind, told from the rules alone.

Connection tracking keeps a UDP flow as long as packets come, whatever the rules say by then: to a pod that is gone, or
past the service to nothing. No memory of earlier runs is needed: the rules in the kernel say which endpoints each
frontend had, the new rules say which it will have, and both are read the same way.

A frontend is an address and UDP port that clients use. A run that changes nothing selects nothing. A run that changes
any rule selects, for each frontend, the flows that no endpoint of the new rules answers: of one that is gone or has no
endpoints any more, all (kube-proxy 1.36 leaves these until it has some again); of one that had no endpoints and has
some now, those stuck on the untranslated address; of any other, those to endpoints that left. An endpoint that only
terminates has left too (kube-proxy from 1.30 on waits until it is gone; a later run could not see it any more), and one
that left while no run looked is found with the next change.

Flows are selected by address and port; those of node ports only on addresses of the node.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Callable, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.conntrack import Endpoint, FlowSelector
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import family_of
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain, Desired, Tables, target_of

Chains = Mapping[str, Sequence[str]]
#: The rules of a chain by its name, none where there is no such chain.
_Rules = Callable[[str], Sequence[str]]

_DESTINATION = re.compile(r"-d ([0-9a-fA-F.:]+)/\d+ ")
_PORT = re.compile(r" --dport (\d+)\b")
_TO = re.compile(r" --to-destination \[?([0-9a-fA-F.:]+?)\]?:(\d+)(?: |$)")
_COMMENT = re.compile(r'--comment "?([^ "]+)')

_ENTRY_CHAINS = (("nat", "KUBE-SERVICES"), ("nat", "KUBE-NODEPORTS"),
                 ("filter", "KUBE-SERVICES"), ("filter", "KUBE-EXTERNAL-SERVICES"))

#: Stands for the addresses of the node in the frontend of a node port.
_NODE = ""


class _Frontend(NamedTuple):
    endpoints: frozenset[Endpoint]
    service: str


def stale_flows(current: Tables, desired: Desired, local_addresses: Sequence[str]) -> list[FlowSelector]:
    """Selectors of the flows that are stale once ``desired`` is in force; asked where something changes. Pure."""
    return _between({name: _rules_of(table.chains) for name, table in current.items()},
                    {name: _wanted_rules_of(table.chains) for name, table in desired.tables.items()},
                    desired.family, local_addresses)


def between(old_tables: Mapping[str, Chains], new_tables: Mapping[str, Chains], family: str,
            local_addresses: Sequence[str]) -> list[FlowSelector]:
    """The same for the chains of both sides, by table. Pure."""
    return _between({name: _rules_of(chains) for name, chains in old_tables.items()},
                    {name: _rules_of(chains) for name, chains in new_tables.items()}, family, local_addresses)


def _rules_of(chains: Chains) -> _Rules:
    return lambda name: chains.get(name, ())


_no_rules = _rules_of({})


def _wanted_rules_of(chains: Mapping[str, Chain]) -> _Rules:
    return lambda name: chains[name].rules if name in chains else ()


def _between(old_tables: Mapping[str, _Rules], new_tables: Mapping[str, _Rules], family: str,
             local_addresses: Sequence[str]) -> list[FlowSelector]:
    before, after = _frontends(old_tables), _frontends(new_tables)
    node = frozenset(address for address in local_addresses if family_of(address) == family)
    out = []
    for address, port in sorted(before.keys() | after.keys()):
        old, new = before.get((address, port)), after.get((address, port))
        keep = new.endpoints if new else frozenset()
        if keep or old:
            out.append(FlowSelector(family, frozenset({address}) if address != _NODE else node, port, keep,
                                    (new or old or _UNKNOWN).service, _reason(old, new)))
    return out


_UNKNOWN = _Frontend(frozenset(), "")


def _reason(old: _Frontend | None, new: _Frontend | None) -> str:
    had, has = (old or _UNKNOWN).endpoints, (new or _UNKNOWN).endpoints
    if new is None:
        return "it is gone"
    if not has:
        return "it has no endpoints"
    if not had:
        return "it has endpoints from now on"
    gone = had - has
    if gone:
        return "endpoints left: " + ", ".join(sorted(f"{ip} port {port}" for ip, port in gone))
    return "it is unchanged; flows to endpoints that left earlier"


def _frontends(tables: Mapping[str, _Rules]) -> dict[Endpoint, _Frontend]:
    """Address and port of each UDP frontend to the endpoints that its rules lead to; none where it is refused."""
    found: dict[Endpoint, _Frontend] = {}
    known: dict[str, frozenset[Endpoint]] = {}
    nat = tables.get("nat", _no_rules)
    for rule, address in _entries(tables):
        port = _PORT.search(rule)
        if not port:
            continue
        comment = _COMMENT.search(rule)
        key = (address, int(port.group(1)))
        endpoints = _endpoints(target_of(rule), nat, known)
        if key in found:
            endpoints |= found[key].endpoints
        found[key] = _Frontend(endpoints, comment.group(1) if comment else "")
    return found


def _entries(tables: Mapping[str, _Rules]) -> Iterator[tuple[str, str]]:
    """The rules for UDP frontends, and their address. Those in filter refuse: their targets are no chains of nat."""
    for table, chain in _ENTRY_CHAINS:
        for rule in tables.get(table, _no_rules)(chain):
            if "-p udp " not in rule:
                continue
            address = _DESTINATION.search(rule)
            if address:
                yield rule, address.group(1)
            elif chain == "KUBE-NODEPORTS" or "--dst-type LOCAL" in rule:
                yield rule, _NODE


def _endpoints(chain: str, rules_of: _Rules, known: dict[str, frozenset[Endpoint]]) -> frozenset[Endpoint]:
    """The endpoints below a chain: service and policy chains lead to endpoint chains, those translate."""
    if chain in known:
        return known[chain]
    # Guards against a loop, which the kernel would not load but a text may hold.
    known[chain] = frozenset()
    found: set[Endpoint] = set()
    for rule in rules_of(chain):
        to = _TO.search(rule)
        if to:
            found.add((to.group(1), int(to.group(2))))
        else:
            found |= _endpoints(target_of(rule), rules_of, known)
    known[chain] = frozenset(found)
    return known[chain]
