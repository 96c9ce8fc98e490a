# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Names of the chains that kube-proxy makes.

The chains of one service port end in 16 characters that are a hash of its name, so that a name of any length fits in
the 28 characters that the kernel allows.
"""

from __future__ import annotations

from hashlib import sha256

SERVICES = "KUBE-SERVICES"
EXTERNAL_SERVICES = "KUBE-EXTERNAL-SERVICES"
NODEPORTS = "KUBE-NODEPORTS"
POSTROUTING = "KUBE-POSTROUTING"
FORWARD = "KUBE-FORWARD"
MARK_MASQ = "KUBE-MARK-MASQ"
MARK_DROP = "KUBE-MARK-DROP"
PROXY_FIREWALL = "KUBE-PROXY-FIREWALL"
FIREWALL = "KUBE-FIREWALL"
CANARY = "KUBE-PROXY-CANARY"

#: Chains of service ports; the last one was made up to kube-proxy 1.23.
PORT_PREFIXES = ("KUBE-SVC-", "KUBE-SVL-", "KUBE-FW-", "KUBE-EXT-", "KUBE-XLB-")
#: Chains of their endpoints.
ENDPOINT_PREFIX = "KUBE-SEP-"
SERVICE_PREFIXES = (*PORT_PREFIXES, ENDPOINT_PREFIX)

_HASH_LENGTH = 16


def port_hash(title: str, protocol: str) -> str:
    """The 16 characters that the chains of a service port share.

    ``title`` is ``namespace/name`` or ``namespace/name:port``, ``protocol`` is lower case.
    """
    return _hash16(title + protocol)


def hash_of(name: str) -> str:
    """The hash that the chains of a service port have in common, ``""`` for any other chain."""
    return name[-_HASH_LENGTH:] if name.startswith(PORT_PREFIXES) else ""


def endpoint_chain(title: str, protocol: str, endpoint: str) -> str:
    """The chain of one endpoint of a service port; ``endpoint`` is ``10.0.0.1:80`` or ``[fd00::1]:80``."""
    return ENDPOINT_PREFIX + _hash16(title + protocol + endpoint)


_BASE32 = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
#: Two characters of base32 by their ten bits: the standard library's encoder takes three times as long, and a large
#: cluster has a hash for every endpoint.
_PAIRS = [high + low for high in _BASE32 for low in _BASE32]


def _hash16(text: str) -> str:
    # Ten bytes are sixteen characters of base32; the rest of the digest would be cut anyway.
    bits = int.from_bytes(sha256(text.encode()).digest()[:10], "big")
    return (_PAIRS[bits >> 70] + _PAIRS[bits >> 60 & 1023] + _PAIRS[bits >> 50 & 1023] + _PAIRS[bits >> 40 & 1023]
            + _PAIRS[bits >> 30 & 1023] + _PAIRS[bits >> 20 & 1023] + _PAIRS[bits >> 10 & 1023] + _PAIRS[bits & 1023])
