# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A node on which Felix has converged: its whole state, as captured, and the arguments that describe the same."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

from ansible_collections.metal.nodenet.plugins.modules import (
    calico_host_ips,
    calico_masq,
    floating_ip,
    service_loop_block,
)

from support.node import Node

#: With VXLAN, OpenStack's metadata server, two floating IPs of one pod, and what policy adds in filter and mangle.
RULES_IPV4 = """*nat
:cali-OUTPUT - [0:0]
:cali-POSTROUTING - [0:0]
:cali-PREROUTING - [0:0]
:cali-fip-dnat - [0:0]
:cali-fip-snat - [0:0]
:cali-nat-outgoing - [0:0]
-A PREROUTING -m comment --comment "cali:6gwbT8clXdHdC1b1" -j cali-PREROUTING
-A OUTPUT -m comment --comment "cali:tVnHkvAo15HuiPy0" -j cali-OUTPUT
-A POSTROUTING -m comment --comment "cali:0i8pjzKKPyA34aQD" -j cali-POSTROUTING
-A cali-OUTPUT -m comment --comment "cali:GBTAv2p5CwevEyJm" -j cali-fip-dnat
-A cali-POSTROUTING -m comment --comment "cali:Z-c7XtVd2Bq7s_hA" -j cali-fip-snat
-A cali-POSTROUTING -m comment --comment "cali:nYKhEzDlr11Jccal" -j cali-nat-outgoing
-A cali-POSTROUTING -o vxlan.calico -p udp -m comment --comment "cali:k5tPXc7Lt1qvBU9K" -m addrtype ! --src-type LOCAL \
--limit-iface-out -m addrtype --src-type LOCAL -j MASQUERADE --to-ports 4790-65535 --random-fully
-A cali-POSTROUTING -o vxlan.calico -m comment --comment "cali:ZUy_r64wRDl4JBc4" -m addrtype ! --src-type LOCAL \
--limit-iface-out -m addrtype --src-type LOCAL -j MASQUERADE --random-fully
-A cali-PREROUTING -m comment --comment "cali:r6XmIziWUJsdOK6Z" -j cali-fip-dnat
-A cali-PREROUTING -d 169.254.169.254/32 -p tcp -m comment --comment "cali:LNkCDrB90i2Y56UD" -m multiport --dports 80 \
-j DNAT --to-destination 127.0.0.1:8775
-A cali-fip-dnat -d 172.16.1.3/32 -m comment --comment "cali:tNLwGk9z1UZNPNbW" -j DNAT --to-destination 10.0.240.2
-A cali-fip-dnat -d 172.18.1.4/32 -m comment --comment "cali:OU0OBM4pzE9sD4jJ" -j DNAT --to-destination 10.0.240.2
-A cali-fip-snat -s 10.0.240.2/32 -d 10.0.240.2/32 -m comment --comment "cali:DweygdPL2z-tP8xi" -j SNAT --to-source \
172.16.1.3 --random-fully
-A cali-nat-outgoing -m comment --comment "cali:W_qq_N2KSTWyCvrX" -m set --match-set cali40masq-ipam-pools src -m set \
! --match-set cali40network-ip-pools dst -j MASQUERADE --random-fully
COMMIT
*filter
:cali-FORWARD - [0:0]
:cali-INPUT - [0:0]
:cali-OUTPUT - [0:0]
:cali-cidr-block - [0:0]
:cali-from-hep-forward - [0:0]
:cali-from-host-endpoint - [0:0]
:cali-from-wl-dispatch - [0:0]
:cali-to-hep-forward - [0:0]
:cali-to-host-endpoint - [0:0]
:cali-to-wl-dispatch - [0:0]
:cali-wl-to-host - [0:0]
-A INPUT -m comment --comment "cali:Cz_u1IQiXIMmKD4c" -j cali-INPUT
-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD
-A FORWARD -m comment --comment "cali:S93hcgKJrXEqnTfs" -m comment --comment "Policy explicitly accepted packet." \
-m mark --mark 0x10000/0x10000 -j ACCEPT
-A FORWARD -m comment --comment "cali:mp77cMpurHhyjLrM" -j MARK --set-xmark 0x10000/0x10000
-A OUTPUT -m comment --comment "cali:tVnHkvAo15HuiPy0" -j cali-OUTPUT
-A cali-FORWARD -m comment --comment "cali:W_vvds1Nw3n9QE2f" -j MARK --set-xmark 0x0/0x1a0000
-A cali-FORWARD -m comment --comment "cali:ZfgmjuiLaA8Pg0kp" -m mark --mark 0x0/0x10000 -j cali-from-hep-forward
-A cali-FORWARD -i cali+ -m comment --comment "cali:tAzwBLPaV-j53OOZ" -j cali-from-wl-dispatch
-A cali-FORWARD -o cali+ -m comment --comment "cali:4Z0Pf0byo05NFe-P" -j cali-to-wl-dispatch
-A cali-FORWARD -m comment --comment "cali:hQ7Oc16wmUtLuneJ" -j cali-to-hep-forward
-A cali-FORWARD -m comment --comment "cali:rnKNH2WxGcRQcIlD" -j cali-cidr-block
-A cali-INPUT -p udp -m comment --comment "cali:J76FwxInZIsk7uKY" -m comment --comment "Allow IPv4 VXLAN packets from \
allowed hosts" -m multiport --dports 4789 -m set --match-set cali40all-vxlan-net src -m addrtype --dst-type LOCAL \
-j ACCEPT
-A cali-INPUT -p udp -m comment --comment "cali:EDCNTTxYfggApx8C" -m comment --comment "Drop IPv4 VXLAN packets from \
non-allowed hosts" -m multiport --dports 4789 -m addrtype --dst-type LOCAL -j DROP
-A cali-INPUT -i cali+ -m comment --comment "cali:H03xYXARh4e8pwd4" -g cali-wl-to-host
-A cali-INPUT -m comment --comment "cali:MN6K3isIWBigb1Va" -m mark --mark 0x10000/0x10000 -j ACCEPT
-A cali-INPUT -m comment --comment "cali:aKDQAoV0P_FFAIwV" -j MARK --set-xmark 0x0/0x1b0000
-A cali-INPUT -m comment --comment "cali:vIx3xkWzuvLW9fr4" -j cali-from-host-endpoint
-A cali-INPUT -m comment --comment "cali:5W9XghKma9wuz47x" -m comment --comment "Host endpoint policy accepted \
packet." -m mark --mark 0x10000/0x10000 -j ACCEPT
-A cali-OUTPUT -m comment --comment "cali:Mq1_rAdXXH3YkrzW" -m mark --mark 0x10000/0x10000 -j ACCEPT
-A cali-OUTPUT -o cali+ -m comment --comment "cali:69FkRTJDvD5Vu6Vl" -j RETURN
-A cali-OUTPUT -m comment --comment "cali:IpTGXsDHURPUaLjJ" -m conntrack ! --ctstate DNAT -j cali-to-host-endpoint
-A cali-cidr-block -d 1.2.3.4/32 -m comment --comment "cali:qtp40dcPiH3LY35u" -j DROP
-A cali-cidr-block -d 10.96.0.0/12 -m comment --comment "cali:pcGY_b8CM3nZzGQO" -j DROP
-A cali-cidr-block -d 203.0.113.0/24 -m comment --comment "cali:rDJfk4lDuSLAme9I" -j DROP
-A cali-from-wl-dispatch -m comment --comment "cali:zTj6P0TIgYvgz-md" -m comment --comment "Unknown interface" -j DROP
-A cali-to-wl-dispatch -m comment --comment "cali:7KNphB1nNHw80nIO" -m comment --comment "Unknown interface" -j DROP
-A cali-wl-to-host -m comment --comment "cali:Ee9Sbo10IpVujdIY" -j cali-from-wl-dispatch
-A cali-wl-to-host -m comment --comment "cali:nSZbcOoG1xPONxb8" -m comment --comment "Configured \
DefaultEndpointToHostAction" -j ACCEPT
COMMIT
*mangle
:cali-POSTROUTING - [0:0]
:cali-egress-dscp - [0:0]
-A POSTROUTING -m comment --comment "cali:O3lYWMrLQYEMJtB5" -j cali-POSTROUTING
-A cali-POSTROUTING -m comment --comment "set dscp for traffic leaving cluster." -m set --match-set cali40dscp-src-net \
src -m set ! --match-set cali40network-ip-pools dst -m set ! --match-set cali40this-host dst -j cali-egress-dscp
COMMIT
"""

RULES_IPV6 = """*nat
:cali-OUTPUT - [0:0]
:cali-POSTROUTING - [0:0]
:cali-PREROUTING - [0:0]
:cali-fip-dnat - [0:0]
:cali-fip-snat - [0:0]
:cali-nat-outgoing - [0:0]
-A PREROUTING -m comment --comment "cali:6gwbT8clXdHdC1b1" -j cali-PREROUTING
-A OUTPUT -m comment --comment "cali:tVnHkvAo15HuiPy0" -j cali-OUTPUT
-A POSTROUTING -m comment --comment "cali:0i8pjzKKPyA34aQD" -j cali-POSTROUTING
-A cali-OUTPUT -m comment --comment "cali:GBTAv2p5CwevEyJm" -j cali-fip-dnat
-A cali-POSTROUTING -m comment --comment "cali:Z-c7XtVd2Bq7s_hA" -j cali-fip-snat
-A cali-POSTROUTING -m comment --comment "cali:nYKhEzDlr11Jccal" -j cali-nat-outgoing
-A cali-PREROUTING -m comment --comment "cali:r6XmIziWUJsdOK6Z" -j cali-fip-dnat
-A cali-fip-dnat -d 2001:db8:3::2/128 -m comment --comment "cali:l1-K_FHWxjq3YH-4" -j DNAT --to-destination \
2001:db8:2::2
-A cali-fip-snat -s 2001:db8:2::2/128 -d 2001:db8:2::2/128 -m comment --comment "cali:Bn-N9djPN7auSGN3" -j SNAT \
--to-source 2001:db8:3::2 --random-fully
-A cali-nat-outgoing -m comment --comment "cali:Y4sh__lNLsPKa_Pw" -m set --match-set cali60masq-ipam-pools src -m set \
! --match-set cali60network-ip-pools dst -j MASQUERADE --random-fully
COMMIT
*filter
:cali-FORWARD - [0:0]
:cali-cidr-block - [0:0]
:cali-from-hep-forward - [0:0]
:cali-from-wl-dispatch - [0:0]
:cali-to-hep-forward - [0:0]
:cali-to-wl-dispatch - [0:0]
-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD
-A cali-FORWARD -m comment --comment "cali:W_vvds1Nw3n9QE2f" -j MARK --set-xmark 0x0/0x1a0000
-A cali-FORWARD -m comment --comment "cali:ZfgmjuiLaA8Pg0kp" -m mark --mark 0x0/0x10000 -j cali-from-hep-forward
-A cali-FORWARD -i cali+ -m comment --comment "cali:tAzwBLPaV-j53OOZ" -j cali-from-wl-dispatch
-A cali-FORWARD -o cali+ -m comment --comment "cali:4Z0Pf0byo05NFe-P" -j cali-to-wl-dispatch
-A cali-FORWARD -m comment --comment "cali:hQ7Oc16wmUtLuneJ" -j cali-to-hep-forward
-A cali-FORWARD -m comment --comment "cali:rnKNH2WxGcRQcIlD" -j cali-cidr-block
-A cali-cidr-block -d fd5f::/119 -m comment --comment "cali:8u27XWm-oNgM46vc" -j DROP
COMMIT
"""

_SETS = """create cali40network-ip-pools hash:net family inet maxelem 1048576
add cali40network-ip-pools 10.244.0.0/16
add cali40network-ip-pools 10.245.0.7/32
add cali40network-ip-pools 10.246.0.0/16
create cali40masq-ipam-pools hash:net family inet maxelem 1048576
add cali40masq-ipam-pools 10.244.0.0/16
add cali40masq-ipam-pools 10.245.0.7/32
create cali60network-ip-pools hash:net family inet6 maxelem 1048576
add cali60network-ip-pools 2001:db8:1::/64
create cali60masq-ipam-pools hash:net family inet6 maxelem 1048576
add cali60masq-ipam-pools 2001:db8:1::/64
create cali40all-vxlan-net hash:net family inet maxelem 1048576
add cali40all-vxlan-net 192.0.2.12
create cali40dscp-src-net hash:net family inet maxelem 1048576
create cali40this-host hash:ip family inet maxelem 1048576
create cali60this-host hash:ip family inet6 maxelem 1048576
"""

#: What Felix was told, in the words of the modules.
ARGUMENTS: dict[ModuleType, dict[str, Any]] = {
    calico_masq: {"pools": [
        {"cidr": "10.244.0.0/16", "masquerade": True}, {"cidr": "10.245.0.7/32", "masquerade": True},
        {"cidr": "10.246.0.0/16", "masquerade": False}, {"cidr": "2001:db8:1::/64", "masquerade": True}]},
    floating_ip: {"mappings": [
        {"external": "172.16.1.3", "internal": "10.0.240.2"}, {"external": "172.18.1.4", "internal": "10.0.240.2"},
        {"external": "2001:db8:3::2", "internal": "2001:db8:2::2"}], "metadata_address": "127.0.0.1:8775"},
    service_loop_block: {"cidrs": ["203.0.113.0/24", "10.96.0.0/12", "1.2.3.4/32", "fd5f::/119"]},
    calico_host_ips: {},
}


def load_felix(one: Node) -> None:
    """Bring a node to Felix's state."""
    lines = [_SETS]
    for family, name in (("-4", "cali40this-host"), ("-6", "cali60this-host")):
        routes = json.loads(one.ip("-j", family, "route", "show", "table", "local", "type", "local"))
        lines += [f"add {name} {dst}\n" for dst in sorted({route["dst"].partition("/")[0] for route in routes})]
    one.exec("ipset", "restore", text="".join(lines))
    one.load("ipv4", RULES_IPV4)
    one.load("ipv6", RULES_IPV6)
