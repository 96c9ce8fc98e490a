# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Rules of others: a firewall that is there before us, and what of a dump is not ours."""

from __future__ import annotations

import re

from support.node import Node

#: A firewall of somebody else, with everything in it that ever broke a parser.
FOREIGN = r"""*filter
:INPUT DROP [0:0]
:FORWARD DROP [0:0]
:DOCKER-USER - [0:0]
:NO-A-B - [0:0]
:FOREIGN - [0:0]
-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT
-A INPUT -m mark --mark 0x8000/0x8000 -j DROP
-A INPUT -s 198.51.100.0/24 -m comment --comment "it\'s a\\b" -j ACCEPT
-A FORWARD -m comment --comment "-A FORWARD -j KUBE-SERVICES" -j DOCKER-USER
-A DOCKER-USER -s 203.0.113.9/32 -j DROP
-A DOCKER-USER -j RETURN
-A NO-A-B -m comment --comment "say \"hi\"" -j RETURN
-A FOREIGN -m limit --limit 5/min --limit-burst 7 -j LOG --log-prefix "-j KUBE-FORWARD "
-A FOREIGN -m comment --comment "" -j RETURN
COMMIT
*nat
:CNI-HOSTPORT - [0:0]
-A PREROUTING -m addrtype --dst-type LOCAL -j CNI-HOSTPORT
-A POSTROUTING -s 10.9.0.0/16 ! -o br0 -j MASQUERADE
-A CNI-HOSTPORT -p tcp -m tcp --dport 8443 -j DNAT --to-destination 10.9.0.2:443
COMMIT
*raw
:PREROUTING ACCEPT [0:0]
-A PREROUTING -p udp -m udp --dport 4789 -j NOTRACK
COMMIT
"""


def foreign_part(dump: str) -> list[str]:
    """What is left of a dump without our chains and jumps. Empty tables are no state."""
    lines = [line for line in dump.splitlines() if not re.search(r"^:KUBE-|^-A KUBE-|-j KUBE-[A-Z-]+$", line)]
    return re.sub(r"\*\w+\n(:[A-Z]+ ACCEPT \[0:0\]\n)*COMMIT\n", "", "\n".join(lines) + "\n").splitlines()


def load_foreign(one: Node) -> dict[str, list[str]]:
    """Load it into both families; what is there then."""
    one.load("ipv4", FOREIGN)
    one.load("ipv6", re.sub(r"(?m)^.*\d+\.\d+\.\d+\.\d+.*\n", "", FOREIGN))
    return {family: foreign_part(dump) for family, dump in one.saves().items()}
