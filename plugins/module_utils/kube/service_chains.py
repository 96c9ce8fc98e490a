# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chains of one service port: EXT and FW lead to SVC and SVL, these to one SEP per endpoint."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from ansible_collections.metal.nodenet.plugins.module_utils.kube import names
from ansible_collections.metal.nodenet.plugins.module_utils.kube.port_plan import PortPlan, Scene, comment
from ansible_collections.metal.nodenet.plugins.module_utils.kube.shared_chains import cluster_ip_match
from ansible_collections.metal.nodenet.plugins.module_utils.kube.slices import Endpoint
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain

_MASQ = f"-j {names.MARK_MASQ}"
_DROP = f"-j {names.MARK_DROP}"


def write_private(plan: PortPlan, scene: Scene, chains: dict[str, Chain]) -> None:
    """Add the chains of a service port, those that are jumped to before those that jump."""
    if not plan.chosen.any:
        return
    title = plan.port.title
    protocol = plan.port.key.protocol
    seps = {endpoint.text: names.endpoint_chain(title, protocol, endpoint.text)
            for endpoint in plan.chosen.reachable}
    _endpoints(plan, scene, seps, chains)
    if plan.uses_svc:
        rules = _off_cluster(plan, scene, plan.svc) + _dispatch(plan, scene, plan.chosen.cluster, seps)
        chains[plan.svc] = Chain(plan.svc, rules, plan.label)
    if plan.uses_svl:
        rules = _off_cluster(plan, scene, plan.svl) + _dispatch(plan, scene, plan.chosen.local, seps)
        if not plan.chosen.local:
            rules.append(f"{comment(f'{title} has no local endpoints')} {_DROP}")
        chains[plan.svl] = Chain(plan.svl, rules, plan.label)
    if plan.uses_ext:
        chains[plan.ext] = Chain(plan.ext, _external(plan, scene), plan.label)
    if plan.uses_fw:
        chains[plan.fw] = Chain(plan.fw, _ranges(plan, scene), plan.label)


@lru_cache(maxsize=4096)
def probability(count: int) -> str:
    """One in ``count`` as ``iptables-save`` prints it: kube-proxy writes ten digits, the kernel keeps 31 bits."""
    return f"{round(float(f'{1 / count:.10f}') * 2**31) / 2**31:.11f}"


def _off_cluster(plan: PortPlan, scene: Scene, chain: str) -> list[str]:
    """Masquerade what reaches the cluster IP from outside the cluster, or all of it."""
    if chain != plan.internal_chain or not plan.has_internal:
        return []
    if scene.options.masquerade_all:
        return [f"{cluster_ip_match(plan, scene)} {_MASQ}"]
    if scene.from_pod is None:
        return []
    return [f"{cluster_ip_match(plan, scene, scene.not_pod_source, scene.not_pod_interface)} {_MASQ}"]


def _external(plan: PortPlan, scene: Scene) -> list[str]:
    """EXT: where traffic from outside starts. With a Local policy pods and the node itself use any endpoint."""
    what = f"{plan.port.title} external destinations"
    if not plan.port.external_local:
        rules = [f"{comment(f'masquerade traffic for {what}')} {_MASQ}"]
    else:
        from_node = "-m addrtype --src-type LOCAL"
        rules = [
            f"{comment(f'masquerade LOCAL traffic for {what}')} {from_node} {_MASQ}",
            f"{comment(f'route LOCAL traffic for {what}')} {from_node} -j {plan.svc}",
        ]
        if scene.from_pod is not None:
            rules.insert(0, f"{scene.from_pod}{comment(f'pod traffic for {what}')} -j {plan.svc}")
    if plan.has_external:
        rules.append(f"-j {plan.external_chain}")
    return rules


def _ranges(plan: PortPlan, scene: Scene) -> list[str]:
    """FW: only the source ranges get on, and the node itself if it is in one of them."""
    port = plan.port
    note = comment(f"{port.title} loadbalancer IP")
    allowed = [f"{'' if network.length == 0 else f'-s {network.text} '}{note} -j {plan.ext}"
               for network in port.source_ranges]
    # Traffic of the node to the balancer's address may carry that address as its source.
    node_allowed = any(network.has(scene.node_address) for network in port.source_ranges)
    hairpin = [f"-s {address}/{scene.bits} {note} -j {plan.ext}" for address in port.lb_ips if node_allowed]
    if not scene.layout.marks_drops:
        rest = comment(f"other traffic to {port.title} will be dropped by {names.PROXY_FIREWALL}")
        return [*allowed, *hairpin, rest]
    rules = []
    for index in range(len(port.lb_ips)):
        # 1.24 writes the whole block once per address, so only the first drop mark is ever reached.
        rules += [*allowed, *hairpin[index:index + 1], f"{note} {_DROP}"]
    return rules


def _dispatch(plan: PortPlan, scene: Scene, endpoints: Sequence[Endpoint], seps: dict[str, str]) -> list[str]:
    """Jump to one of the endpoints, each with the same chance."""
    title = plan.port.title
    notes = ["" if scene.large else f"{comment(f'{title} -> {endpoint.text}')} " for endpoint in endpoints]
    chains = [seps[endpoint.text] for endpoint in endpoints]
    rules = []
    if plan.port.affinity:
        rules = [f"{note}-m recent --rcheck --seconds {plan.port.affinity} --reap --name {chain} "
                 f"--mask {scene.recent_mask} --rsource -j {chain}" for note, chain in zip(notes, chains)]
    left = len(chains)
    for note, chain in zip(notes, chains):
        if left > 1:
            rules.append(f"{note}-m statistic --mode random --probability {probability(left)} -j {chain}")
        else:
            rules.append(f"{note}-j {chain}")
        left -= 1
    return rules


def _endpoints(plan: PortPlan, scene: Scene, seps: dict[str, str], chains: dict[str, Chain]) -> None:
    """SEP: translate to the endpoint; masquerade where it talks to itself."""
    protocol = plan.port.key.protocol
    note = "" if scene.large else f"{comment(plan.port.title)} "
    bits = scene.bits
    label = plan.label
    recent = ""
    for endpoint in plan.chosen.reachable:
        name = seps[endpoint.text]
        if plan.port.affinity:
            recent = f"-m recent --set --name {name} --mask {scene.recent_mask} --rsource "
        chains[name] = Chain(name, (
            f"-s {endpoint.address}/{bits} {note}{_MASQ}",
            f"-p {protocol} {note}{recent}-m {protocol} -j DNAT --to-destination {endpoint.target}",
        ), f"{label} -> {endpoint.text}")
