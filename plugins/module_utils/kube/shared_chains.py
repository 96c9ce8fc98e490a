# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rules of one service port in the chains that all service ports share."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.kube.port_plan import PortPlan, Scene, Shared, comment


def write_shared(plan: PortPlan, scene: Scene, shared: Shared) -> None:
    """Append the rules of a service port in kube-proxy's order."""
    _cluster_ip(plan, scene, shared)
    _external_ips(plan, scene, shared)
    _load_balancer(plan, scene, shared)
    if plan.port.node_port and scene.nodeports:
        _node_port(plan, scene, shared)
    if plan.port.health_check_port:
        shared.nodeports.append(f"-p tcp {comment(f'{plan.port.title} health check node port')} "
                                f"-m tcp --dport {plan.port.health_check_port} -j ACCEPT")


def cluster_ip_match(plan: PortPlan, scene: Scene, source: str = "", interface: str = "") -> str:
    """The match on the cluster IP, with arguments about the sender where iptables-save prints them."""
    port = plan.port
    protocol = port.key.protocol
    return (f"{source}-d {port.cluster_ip}/{scene.bits} {interface}-p {protocol} "
            f"{comment(f'{port.title} cluster IP')} -m {protocol} --dport {port.port}")


def _cluster_ip(plan: PortPlan, scene: Scene, shared: Shared) -> None:
    if plan.has_internal:
        shared.nat_services.append(f"{cluster_ip_match(plan, scene)} -j {plan.internal_chain}")
    else:
        shared.services.append(_refusal(plan, scene, plan.port.cluster_ip))


def _external_ips(plan: PortPlan, scene: Scene, shared: Shared) -> None:
    for address in plan.port.external_ips:
        if plan.chosen.any:
            shared.nat_services.append(f"{_match(plan, scene, address, 'external IP')} -j {plan.ext}")
        if not plan.has_external:
            shared.external_services.append(_refusal(plan, scene, address))


def _load_balancer(plan: PortPlan, scene: Scene, shared: Shared) -> None:
    for address in plan.port.lb_ips:
        if plan.chosen.any:
            target = plan.fw if plan.uses_fw else plan.ext
            shared.nat_services.append(f"{_match(plan, scene, address, 'loadbalancer IP')} -j {target}")
        if plan.uses_fw and not scene.layout.marks_drops:
            shared.proxy_firewall.append(
                f"{_match(plan, scene, address, f'traffic not accepted by {plan.fw}')} -j DROP")
    if not plan.has_external:
        shared.external_services.extend(_refusal(plan, scene, address) for address in plan.port.lb_ips)


def _node_port(plan: PortPlan, scene: Scene, shared: Shared) -> None:
    port = plan.port
    protocol = port.key.protocol
    if plan.chosen.any:
        shared.nat_nodeports.append(
            f"-p {protocol} {comment(port.title)} -m {protocol} --dport {port.node_port} -j {plan.ext}")
    if not plan.has_external:
        problem, verdict = _verdict(plan, scene)
        shared.external_services.append(
            f"-p {protocol} {comment(f'{port.title} {problem}')} -m addrtype --dst-type LOCAL "
            f"-m {protocol} --dport {port.node_port} {verdict}")


def _match(plan: PortPlan, scene: Scene, address: str, what: str) -> str:
    port = plan.port
    protocol = port.key.protocol
    return (f"-d {address}/{scene.bits} -p {protocol} {comment(f'{port.title} {what}')} "
            f"-m {protocol} --dport {port.port}")


def _refusal(plan: PortPlan, scene: Scene, address: str) -> str:
    problem, verdict = _verdict(plan, scene)
    return f"{_match(plan, scene, address, problem)} {verdict}"


def _verdict(plan: PortPlan, scene: Scene) -> tuple[str, str]:
    """Refuse where there is no endpoint at all; drop where another node has one, so that a balancer moves on."""
    if plan.chosen.any:
        return "has no local endpoints", "-j DROP"
    return "has no endpoints", scene.reject
