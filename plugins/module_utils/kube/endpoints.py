# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which endpoints a service port's traffic goes to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import Layout
from ansible_collections.metal.nodenet.plugins.module_utils.kube.services import ServicePort
from ansible_collections.metal.nodenet.plugins.module_utils.kube.slices import Endpoint


class Place(NamedTuple):
    """Where the node stands; an empty text where that is not known."""

    node: str
    zone: str


class Chosen(NamedTuple):
    """The endpoints of one service port by use, each list in the order of the endpoints' texts."""

    #: For the Cluster policy.
    cluster: Sequence[Endpoint]
    #: For the Local policy.
    local: Sequence[Endpoint]
    #: Those of both lists, each once: the ones that need a chain.
    reachable: Sequence[Endpoint]
    #: Whether the service port has a usable endpoint on any node.
    any: bool


NOTHING = Chosen((), (), (), False)


def settle(endpoints: Sequence[Endpoint], layout: Layout, node: str) -> list[Endpoint]:
    """The endpoints of one service port sorted by text, each target once.

    Slices overlap while endpoints move between them. The version decides which entry counts; where it leaves that to
    chance, the entry in the better condition counts, so the order of the slices decides nothing.
    """
    kept: dict[str, Endpoint] = {}
    for endpoint in endpoints:
        other = kept.setdefault(endpoint.target, endpoint)
        if other is not endpoint and _rank(endpoint, layout, node) > _rank(other, layout, node):
            kept[endpoint.target] = endpoint
    if len(kept) == 1:
        return list(kept.values())
    return sorted(kept.values(), key=_text)


def choose(port: ServicePort, endpoints: Sequence[Endpoint], layout: Layout, place: Place) -> Chosen:
    """Choose from the settled endpoints of a service port."""
    if not endpoints:
        return NOTHING
    ready = [endpoint for endpoint in endpoints if endpoint.ready]
    fallback: list[Endpoint] = []
    if layout.terminating_fallback and len(ready) < len(endpoints):
        fallback = [one for one in endpoints if one.serving and one.terminating and not one.ready]
    cluster: Sequence[Endpoint] = ()
    if port.uses_cluster:
        cluster = _near(port, ready, layout, place) or fallback
    if not port.uses_local:
        return Chosen(cluster, (), cluster, bool(cluster))
    local = _on(place.node, ready) or _on(place.node, fallback)
    reachable = _merged(cluster, local) if port.uses_cluster else local
    return Chosen(cluster, local, reachable, bool(ready or fallback))


def _text(endpoint: Endpoint) -> str:
    return endpoint.text


def _rank(endpoint: Endpoint, layout: Layout, node: str) -> tuple[bool, bool, bool, bool, str]:
    preferred = endpoint.node == node != "" if layout.duplicate_prefers_local else not endpoint.terminating
    return preferred, endpoint.ready, endpoint.serving, not endpoint.terminating, endpoint.text


def _on(node: str, endpoints: list[Endpoint]) -> list[Endpoint]:
    return [endpoint for endpoint in endpoints if endpoint.node == node] if node else []


def _merged(cluster: Sequence[Endpoint], local: Sequence[Endpoint]) -> list[Endpoint]:
    return sorted({endpoint.target: endpoint for endpoint in (*cluster, *local)}.values(), key=_text)


def _near(port: ServicePort, ready: list[Endpoint], layout: Layout, place: Place) -> list[Endpoint]:
    """The ready endpoints that hint at this node or zone; all of them where hints are off, partial or lead nowhere."""
    if not port.follows_hints:
        return ready
    if layout.node_hints and place.node and all(endpoint.node_hints for endpoint in ready):
        near = [endpoint for endpoint in ready if place.node in endpoint.node_hints]
        if near:
            return near
    if place.zone and all(endpoint.zone_hints for endpoint in ready):
        near = [endpoint for endpoint in ready if place.zone in endpoint.zone_hints]
        if near:
            return near
    return ready
