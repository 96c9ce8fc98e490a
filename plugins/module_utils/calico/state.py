# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Putting together what one part wants of one family."""

from __future__ import annotations

from collections.abc import Iterable

from ansible_collections.metal.nodenet.plugins.module_utils.calico import names
from ansible_collections.metal.nodenet.plugins.module_utils.calico.reading import as_member
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Network
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    Chain,
    Desired,
    IpSet,
    SharedChain,
    TableDesired,
)


def one_table(family: str, table: str, ours: frozenset[str], chains: Iterable[Chain] = (),
              shared: Iterable[SharedChain] = (), sets: Iterable[IpSet] = (),
              owned_sets: frozenset[str] = frozenset()) -> Desired:
    """The state of a part whose chains (named ``ours`` in every version) are all in one table.

    A rule in a built-in chain that leads to one of them is a leftover: Felix reaches them through the shared chains.
    """
    by_name = {chain.name: chain for chain in chains}
    wanted = TableDesired(by_name, (), ours.__contains__, ours, (), tuple(shared))
    return Desired(family, {table: wanted}, tuple(sets), owned_sets)


def net_set(family: str, set_id: str, networks: Iterable[Network], maxelem: int) -> IpSet:
    """A ``hash:net`` of those networks that are of the family. Raises ``ValueError`` for too many."""
    members = frozenset(as_member(network) for network in networks if network.family == family)
    return make_set(names.set_name(family, set_id), "hash:net", members, maxelem)


def make_set(name: str, kind: str, members: frozenset[str], maxelem: int) -> IpSet:
    """A set. Raises ``ValueError`` for more members than it can hold: the kernel would take some of them and stop."""
    if len(members) > maxelem:
        raise ValueError(f"max_ipset_size: {maxelem} is less than the {len(members)} members of {name}")
    return IpSet(name, kind, maxelem, members)
