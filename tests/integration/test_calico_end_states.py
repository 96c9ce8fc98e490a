# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Felix's end states, as captured from a kernel: the modules give exactly these lines, ids included."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import (
    calico_host_ips,
    calico_masq,
    floating_ip,
    service_loop_block,
)
from support.calico import FLOATING, LOOPS, MASQ, MODULES, changed, four_ways, members, rules, sets, settle
from support.node import Node, Result, node
from support.shims import Shims

OUTGOING = ("-m set --match-set cali40masq-ipam-pools src -m set ! --match-set cali40network-ip-pools dst")
HOSTS_TOO = OUTGOING + " -m set ! --match-set cali40all-hosts-net dst"
ONE_POOL: dict[str, Any] = {"pools": [{"cidr": "10.244.0.0/16", "masquerade": True}]}

HOOKS = [
    '-A PREROUTING -m comment --comment "cali:6gwbT8clXdHdC1b1" -j cali-PREROUTING',
    '-A OUTPUT -m comment --comment "cali:tVnHkvAo15HuiPy0" -j cali-OUTPUT',
    '-A POSTROUTING -m comment --comment "cali:0i8pjzKKPyA34aQD" -j cali-POSTROUTING',
]
SHARED = [
    '-A cali-OUTPUT -m comment --comment "cali:GBTAv2p5CwevEyJm" -j cali-fip-dnat',
    '-A cali-POSTROUTING -m comment --comment "cali:Z-c7XtVd2Bq7s_hA" -j cali-fip-snat',
    '-A cali-POSTROUTING -m comment --comment "cali:nYKhEzDlr11Jccal" -j cali-nat-outgoing',
    '-A cali-PREROUTING -m comment --comment "cali:r6XmIziWUJsdOK6Z" -j cali-fip-dnat',
]


def run(one: Node, module: ModuleType, **arguments: Any) -> None:
    assert four_ways(one, module, backend=one.backend, **arguments)["changed"]


def test_a1_one_pool_and_no_floating_ip(kube_node: Node) -> None:
    run(kube_node, calico_masq, **ONE_POOL)
    run(kube_node, floating_ip, mappings=[])
    assert rules(kube_node, "nat") == [
        *HOOKS, *SHARED, f'-A cali-nat-outgoing -m comment --comment "cali:W_qq_N2KSTWyCvrX" {OUTGOING} -j MASQUERADE '
                         "--random-fully"]
    assert rules(kube_node, "nat", family="ipv6") == [*HOOKS, *SHARED]
    assert sets(kube_node) == [
        "add cali40masq-ipam-pools 10.244.0.0/16",
        "add cali40network-ip-pools 10.244.0.0/16",
        "create cali40masq-ipam-pools hash:net family inet maxelem 1048576",
        "create cali40network-ip-pools hash:net family inet maxelem 1048576",
        "create cali60masq-ipam-pools hash:net family inet6 maxelem 1048576",
        "create cali60network-ip-pools hash:net family inet6 maxelem 1048576",
    ]


def test_a2_a_port_range_an_interface_filter_and_hosts_left_out(kube_node: Node) -> None:
    run(kube_node, calico_masq, **ONE_POOL, nat_port_range="32768:65535", interface_filter="eth+",
        exclusions="pools_and_hosts", hosts=["192.0.2.11", "192.0.2.12", "203.0.113.0/24"])
    assert rules(kube_node, "nat", "cali-nat-outgoing") == [
        f'-A cali-nat-outgoing -o eth+ -p tcp -m comment --comment "cali:xokvdyu31GTVzWBO" {HOSTS_TOO} -j MASQUERADE '
        "--to-ports 32768-65535 --random-fully",
        f'-A cali-nat-outgoing -o eth+ -p tcp -m comment --comment "cali:pwbPT5X0abYjwM-U" {HOSTS_TOO} -j RETURN',
        f'-A cali-nat-outgoing -o eth+ -p udp -m comment --comment "cali:-RWoiyOwJNhJMKRZ" {HOSTS_TOO} -j MASQUERADE '
        "--to-ports 32768-65535 --random-fully",
        f'-A cali-nat-outgoing -o eth+ -p udp -m comment --comment "cali:uzj1LwUY_EtSVqfN" {HOSTS_TOO} -j RETURN',
        f'-A cali-nat-outgoing -o eth+ -m comment --comment "cali:qqCrwK3pA8rU-7sd" {HOSTS_TOO} -j MASQUERADE '
        "--random-fully",
    ]
    assert members(kube_node, "cali40all-hosts-net") == ["192.0.2.11", "192.0.2.12", "203.0.113.0/24"]


@pytest.fixture
def old_node(shims: Shims) -> Iterator[Node]:
    """A node whose tools are from before --random-fully, and so of the legacy backend. Run with :func:`old`."""
    for base in ("iptables", "ip6tables"):
        shims.add(f"{base}-legacy-save", f'[ "$1" != --version ] || {{ echo "{base}-save v1.6.0"; exit 0; }}; '
                                         'exec "$REAL" "$@"')
        shims.add(f"{base}-legacy-restore", 'cat > "$HERE/in"; ! grep -q random-fully "$HERE/in" || '
                                            '{ echo "unknown option" >&2; exit 2; }; "$REAL" "$@" < "$HERE/in"')
    with node("legacy") as one:
        yield one


def old(one: Node, module: ModuleType, shims: Shims, **arguments: Any) -> Result:
    result = one.module(module=module, **arguments, backend="legacy", environment=shims.environment)
    assert result["changed"]
    assert not result.get("failed"), result["msg"]
    assert not changed(one, module=module, **arguments, backend="legacy", environment=shims.environment)
    return result


def test_a3_a_fixed_address_and_a_port_range_with_tools_that_are_old(old_node: Node, shims: Shims) -> None:
    old(old_node, calico_masq, shims, **ONE_POOL, nat_outgoing_address="192.168.0.1", nat_port_range="99:100")
    assert rules(old_node, "nat", "cali-nat-outgoing") == [
        f'-A cali-nat-outgoing -p tcp -m comment --comment "cali:h6QoEdtas_BgnNmT" {OUTGOING} -j SNAT --to-source '
        "192.168.0.1:99-100",
        f'-A cali-nat-outgoing -p tcp -m comment --comment "cali:hFPDtapVoxn56H1C" {OUTGOING} -j RETURN',
        f'-A cali-nat-outgoing -p udp -m comment --comment "cali:cwSm5hKo1MT0iCOz" {OUTGOING} -j SNAT --to-source '
        "192.168.0.1:99-100",
        f'-A cali-nat-outgoing -p udp -m comment --comment "cali:igAu_9LU15XT-fYl" {OUTGOING} -j RETURN',
        f'-A cali-nat-outgoing -m comment --comment "cali:x-QxKnIMwznnDdC2" {OUTGOING} -j SNAT --to-source 192.168.0.1',
    ]


def test_f006_tools_without_random_fully_get_none_with_a_warning(old_node: Node, shims: Shims) -> None:
    masqueraded = old(old_node, calico_masq, shims, **MASQ)
    translated = old(old_node, floating_ip, shims, **FLOATING)
    dump = old_node.save("ipv4")
    assert "cali:TTPfnvdxBZ0m0GOs" in dump
    assert "-j SNAT --to-source 198.51.100.10\n" in dump
    for result in (masqueraded, translated):
        assert [warning for warning in result["warnings"] if "--random-fully" in warning and "ipv4" in warning]
    assert not old(old_node, service_loop_block, shims, **LOOPS)["warnings"]


def test_a4_two_floating_ips_of_one_pod_and_openstacks_metadata(kube_node: Node) -> None:
    run(kube_node, floating_ip, metadata_address="127.0.0.1", mappings=[
        {"external": "172.18.1.4", "internal": "10.0.240.2"}, {"external": "172.16.1.3", "internal": "10.0.240.2"}])
    run(kube_node, calico_masq, **ONE_POOL)
    assert rules(kube_node, "nat", "cali-POSTROUTING", "cali-PREROUTING", "cali-fip-dnat", "cali-fip-snat") == [
        '-A cali-POSTROUTING -m comment --comment "cali:Z-c7XtVd2Bq7s_hA" -j cali-fip-snat',
        '-A cali-POSTROUTING -m comment --comment "cali:nYKhEzDlr11Jccal" -j cali-nat-outgoing',
        '-A cali-PREROUTING -m comment --comment "cali:r6XmIziWUJsdOK6Z" -j cali-fip-dnat',
        '-A cali-PREROUTING -d 169.254.169.254/32 -p tcp -m comment --comment "cali:LNkCDrB90i2Y56UD" -m multiport '
        "--dports 80 -j DNAT --to-destination 127.0.0.1:8775",
        '-A cali-fip-dnat -d 172.16.1.3/32 -m comment --comment "cali:tNLwGk9z1UZNPNbW" -j DNAT --to-destination '
        "10.0.240.2",
        '-A cali-fip-dnat -d 172.18.1.4/32 -m comment --comment "cali:OU0OBM4pzE9sD4jJ" -j DNAT --to-destination '
        "10.0.240.2",
        '-A cali-fip-snat -s 10.0.240.2/32 -d 10.0.240.2/32 -m comment --comment "cali:DweygdPL2z-tP8xi" -j SNAT '
        "--to-source 172.16.1.3 --random-fully",
    ]


def test_a5_ipv6(kube_node: Node) -> None:
    run(kube_node, floating_ip, mappings=[{"external": "2001:db8:3::2", "internal": "2001:db8:2::2"}])
    run(kube_node, calico_masq, pools=[{"cidr": "2001:db8:1::/64", "masquerade": True}])
    assert rules(kube_node, "nat", family="ipv6") == [
        *HOOKS, *SHARED,
        '-A cali-fip-dnat -d 2001:db8:3::2/128 -m comment --comment "cali:l1-K_FHWxjq3YH-4" -j DNAT --to-destination '
        "2001:db8:2::2",
        '-A cali-fip-snat -s 2001:db8:2::2/128 -d 2001:db8:2::2/128 -m comment --comment "cali:Bn-N9djPN7auSGN3" '
        "-j SNAT --to-source 2001:db8:3::2 --random-fully",
        '-A cali-nat-outgoing -m comment --comment "cali:Y4sh__lNLsPKa_Pw" -m set --match-set cali60masq-ipam-pools '
        "src -m set ! --match-set cali60network-ip-pools dst -j MASQUERADE --random-fully",
    ]
    assert rules(kube_node, "nat") == [*HOOKS, *SHARED]


FORWARD_HOOK = '-A FORWARD -m comment --comment "cali:wUHhoiAYhphO9Mso" -j cali-FORWARD'


def test_a6_dropping(kube_node: Node) -> None:
    run(kube_node, service_loop_block, cidrs=["203.0.113.0/24", "10.96.0.0/12", "1.2.3.4/32"])
    hook, entry, *blocked = rules(kube_node, "filter")
    assert hook == FORWARD_HOOK
    assert entry.startswith("-A cali-FORWARD ")
    assert entry.endswith(" -j cali-cidr-block")
    assert blocked == [
        '-A cali-cidr-block -d 1.2.3.4/32 -m comment --comment "cali:qtp40dcPiH3LY35u" -j DROP',
        '-A cali-cidr-block -d 10.96.0.0/12 -m comment --comment "cali:pcGY_b8CM3nZzGQO" -j DROP',
        '-A cali-cidr-block -d 203.0.113.0/24 -m comment --comment "cali:rDJfk4lDuSLAme9I" -j DROP',
    ]
    assert rules(kube_node, "filter", family="ipv6") == [hook, entry]


def test_a7_a8_f040_rejecting_in_each_familys_own_words(kube_node: Node) -> None:
    run(kube_node, service_loop_block, cidrs=["10.96.0.0/12", "fd5f::/119"], action="reject")
    assert rules(kube_node, "filter", "cali-cidr-block") == [
        '-A cali-cidr-block -d 10.96.0.0/12 -m comment --comment "cali:qO09anU-GTmEKPEb" -j REJECT --reject-with '
        "icmp-port-unreachable"]
    assert rules(kube_node, "filter", "cali-cidr-block", family="ipv6") == [
        '-A cali-cidr-block -d fd5f::/119 -m comment --comment "cali:KNz8WuyB5YBJlUMg" -j REJECT --reject-with '
        "icmp6-port-unreachable"]


def test_a7_the_chains_of_ipvs_mode(kube_node: Node) -> None:
    settle(kube_node)
    run(kube_node, calico_host_ips, forward_check=True)
    assert rules(kube_node, "filter") == [
        '-A cali-forward-check -m comment --comment "cali:Pbldlb4FaULvpdD8" -m conntrack --ctstate RELATED,ESTABLISHED '
        "-j RETURN",
        '-A cali-forward-check -p tcp -m comment --comment "cali:ZD-6UxuUtGW-xtzg" -m comment --comment "To kubernetes '
        'NodePort service" -m multiport --dports 30000:32767 -m set --match-set cali40this-host dst '
        "-g cali-set-endpoint-mark",
        '-A cali-forward-check -p udp -m comment --comment "cali:CbPfUajQ2bFVnDq4" -m comment --comment "To kubernetes '
        'NodePort service" -m multiport --dports 30000:32767 -m set --match-set cali40this-host dst '
        "-g cali-set-endpoint-mark",
        '-A cali-forward-check -m comment --comment "cali:jmhU0ODogX-Zfe5g" -m comment --comment "To kubernetes '
        'service" -m set ! --match-set cali40this-host dst -j cali-set-endpoint-mark',
        '-A cali-set-endpoint-mark -i cali+ -m comment --comment "cali:MN61lcxFj1yWuYBo" -m comment --comment "Unknown '
        'endpoint" -j DROP',
        '-A cali-set-endpoint-mark -m comment --comment "cali:KUbTDva6Lcfp6vkT" -m comment --comment "Non-Cali '
        'endpoint mark" -j MARK --set-xmark 0x200000/0xffe00000',
    ]
    assert sets(kube_node) == [
        *(f"add cali40this-host {address}" for address in ("127.0.0.0", "127.0.0.1", "192.0.2.11")),
        *(f"add cali60this-host {address}" for address in ("2001:db8::11", "::1")),
        "create cali40this-host hash:ip family inet maxelem 1048576",
        "create cali60this-host hash:ip family inet6 maxelem 1048576",
    ]


@pytest.mark.parametrize("module", [calico_masq, floating_ip, service_loop_block])
def test_without_ids_there_is_no_cali_comment_and_a_switch_is_no_change(kube_node: Node, module: ModuleType) -> None:
    arguments = MODULES[module]
    run(kube_node, module, rule_hashes=False, **arguments)
    assert "cali:" not in kube_node.save("ipv4")
    assert not changed(kube_node, module=module, rule_hashes=True, **arguments)
