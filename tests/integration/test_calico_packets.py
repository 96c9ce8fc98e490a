# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the Calico modules do to real packets between a client, a node and its pods."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType
from typing import Any, NamedTuple

import pytest
from ansible_collections.metal.nodenet.plugins.modules import calico_masq, floating_ip, service_loop_block
from support.builders import endpoint_slice, service
from support.node import Node, node
from support.packets import Wire
from support.talk import REFUSED, ask, listening, seen

CLIENT, NODE, EXTERNAL = "192.0.2.99", "192.0.2.11", "198.51.100.10"
PORT = 7000
INSIDE = {"cidr": "10.244.1.0/24", "masquerade": True}
OTHER_POOL = {"cidr": "10.244.2.0/24", "masquerade": False}
PROTOCOLS = ["udp", "tcp"]


@pytest.fixture
def wire(kube_node: Node) -> Iterator[Wire]:
    """A client outside and two pods, each of a pool of its own; everybody answers."""
    with Wire(kube_node, pods=2) as one, listening(one.client, "client", PORT), \
            listening(one.pod_nodes[0], "first", PORT), listening(one.pod_nodes[1], "second", PORT):
        yield one


def run(wire: Wire, module: ModuleType, **arguments: Any) -> None:
    result = wire.node.module(module=module, backend=wire.node.backend, **arguments)
    assert not result.get("failed"), result["msg"]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_what_a_pod_sends_outside_has_the_nodes_address_and_to_another_pool_its_own(wire: Wire, protocol: str) -> None:
    pod, other = wire.pod_nodes[0], wire.pods[1]
    assert seen(ask(pod, protocol, CLIENT, PORT)) == ("client", wire.pods[0])
    run(wire, calico_masq, pools=[INSIDE, OTHER_POOL])
    assert seen(ask(pod, protocol, CLIENT, PORT)) == ("client", NODE)
    assert seen(ask(pod, protocol, other, PORT)) == ("second", wire.pods[0])
    assert seen(ask(wire.pod_nodes[1], protocol, CLIENT, PORT)) == ("client", other), "its pool is not masqueraded"
    run(wire, calico_masq, pools=[INSIDE])
    name, source = seen(ask(pod, protocol, other, PORT))
    assert (name, source != wire.pods[0]) == ("second", True), "outside of all pools it must be masqueraded"
    run(wire, calico_masq, state="absent")
    assert seen(ask(pod, protocol, CLIENT, PORT)) == ("client", wire.pods[0])


def test_a_fixed_address_a_port_range_an_interface_and_hosts_left_out(wire: Wire) -> None:
    pod, pools = wire.pod_nodes[0], [INSIDE, OTHER_POOL]
    wire.node.ip("addr", "add", "192.0.2.50/24", "dev", "eth0")
    run(wire, calico_masq, pools=pools, nat_outgoing_address="192.0.2.50", nat_port_range="40000:40009")
    for protocol in PROTOCOLS:
        answer = ask(pod, protocol, CLIENT, PORT)
        assert seen(answer) == ("client", "192.0.2.50")
        assert 40000 <= int((answer or "").rpartition(":")[2]) <= 40009
    run(wire, calico_masq, pools=pools, interface_filter="eth+")
    assert seen(ask(pod, "tcp", CLIENT, PORT)) == ("client", NODE)
    run(wire, calico_masq, pools=pools, interface_filter="wlan+")
    assert seen(ask(pod, "tcp", CLIENT, PORT)) == ("client", wire.pods[0])
    run(wire, calico_masq, pools=pools, exclusions="pools_and_hosts", hosts=[CLIENT])
    assert seen(ask(pod, "tcp", CLIENT, PORT)) == ("client", wire.pods[0])
    run(wire, calico_masq, pools=pools, exclusions="pools_and_hosts", hosts=["192.0.2.98"])
    assert seen(ask(pod, "tcp", CLIENT, PORT)) == ("client", NODE)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_f098_a_floating_ip_leads_to_the_pod_from_outside_from_the_node_and_from_the_pod_itself(
        wire: Wire, protocol: str) -> None:
    pod = wire.pod_nodes[0]
    # A router: otherwise nobody would carry the packets to where their address is changed.
    wire.node.ip("route", "add", "default", "via", CLIENT)
    assert ask(wire.client, protocol, EXTERNAL, PORT, seconds=0.3) is None
    run(wire, floating_ip, mappings=[{"external": EXTERNAL, "internal": wire.pods[0]}])
    assert seen(ask(wire.client, protocol, EXTERNAL, PORT)) == ("first", CLIENT)
    assert seen(ask(wire.node, protocol, EXTERNAL, PORT))[0] == "first"
    assert seen(ask(wire.pod_nodes[1], protocol, EXTERNAL, PORT)) == ("first", wire.pods[1])
    assert seen(ask(pod, protocol, EXTERNAL, PORT)) == ("first", EXTERNAL)
    assert seen(ask(pod, protocol, CLIENT, PORT)) == ("client", wire.pods[0]), "what it sends itself stays as it is"


def test_f098_without_the_rule_for_it_a_pod_does_not_reach_itself(wire: Wire) -> None:
    """Shows that the test above can fail."""
    wire.node.ip("route", "add", "default", "via", CLIENT)
    run(wire, floating_ip, mappings=[{"external": EXTERNAL, "internal": wire.pods[0]}])
    wire.node.iptables("-t", "nat", "-F", "cali-fip-snat")
    assert ask(wire.pod_nodes[0], "tcp", EXTERNAL, PORT, seconds=0.3) is None
    run(wire, floating_ip, mappings=[{"external": EXTERNAL, "internal": wire.pods[0]}])
    assert seen(ask(wire.pod_nodes[0], "tcp", EXTERNAL, PORT)) == ("first", EXTERNAL)


def test_a_sender_with_a_fixed_port_follows_a_floating_ip_that_moves(wire: Wire) -> None:
    def lead_to(pod: int, **options: bool) -> None:
        run(wire, floating_ip, mappings=[{"external": EXTERNAL, "internal": wire.pods[pod]}], **options)

    def asked() -> str:
        return seen(ask(wire.client, "udp", EXTERNAL, PORT, source_port=4444))[0]

    lead_to(0)
    assert asked() == "first"
    lead_to(1, conntrack_cleanup=False)
    assert asked() == "first", "the fault must show without the clean-up"
    lead_to(0)
    lead_to(1)
    assert asked() == "second"


def test_all_modules_together_do_not_get_in_each_others_way(wire: Wire) -> None:
    """F100: an address that is served has been translated before it comes to where its range is blocked."""
    run(wire, service_loop_block, cidrs=["10.96.0.0/12"])
    run(wire, floating_ip, mappings=[{"external": EXTERNAL, "internal": wire.pods[0]}])
    run(wire, calico_masq, pools=[INSIDE, OTHER_POOL])
    wire.node.module(services=[service()], endpoint_slices=[endpoint_slice(wire.pods[1], port=PORT)],
                     backend=wire.node.backend)
    assert seen(ask(wire.client, "tcp", "10.96.0.10", 80)) == ("second", CLIENT)
    assert seen(ask(wire.pod_nodes[0], "tcp", "10.96.0.10", 80)) == ("second", wire.pods[0])
    assert seen(ask(wire.pod_nodes[1], "tcp", "10.96.0.10", 80))[0] == "second"
    assert seen(ask(wire.client, "tcp", EXTERNAL, PORT)) == ("first", CLIENT)
    assert seen(ask(wire.pod_nodes[0], "tcp", CLIENT, PORT)) == ("client", NODE)
    assert ask(wire.client, "tcp", "10.96.0.99", 80, seconds=0.3) is None


UNUSED = {"ipv4": "10.96.99.99", "ipv6": "fd00:10:96::99"}
RANGES = ["10.96.0.0/12", "fd00:10:96::/112"]


class Loop(NamedTuple):
    """A host far away, a router, and a node; the last two send packets for services to each other."""

    far: Node
    router: Node
    node: Node

    def ask(self, family: str, seconds: float = 0.3) -> str | None:
        """What the far host is told at the unused address; one packet."""
        return ask(self.far, "udp", UNUSED[family], 9, seconds=seconds)

    def arrived(self, family: str) -> int:
        """How many packets to the unused address have come to the node."""
        listing = self.node.iptables("-t", "raw", "-nvxL", "PREROUTING", family=family)
        return int(listing.splitlines()[2].split()[0])

    def block(self, action: str) -> None:
        result = self.node.module(module=service_loop_block, cidrs=RANGES, action=action, backend=self.node.backend)
        assert result["changed"], result


@pytest.fixture
def loop(kube_node: Node) -> Iterator[Loop]:
    with Wire(kube_node, pods=0) as wire, node(kube_node.backend) as far:
        router = wire.client
        router.ip("link", "add", "far", "type", "veth", "peer", "name", "eth0", "netns", far.name)
        for host, interface, four, six in ((router, "far", "203.0.113.1/24", "2001:db8:f::1/64"),
                                           (far, "eth0", "203.0.113.5/24", "2001:db8:f::5/64"),
                                           (router, "eth0-far", "", "2001:db8::99/64")):
            host.ip("link", "set", interface, "up")
            if four:
                host.ip("addr", "add", four, "dev", interface)
            host.ip("addr", "add", six, "dev", interface, "nodad")
        for host, four, six in ((kube_node, CLIENT, "2001:db8::99"), (far, "203.0.113.1", "2001:db8:f::1")):
            host.ip("route", "add", "default", "via", four)
            host.ip("-6", "route", "add", "default", "via", six)
        router.ip("route", "add", RANGES[0], "via", NODE)
        router.ip("-6", "route", "add", RANGES[1], "via", "2001:db8::11")
        # The packets come back to the router from where their sender is not.
        router.exec("sysctl", "-qw", "net.ipv4.conf.all.rp_filter=0", "net.ipv4.conf.eth0-far.rp_filter=0")
        for host in (kube_node, router):
            host.exec("sysctl", "-qw", "net.ipv4.ip_forward=1", "net.ipv6.conf.all.forwarding=1")
        for family, address in UNUSED.items():
            kube_node.iptables("-t", "raw", "-A", "PREROUTING", "-p", "udp", "-d", address, family=family)
        for address in (NODE, "2001:db8::11"):
            assert any(ask(far, "udp", address, 9) == REFUSED for _try in range(5)), f"no way to {address}"
        yield Loop(far, router, kube_node)


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
def test_a_packet_to_a_service_that_nobody_serves_goes_round_and_with_the_module_does_not(loop: Loop,
                                                                                          family: str) -> None:
    assert loop.ask(family) is None
    before = loop.arrived(family)
    assert before > 20, "one packet must go round until its time to live ends"
    loop.block("drop")
    assert loop.ask(family) is None
    assert loop.arrived(family) == before + 1
    loop.block("reject")
    assert loop.ask(family, seconds=2) == REFUSED
    assert loop.arrived(family) == before + 2
    loop.block("disabled")
    assert loop.ask(family) is None
    assert loop.arrived(family) > before + 22
