# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One service port, made ready for writing: what it has, what it is called, and the pieces its rules share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.kube import names
from ansible_collections.metal.nodenet.plugins.module_utils.kube.endpoints import Chosen, Place, choose
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import Layout
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.kube.services import ServicePort
from ansible_collections.metal.nodenet.plugins.module_utils.kube.slices import Endpoint
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import BITS, Address
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.quoting import (
    COMMENT_BYTES,
    clip_comment,
    quote,
)

#: More endpoints than this, counted over all service ports, and kube-proxy leaves comments out of their rules.
LARGE_CLUSTER = 1000


class Scene(NamedTuple):
    """What all rules of one family depend on, worked out once."""

    family: str
    options: ProxyOptions
    layout: Layout
    place: Place
    #: Prefix length of one address.
    bits: int
    #: Arguments that match pod traffic, and traffic that is no pod's, by where they stand in a rule; None: no detector.
    from_pod: str | None
    not_pod_source: str
    not_pod_interface: str
    #: The node as the sender of source-range rules.
    node_address: Address
    reject: str
    recent_mask: str
    #: Endpoint rules go without comments.
    large: bool
    #: Node ports get rules.
    nodeports: bool


class Shared(NamedTuple):
    """The rules of the chains that all service ports share, by table."""

    nat_services: list[str]
    nat_nodeports: list[str]
    services: list[str]
    external_services: list[str]
    nodeports: list[str]
    proxy_firewall: list[str]


class PortPlan(NamedTuple):
    """One service port with its endpoints chosen and its chains named."""

    port: ServicePort
    chosen: Chosen
    #: For people: ``default/web:http (tcp)``.
    label: str
    svc: str
    svl: str
    ext: str
    fw: str
    internal_chain: str
    external_chain: str
    has_internal: bool
    has_external: bool
    uses_svc: bool
    uses_svl: bool
    uses_ext: bool
    uses_fw: bool


def make_scene(options: ProxyOptions, family: str, endpoint_count: int) -> Scene:
    """Work out what the options mean for one family."""
    cidr, interface = options.detect_cidr(family), options.detect_interface()
    from_pod = None
    if cidr is not None:
        from_pod = f"-s {cidr} "
    elif interface is not None:
        from_pod = f"-i {interface} "
    v4 = family == IPV4
    return Scene(
        family=family,
        options=options,
        layout=options.layout,
        place=Place(options.node_name, options.zone),
        bits=BITS[family],
        from_pod=from_pod,
        not_pod_source=f"! -s {cidr} " if cidr is not None else "",
        not_pod_interface=f"! -i {interface} " if interface is not None else "",
        node_address=Address(family, options.node_ip(family)),
        reject=f"-j REJECT --reject-with {'icmp' if v4 else 'icmp6'}-port-unreachable",
        recent_mask="255.255.255.255" if v4 else "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
        large=endpoint_count > LARGE_CLUSTER,
        nodeports=not options.layout.nodeports_need_address or not options.nodeport_networks(family)
        or bool(options.nodeport_ips(family)),
    )


def make_plan(port: ServicePort, endpoints: Sequence[Endpoint], scene: Scene) -> PortPlan:
    """Choose the endpoints of a service port and name its chains; ``endpoints`` are settled."""
    layout = scene.layout
    chosen = choose(port, endpoints, layout, scene.place)
    shared_hash = names.port_hash(port.title, port.key.protocol)
    svc, svl = f"KUBE-SVC-{shared_hash}", f"KUBE-SVL-{shared_hash}"
    usable = chosen.any
    # Where drops are marks, a Local chain without endpoints is there to mark; otherwise filter drops and it is not.
    has_local = usable if layout.marks_drops else bool(chosen.local)
    return PortPlan(
        port=port,
        chosen=chosen,
        label=f"{port.title} ({port.key.protocol})",
        svc=svc,
        svl=svl,
        ext=f"KUBE-EXT-{shared_hash}",
        fw=f"KUBE-FW-{shared_hash}",
        internal_chain=svl if port.internal_local else svc,
        external_chain=svl if port.external_local else svc,
        has_internal=usable and (has_local or not port.internal_local),
        has_external=usable and (has_local or not port.external_local),
        uses_svc=usable and port.uses_cluster,
        uses_svl=has_local and port.uses_local,
        uses_ext=usable and port.externally_accessible,
        uses_fw=usable and bool(port.lb_ips) and bool(port.source_ranges),
    )


def comment(text: str) -> str:
    """The match that carries a comment, cut to what the kernel keeps.

    Texts here hold checked names and a blank or a slash, so they need quotes and nothing in them needs a backslash.
    """
    if len(text) <= COMMENT_BYTES:
        return f'-m comment --comment "{text}"'
    return f"-m comment --comment {quote(clip_comment(text))}"
