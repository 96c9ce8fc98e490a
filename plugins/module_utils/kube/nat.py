# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of ``kube_nat_chains`` to what the shared run needs."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.agents import Agent
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import read_input
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import ZONE_LABEL, Cluster, Node, read_cluster
from ansible_collections.metal.nodenet.plugins.module_utils.kube.opponents import describe, opponents
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.kube.rules import desired, nothing
from ansible_collections.metal.nodenet.plugins.module_utils.kube.stale import stale_flows
from ansible_collections.metal.nodenet.plugins.module_utils.kube.titles import titles
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.addresses import local_addresses
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.conntrack import FlowSelector
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import family_of, parse_address
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.iptables import Iptables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6, Desired, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.reconcile import Hooks
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown
from ansible_collections.metal.nodenet.plugins.module_utils.states import Manager

#: Chains that only a kubelet makes: it also has a part in KUBE-FIREWALL and, in its older versions, KUBE-MARK-DROP.
KUBELET_CHAINS = ("KUBE-KUBELET-CANARY", "KUBE-IPTABLES-HINT")

_LIBERAL = "/proc/sys/net/netfilter/nf_conntrack_tcp_be_liberal"
_LOOPBACKS = ["127.0.0.1", "::1"]
_TRUE_FALSE = {"enabled": True, "disabled": False}


def build(params: dict[str, Any]) -> Manager:
    """A manager for the module's parameters. Raises ``ValueError`` and ``NetfilterError`` for bad input."""
    return KubeNat(params).manager()


def facts(params: dict[str, Any]) -> object:
    """What decides about a run on a node besides the parameters and the rules. Known without reading the cluster."""
    return [_node_addresses(params), _tcp_be_liberal(params), os.uname().nodename, describe(opponents())]


class KubeNat:
    """One call of the module. ``warnings`` fills up as the run goes on."""

    def __init__(self, params: dict[str, Any]) -> None:
        self.warnings: list[str] = []
        self._params = params
        self._addresses = _node_addresses(params)
        self._cluster: Cluster | None = None
        self._options: ProxyOptions | None = None
        if params["state"] in ("present", "rendered"):
            self._cluster = self._read_cluster()
            self._options = self._read_options(self._cluster)

    def manager(self) -> Manager:
        """What ``states.run`` asks for."""
        return Manager(self._desired, self._nothing, self._hooks, self.warnings)

    # --- what should be ---

    def _read_cluster(self) -> Cluster:
        params = self._params
        if params["cluster"] is not None:
            items = read_input(params, self.warnings)
        else:
            items = _of_kind("Service", "services", params["services"] or ())
            items += _of_kind("EndpointSlice", "endpoint_slices", params["endpoint_slices"] or ())
        if not params["allow_empty"] and not any(item.get("kind") == "Service" for item in items
                                                 if isinstance(item, dict)):
            source = params["cluster"] or "services"
            raise NetfilterError(f"{source} holds no Service at all; an empty read would remove every service from "
                                 "this node. Set allow_empty to true if that is what you want")
        cluster = read_cluster(items, LAYOUTS[params["layout"]])
        self.warnings += cluster.warnings
        return cluster

    def _read_options(self, cluster: Cluster) -> ProxyOptions:
        params = self._params
        name = params["node_name"] or os.uname().nodename.strip().lower()
        node = cluster.nodes.get(name)
        labels = params["node_labels"]
        zone = str(labels.get(ZONE_LABEL, "")) if labels is not None else (node.zone if node else "")
        detect = params["detect_local"] or {"mode": "cluster_cidr", "cidrs": [], "interface": None}
        if (params["state"] == "rendered" and params["node_addresses"] is None
                and params["nodeport_addresses"] not in ([], ["primary"])):
            raise NetfilterError("node_addresses: state rendered reads nothing from a node, and nodeport_addresses "
                                 "chooses among the node's addresses; give them")
        return ProxyOptions(
            layout=LAYOUTS[params["layout"]], node_name=name, zone=zone,
            node_ips={IPV4: "127.0.0.1", IPV6: "::1", **(node.host_ips if node else {})},
            local_addresses=self._addresses, nodeport_addresses=params["nodeport_addresses"],
            localhost_nodeports=params["localhost_nodeports"], detect_local=detect["mode"],
            cidrs=_detect_cidrs(detect, name, node), interface=detect["interface"] or "",
            masquerade_all=params["masquerade_all"], masquerade_bit=params["masquerade_bit"],
            tcp_be_liberal=_tcp_be_liberal(params), provide_mark_drop=params["provide_mark_drop"],
            allowed_external_ips=params["allowed_external_ips"],
            foreign_mark_mask=_mask(params["foreign_mark_mask"]))

    def _desired(self, family: str, tool: Iptables | None) -> Desired:
        if self._cluster is None or self._options is None:
            raise NetfilterError("a state without a cluster was asked for rules")
        options = replace(self._options, random_fully={family: self._random_fully(family, tool)})
        found, warnings = desired(self._cluster, options, family)
        self.warnings += warnings
        return found

    def _random_fully(self, family: str, tool: Iptables | None) -> bool:
        known = tool is None or tool.random_fully
        wanted = _TRUE_FALSE.get(self._params["random_fully"])
        if not known and wanted is not False:
            self.warnings.append(f"{family}: this iptables does not know --random-fully; masquerading goes without it")
        return known and wanted is not False

    def _nothing(self, family: str, current: Tables) -> Desired:
        kubelet = any(chain in table.chains for table in current.values() for chain in KUBELET_CHAINS)
        if kubelet and self._params["state"] == "absent":
            self.warnings.append(f"{family}: a kubelet keeps chains here, so KUBE-FIREWALL and KUBE-MARK-DROP, which "
                                 "it shares, stay")
        return nothing(family, shared_with_kubelet=not kubelet)

    # --- its part in the run ---

    def _hooks(self) -> Hooks:
        found = opponents()
        if found and not self._params["takeover"]:
            self.warnings.append(describe(found) + "; writing here would need takeover: true")
        return Hooks(refuse=lambda: self._refuse(found), stale=self._stale(), titles=titles)

    def _refuse(self, found: list[Agent]) -> None:
        if found and not self._params["takeover"]:
            raise NetfilterError(describe(found) + "; two programs that serve the same services undo each other's "
                                 "work. Stop it, or set takeover: true")

    def _stale(self) -> Callable[[Tables, Desired], list[FlowSelector]]:
        if not self._params["conntrack_cleanup"]:
            return lambda _current, _wanted: []
        return lambda current, wanted: stale_flows(current, wanted, self._addresses)


def _node_addresses(params: dict[str, Any]) -> list[str]:
    given = params["node_addresses"]
    if given is not None:
        # What is no address, ProxyOptions refuses.
        spelled = [parse_address(text).text if family_of(text) else text for text in given]
        return [*spelled, *(address for address in _LOOPBACKS if address not in spelled)]
    return local_addresses() if params["state"] != "rendered" else _LOOPBACKS


def _tcp_be_liberal(params: dict[str, Any]) -> bool:
    given = params["tcp_be_liberal"]
    if given is not None:
        return bool(given)
    try:
        with open(_LIBERAL if params["state"] != "rendered" else os.devnull, encoding="ascii") as switch:
            return switch.read().strip() not in ("", "0")
    except OSError:
        return False


def _of_kind(kind: str, option: str, objects: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Objects given inline, where their kind goes without saying."""
    for index, item in enumerate(objects):
        if item.get("kind", kind) != kind:
            raise NetfilterError(f"{option}[{index}].kind: {shown(item['kind'])} is not {kind}")
    return [{**item, "kind": kind} for item in objects]


def _detect_cidrs(detect: dict[str, Any], name: str, node: Node | None) -> list[str]:
    cidrs = list(detect["cidrs"] or ())
    if detect["mode"] != "node_cidr" or cidrs:
        return cidrs
    if node is None or not node.pod_cidrs:
        raise NetfilterError(f"detect_local: mode node_cidr needs the pod CIDRs of node {name}, and "
                             f"{'its Node object has none' if node else 'the cluster has no such Node object'}; "
                             "give detect_local.cidrs")
    return list(node.pod_cidrs)


def _mask(text: str) -> int:
    try:
        return int(text, 0)
    except ValueError:
        raise NetfilterError(f"foreign_mark_mask: {shown(text)} is not a number such as 0xffff0000") from None
