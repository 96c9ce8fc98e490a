# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between the versions of kube-proxy, as data.

A layout is named after the version whose rules it gives. A version between two layouts has some of either:
``docs/compatibility.md``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.kube import names

HEADLESS_LABEL = "service.kubernetes.io/headless"
PROXY_NAME_LABEL = "service.kubernetes.io/service-proxy-name"


class JumpRule(NamedTuple):
    """A jump of one table: the built-in chain it stands in and the rule, as ``iptables-save`` prints it."""

    parent: str
    target: str
    rule: str


@dataclass(frozen=True)
class Layout:
    """One version's way of doing things."""

    name: str
    #: Objects with one of these labels, whatever its value, are not looked at.
    service_exclusions: frozenset[str]
    slice_exclusions: frozenset[str]
    #: ``externalTrafficPolicy: Local`` counts for a Service of type ClusterIP that has external IPs.
    external_local_on_cluster_ip: bool
    #: A load balancer address of ``ipMode: Proxy`` gets no rules.
    lb_ip_mode: bool
    #: A source range of length 0 makes the load balancer open; otherwise it is one more rule.
    zero_range_opens: bool
    #: The text of an endpoint, which goes into its chain name, is the slice's own; otherwise the canonical one.
    endpoint_text_as_given: bool
    #: Where an endpoint is in several slices: the one that is local counts; otherwise the one that is not terminating.
    duplicate_prefers_local: bool
    #: Annotations that switch hints on, the first one present decides. None: hints need no annotation.
    hint_annotations: tuple[str, ...] | None
    #: The values that switch them on. None: every value but ``disabled`` in its two spellings.
    hint_values: frozenset[str] | None
    #: Hints may name nodes too.
    node_hints: bool
    #: Terminating endpoints that still serve are used when there is nothing else.
    terminating_fallback: bool
    #: Unwanted traffic is marked in nat for the kubelet's rule to drop; otherwise it is dropped in filter.
    marks_drops: bool
    #: KUBE-FIREWALL is kube-proxy's too; otherwise the kubelet alone has it.
    owns_firewall: bool
    #: Node ports on loopback addresses can be switched off; the node-port jump leaves out those that are not served.
    excludes_loopback: bool
    #: The source-range rule for the node itself looks at the Node's addresses; otherwise at the unspecified address.
    knows_node_ips: bool
    #: The INVALID rule goes where conntrack is liberal about TCP.
    liberal_drops_rule: bool
    #: No node-port rules at all where ``nodeport_addresses`` matches no address of the node.
    nodeports_need_address: bool
    #: ``nodeport_addresses`` may be the word ``primary``.
    primary_word: bool
    #: Table to jumps in order, the topmost first per built-in chain.
    jumps: dict[str, tuple[JumpRule, ...]]


def _jump(parent: str, target: str, match: str) -> JumpRule:
    return JumpRule(parent, target, f"{match} -j {target}" if match else f"-j {target}")


def _commented(text: str) -> str:
    return f'-m comment --comment "{text}"'


def _new(text: str) -> str:
    return f"-m conntrack --ctstate NEW {_commented(text)}"


_PORTALS = "kubernetes service portals"
_EXTERNAL = _new("kubernetes externally-visible service portals")

_NAT_JUMPS = (
    _jump("PREROUTING", names.SERVICES, _commented(_PORTALS)),
    _jump("OUTPUT", names.SERVICES, _commented(_PORTALS)),
    _jump("POSTROUTING", names.POSTROUTING, _commented("kubernetes postrouting rules")),
)

_FILTER_JUMPS = (
    _jump("INPUT", names.NODEPORTS, _commented("kubernetes health check service ports")),
    _jump("INPUT", names.EXTERNAL_SERVICES, _EXTERNAL),
    _jump("FORWARD", names.FORWARD, _commented("kubernetes forwarding rules")),
    _jump("FORWARD", names.SERVICES, _new(_PORTALS)),
    _jump("FORWARD", names.EXTERNAL_SERVICES, _EXTERNAL),
    _jump("OUTPUT", names.SERVICES, _new(_PORTALS)),
)

#: KUBE-FIREWALL's, of kube-proxy from 1.30 on and of the kubelet before.
FIREWALL_JUMPS = (_jump("INPUT", names.FIREWALL, ""), _jump("OUTPUT", names.FIREWALL, ""))

_FIREWALL_FIRST = tuple(
    _jump(parent, names.PROXY_FIREWALL, _new("kubernetes load balancer firewall"))
    for parent in ("INPUT", "FORWARD", "OUTPUT")
)

_BOTH_LABELS = frozenset((HEADLESS_LABEL, PROXY_NAME_LABEL))
_AWARE_HINTS = "service.kubernetes.io/topology-aware-hints"

_V1_24 = Layout(
    name="1.24",
    service_exclusions=_BOTH_LABELS,
    slice_exclusions=_BOTH_LABELS,
    external_local_on_cluster_ip=False,
    lb_ip_mode=False,
    zero_range_opens=False,
    endpoint_text_as_given=True,
    duplicate_prefers_local=True,
    hint_annotations=(_AWARE_HINTS,),
    hint_values=frozenset(("Auto", "auto")),
    node_hints=False,
    terminating_fallback=False,
    marks_drops=True,
    owns_firewall=False,
    excludes_loopback=False,
    knows_node_ips=False,
    liberal_drops_rule=False,
    nodeports_need_address=True,
    primary_word=False,
    jumps={"filter": _FILTER_JUMPS, "nat": _NAT_JUMPS},
)

_V1_30 = Layout(
    name="1.30",
    service_exclusions=_BOTH_LABELS,
    slice_exclusions=_BOTH_LABELS,
    external_local_on_cluster_ip=True,
    lb_ip_mode=True,
    zero_range_opens=False,
    endpoint_text_as_given=True,
    duplicate_prefers_local=True,
    hint_annotations=(_AWARE_HINTS, "service.kubernetes.io/topology-mode"),
    hint_values=None,
    node_hints=False,
    terminating_fallback=True,
    marks_drops=False,
    owns_firewall=True,
    excludes_loopback=True,
    knows_node_ips=True,
    liberal_drops_rule=True,
    nodeports_need_address=False,
    primary_word=False,
    jumps={"filter": FIREWALL_JUMPS + _FIREWALL_FIRST + _FILTER_JUMPS, "nat": _NAT_JUMPS},
)

_V1_36 = Layout(
    name="1.36",
    service_exclusions=frozenset((PROXY_NAME_LABEL,)),
    slice_exclusions=frozenset((HEADLESS_LABEL,)),
    external_local_on_cluster_ip=True,
    lb_ip_mode=True,
    zero_range_opens=True,
    endpoint_text_as_given=False,
    duplicate_prefers_local=False,
    hint_annotations=None,
    hint_values=None,
    node_hints=True,
    terminating_fallback=True,
    marks_drops=False,
    owns_firewall=True,
    excludes_loopback=True,
    knows_node_ips=True,
    liberal_drops_rule=True,
    nodeports_need_address=False,
    primary_word=True,
    jumps=_V1_30.jumps,
)

#: By name, the oldest first.
LAYOUTS: dict[str, Layout] = {layout.name: layout for layout in (_V1_24, _V1_30, _V1_36)}
