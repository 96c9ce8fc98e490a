#!/usr/bin/python
# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ``metal.nodenet.kube_nat_chains``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: kube_nat_chains
short_description: Program a node's Kubernetes services into iptables, as kube-proxy would
version_added: 0.1.0
author:
  - the metal.nodenet authors (@metal-nodenet)
description:
  - Computes the chains that kube-proxy in iptables mode programs for a cluster's Services and EndpointSlices, in the
    tables nat, filter and mangle and in both families, and brings the node to that state.
  - On a node where the real kube-proxy has converged on the same objects, check mode reports no change.
  - Chains are ours by name (C(KUBE-SERVICES), C(KUBE-SVC-*) and so on). Chains, rules and policies of others are never
    written. Our jumps stand at the head of the built-in chains, in kube-proxy's order; only jumps to C(cali-) chains
    may stand before them.
  - Both families are read and planned before anything is written. A change is one C(iptables-restore) per family,
    which no packet sees half of. On the nft backend a change of more than 500 chains is cut - new chains are prepared
    where nothing leads to them, chains in use change one service port after the other, and what goes is removed at the
    end. Each packet finds the old or the new rules of its service.
  - UDP flows that a change leaves behind (an endpoint or a service that went, a service that got its first endpoint)
    are deleted after a successful load.
  - For an endpoint with several addresses the first one is used, as Kubernetes defines it.
  - Source ranges of a Service are enforced on its load-balancer addresses only, not on its node ports.
extends_documentation_fragment:
  - metal.nodenet.netfilter
  - metal.nodenet.cluster
  - ansible.builtin.action_common_attributes
options:
  services:
    description:
      - Service objects, instead of O(cluster).
    type: list
    elements: dict
  endpoint_slices:
    description:
      - EndpointSlice objects, together with O(services).
    type: list
    elements: dict
  node_name:
    description:
      - The name of this node in the cluster, which decides which endpoints are local.
      - By default the host name in lower case, as kube-proxy does.
    type: str
  node_labels:
    description:
      - The labels of this node; the zone for topology hints is read from them.
      - By default those of its Node object in O(cluster).
    type: dict
  node_addresses:
    description:
      - The addresses on the node's interfaces, from which O(nodeport_addresses) chooses. By default those that it has.
    type: list
    elements: str
  layout:
    description:
      - The kube-proxy version whose rules to give.
    type: str
    choices: ['1.24', '1.30', '1.36']
    default: '1.36'
  detect_local:
    description:
      - How traffic of pods is told from other traffic. Without it nothing but O(masquerade_all) masquerades traffic to
        cluster IPs.
    type: dict
    suboptions:
      mode:
        description:
          - V(cluster_cidr) and V(node_cidr) look at the source address, V(bridge_interface) and V(interface_prefix) at
            the interface that a packet comes from.
        type: str
        choices: [cluster_cidr, node_cidr, bridge_interface, interface_prefix]
        default: cluster_cidr
      cidrs:
        description:
          - The CIDRs for the two CIDR modes; the first of each family counts.
          - For V(node_cidr) the C(podCIDRs) of the Node object by default.
        type: list
        elements: str
        default: []
      interface:
        description:
          - The name of the bridge, or the prefix of the interfaces, without C(+).
        type: str
  masquerade_all:
    description:
      - Masquerade all traffic to cluster IPs.
    type: bool
    default: false
  masquerade_bit:
    description:
      - The bit of the packet mark that asks for masquerading, 0 to 31.
    type: int
    default: 14
  foreign_mark_mask:
    description:
      - The bits of the packet mark that other agents use, for example V(0xffff0000) for Calico. A O(masquerade_bit)
        inside of it is refused.
    type: str
    default: '0x0'
  random_fully:
    description:
      - Whether masquerading picks source ports at random. V(auto) and V(enabled) do where the node's iptables knows
        how.
    type: str
    choices: [auto, enabled, disabled]
    default: auto
  nodeport_addresses:
    description:
      - CIDRs of the node's addresses on which node ports answer. Empty means all.
      - The single word V(primary) means the addresses of the Node object (layout 1.36).
    type: list
    elements: str
    default: []
  localhost_nodeports:
    description:
      - Whether node ports answer on IPv4 loopback addresses. Layout 1.24 has no switch for that and always does.
    type: bool
    default: true
  tcp_be_liberal:
    description:
      - Whether connection tracking is liberal about TCP windows; the rule that drops INVALID packets is left out then,
        from layout 1.30 on. By default the node's C(net.netfilter.nf_conntrack_tcp_be_liberal) tells.
    type: bool
  provide_mark_drop:
    description:
      - In layout 1.24, unwanted packets are marked for a rule that the kubelet of that time provides. Set this on a
        node without such a kubelet.
    type: bool
    default: false
  allowed_external_ips:
    description:
      - CIDRs to which external IPs of Services are limited. Others get no rules, and a warning.
      - By default there is no limit.
    type: list
    elements: str
  conntrack_cleanup:
    description:
      - Delete UDP flows that the change leaves behind.
    type: bool
    default: true
  allow_empty:
    description:
      - Accept a cluster without a single Service. It is refused otherwise, for it is most often a failed read, and
        applying it would remove every service from the node.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: See what would change on this node
  metal.nodenet.kube_nat_chains:
    cluster: files/cluster.json
    node_name: "{{ inventory_hostname }}"
    detect_local:
      cidrs: [10.244.0.0/16, 'fd00:10:244::/48']
  check_mode: true
  diff: true

- name: Program the node's services
  metal.nodenet.kube_nat_chains:
    cluster: files/cluster.json
    node_name: "{{ inventory_hostname }}"
    detect_local:
      cidrs: [10.244.0.0/16, 'fd00:10:244::/48']

- name: Audit a node on which kube-proxy 1.30 runs; fail on drift
  metal.nodenet.kube_nat_chains:
    cluster: files/cluster.json
    node_name: "{{ inventory_hostname }}"
    layout: '1.30'
    detect_local:
      mode: node_cidr
  check_mode: true
  register: audit
  failed_when: audit is failed or audit is changed

- name: Render the rules on the controller, without a node
  metal.nodenet.kube_nat_chains:
    state: rendered
    cluster: files/cluster.json
    node_name: "{{ inventory_hostname }}"
  delegate_to: localhost

- name: Remove everything again
  metal.nodenet.kube_nat_chains:
    state: absent
"""

RETURN = r"""
diff:
  description: One entry per family and table that changes. A heading names the service behind a hashed chain.
  returned: for O(state=present) and O(state=absent)
  type: list
  elements: dict
  sample:
    - before_header: ipv4 nat
      after_header: ipv4 nat
      before: "# KUBE-SVC-4HWD6WD2BXF6N7ZC: default/web:p80 (tcp)\n…"
      after: "# KUBE-SVC-4HWD6WD2BXF6N7ZC: default/web:p80 (tcp)\n…"
plan:
  description:
    - How many chains, rules and flows are added, changed and removed. Flows are those that are stale right now.
  returned: for O(state=present) and O(state=absent)
  type: dict
  sample:
    chains: {added: 4, changed: 2, removed: 0}
    rules: {added: 9, changed: 1, removed: 0}
    set_members: {added: 0, changed: 0, removed: 0}
    flows: {added: 0, changed: 0, removed: 3}
stale_flows:
  description:
    - Which UDP flows the change leaves behind, by frontend, and why. Flows that one of C(kept_endpoints) answers stay.
  returned: for O(state=present) and O(state=absent)
  type: list
  elements: dict
  sample:
    - family: ipv4
      protocol: udp
      destinations: [10.96.0.10]
      port: 53
      service: kube-system/dns:dns
      reason: 'endpoints left: 10.244.1.5 port 5353'
      kept_endpoints: ['10.244.2.7:5353']
plan_sha256:
  description:
    - Stands for the whole plan, with what was there before. It is the same on nodes that would change in the same way,
      and empty where nothing changes. O(expect_plan) takes it.
  returned: for O(state=present) and O(state=absent)
  type: str
remembered:
  description: Whether what the node remembers has changed.
  returned: with O(remember)
  type: bool
timings:
  description: Seconds per phase.
  returned: when the node was read
  type: dict
  sample: {read: 0.012, render: 0.003, plan: 0.002, difference: 0.001, flows: 0.0, apply: 0.02, verify: 0.011}
rendered:
  description: The desired state as C(iptables-save) text, by family and table.
  returned: for O(state=rendered)
  type: dict
  sample: {ipv4: {nat: "*nat\n:KUBE-MARK-MASQ - [0:0]\n…"}}
gathered:
  description: Our chains and jumps as the node has them, by family and table.
  returned: for O(state=gathered)
  type: dict
  sample: {ipv4: {nat: "*nat\n:KUBE-MARK-MASQ - [0:0]\n…"}}
rolled_back:
  description: Whether the old state is in force again.
  returned: when a write failed
  type: bool
applied_tables:
  description: The tables that had been written before the failure, and were undone.
  returned: when a write failed
  type: list
  elements: str
  sample: [ipv4 filter]
failed_command:
  description: The command that failed, its exit code and message, and the numbered lines of its input that are suspect.
  returned: when a tool refused to write
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import cluster_arguments  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.entry import carry_out  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.kube.nat import build, facts  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.kube.ownership import TABLES  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.states import common_arguments  # noqa: E402


def main() -> None:
    """Read the arguments and run."""
    detect_local = {
        "mode": {"type": "str", "choices": ["cluster_cidr", "node_cidr", "bridge_interface", "interface_prefix"],
                 "default": "cluster_cidr"},
        "cidrs": {"type": "list", "elements": "str", "default": []},
        "interface": {"type": "str"},
    }
    module = AnsibleModule(
        argument_spec={
            **common_arguments(),
            **cluster_arguments(),
            "services": {"type": "list", "elements": "dict"},
            "endpoint_slices": {"type": "list", "elements": "dict"},
            "node_name": {"type": "str"},
            "node_labels": {"type": "dict"},
            "node_addresses": {"type": "list", "elements": "str"},
            "layout": {"type": "str", "choices": ["1.24", "1.30", "1.36"], "default": "1.36"},
            "detect_local": {"type": "dict", "options": detect_local},
            "masquerade_all": {"type": "bool", "default": False},
            "masquerade_bit": {"type": "int", "default": 14},
            "foreign_mark_mask": {"type": "str", "default": "0x0"},
            "random_fully": {"type": "str", "choices": ["auto", "enabled", "disabled"], "default": "auto"},
            "nodeport_addresses": {"type": "list", "elements": "str", "default": []},
            "localhost_nodeports": {"type": "bool", "default": True},
            "tcp_be_liberal": {"type": "bool"},
            "provide_mark_drop": {"type": "bool", "default": False},
            "allowed_external_ips": {"type": "list", "elements": "str"},
            "conntrack_cleanup": {"type": "bool", "default": True},
            "allow_empty": {"type": "bool", "default": False},
        },
        mutually_exclusive=[("cluster", "services"), ("cluster", "endpoint_slices")],
        required_by={"endpoint_slices": ["services"]},
        required_if=[("state", "present", ("cluster", "services"), True),
                     ("state", "rendered", ("cluster", "services"), True)],
        supports_check_mode=True,
    )
    carry_out(module, "kube_nat_chains", TABLES, build, facts)


if __name__ == "__main__":
    main()
