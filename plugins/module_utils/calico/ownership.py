# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which chains and sets belong to which part. Ownership is by name, so that no state file is needed.

The set of all hosts is a special case: Felix has it also for IPIP tunnels, so it is the masquerade's only while that
uses it, and when everything goes.
"""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.calico import names
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4

MASQ_CHAINS = frozenset((names.NAT_OUTGOING,))
FLOATING_CHAINS = frozenset((names.FIP_DNAT, names.FIP_SNAT))
LOOP_CHAINS = frozenset((names.CIDR_BLOCK,))
HOST_CHAINS = frozenset((names.FORWARD_CHECK, names.SET_ENDPOINT_MARK))

_MASQ_SETS = (names.MASQ_POOLS, names.NETWORK_POOLS, names.ALL_POOLS)
#: From before Calico 2; only IPv4 was masqueraded then.
_ANCIENT_SETS = frozenset(("felix-masq-ipam-pools", "felix-all-ipam-pools"))


def masq_sets(family: str, all_hosts: bool) -> frozenset[str]:
    """Names of the sets of the masquerade, in every version."""
    ids = _MASQ_SETS + ((names.ALL_HOSTS,) if all_hosts else ())
    current = frozenset(names.set_name(family, set_id) for set_id in ids)
    return current | _ANCIENT_SETS if family == IPV4 else current


def host_sets(family: str) -> frozenset[str]:
    """The name of the set of the node's own addresses."""
    return frozenset((names.set_name(family, names.THIS_HOST),))
