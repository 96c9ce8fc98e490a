# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of chains and sets."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4

# chains in nat
PREROUTING = "cali-PREROUTING"
OUTPUT = "cali-OUTPUT"
POSTROUTING = "cali-POSTROUTING"
FIP_DNAT = "cali-fip-dnat"
FIP_SNAT = "cali-fip-snat"
NAT_OUTGOING = "cali-nat-outgoing"

# chains in filter
FORWARD = "cali-FORWARD"
CIDR_BLOCK = "cali-cidr-block"
FORWARD_CHECK = "cali-forward-check"
SET_ENDPOINT_MARK = "cali-set-endpoint-mark"

# ids of sets
MASQ_POOLS = "masq-ipam-pools"
NETWORK_POOLS = "network-ip-pools"
#: The name of NETWORK_POOLS in older versions.
ALL_POOLS = "all-ipam-pools"
ALL_HOSTS = "all-hosts-net"
THIS_HOST = "this-host"

#: What the kernel takes of a set's name, in bytes.
_SET_NAME_BYTES = 31


def set_name(family: str, set_id: str) -> str:
    """The name of a set."""
    return f"cali{4 if family == IPV4 else 6}0{set_id}"[:_SET_NAME_BYTES]
