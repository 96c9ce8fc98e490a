#!/usr/bin/python
# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ``metal.nodenet.floating_ip``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: floating_ip
short_description: Lead external addresses to pods, as Calico's Felix would
version_added: 0.1.0
author:
  - the metal.nodenet authors (@metal-nodenet)
description:
  - Keeps the chains C(cali-fip-dnat) and C(cali-fip-snat) of the table nat, in both families. Packets to an external
    address go to its pod, also from the node itself; a pod that talks to its own external address reaches itself.
  - Where one external address is mapped to several pods, or one pod has several, the lowest text wins, as for Felix,
    with a warning.
  - Flows of an address that is gone or leads elsewhere now are deleted after a successful load.
extends_documentation_fragment:
  - metal.nodenet.netfilter
  - metal.nodenet.calico
  - metal.nodenet.cluster
  - ansible.builtin.action_common_attributes
options:
  mappings:
    description:
      - The floating IPs of this node.
    type: list
    elements: dict
    suboptions:
      external:
        description: The external address.
        type: str
        required: true
      internal:
        description: The address of the pod, of the same family.
        type: str
        required: true
      endpoint:
        description: The name of the pod, for messages.
        type: str
  objects:
    description:
      - WorkloadEndpoint objects, or Pod objects with the annotation C(cni.projectcalico.org/floatingIPs), instead of
        O(mappings) or O(cluster), which may hold the same. Those on other nodes are not looked at.
    type: list
    elements: dict
  node_name:
    description:
      - The name of this node in O(objects) or O(cluster). By default the host name in lower case.
    type: str
  enabled:
    description:
      - Whether floating IPs are on. Without, the chains are empty, but for endpoints of OpenStack, as in Felix.
    type: bool
    default: true
  metadata_address:
    description:
      - Where OpenStack's metadata server is, as C(ADDRESS) or C(ADDRESS:PORT), port 8775 by default. IPv4 packets to
        169.254.169.254 port 80 go there.
    type: str
    default: ''
  dataplane:
    description:
      - With V(bpf), only the chain for pods that talk to themselves is there, as with Felix.
    type: str
    choices: [iptables, bpf]
    default: iptables
  conntrack_cleanup:
    description:
      - Delete flows of floating IPs that are gone or lead elsewhere now.
    type: bool
    default: true
"""

EXAMPLES = r"""
- name: Lead an external address to a pod
  metal.nodenet.floating_ip:
    mappings:
      - external: 198.51.100.10
        internal: 10.244.1.5
        endpoint: default/web-1

- name: The same from the annotations of the cluster's pods
  metal.nodenet.floating_ip:
    objects: "{{ (lookup('ansible.builtin.file', 'files/pods.json') | from_json)['items'] }}"
    node_name: "{{ inventory_hostname }}"

- name: The same from a file with all that the modules read
  metal.nodenet.floating_ip:
    cluster: files/cluster.json
    node_name: "{{ inventory_hostname }}"

- name: Remove everything again
  metal.nodenet.floating_ip:
    state: absent
"""

RETURN = r"""
diff:
  description: One entry per family and table that changes.
  returned: for O(state=present) and O(state=absent)
  type: list
  elements: dict
  sample:
    - before_header: ipv4 nat
      after_header: ipv4 nat
      before: "# cali-fip-dnat\n"
      after: "# cali-fip-dnat\n-A cali-fip-dnat -d 198.51.100.10/32 -j DNAT --to-destination 10.244.1.5\n"
plan:
  description: How many chains, rules, set members and flows are added, changed and removed.
  returned: for O(state=present) and O(state=absent)
  type: dict
  sample:
    chains: {added: 5, changed: 3, removed: 0}
    rules: {added: 8, changed: 0, removed: 0}
    set_members: {added: 0, changed: 0, removed: 0}
    flows: {added: 0, changed: 0, removed: 1}
stale_flows:
  description: Which flows the change leaves behind, by external address, and why.
  returned: for O(state=present) and O(state=absent)
  type: list
  elements: dict
  sample:
    - family: ipv4
      protocol: any
      destinations: [198.51.100.10]
      port: 0
      service: floating IP 198.51.100.10
      reason: it led to 10.244.1.5
      kept_endpoints: []
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
  sample: {read: 0.012, render: 0.001, plan: 0.001, difference: 0.0, flows: 0.0, apply: 0.02, verify: 0.011}
rendered:
  description: The desired state as text, by family and table.
  returned: for O(state=rendered)
  type: dict
  sample: {ipv4: {nat: "*nat\n:cali-OUTPUT - [0:0]\n…"}}
gathered:
  description: Our chains and entries as the node has them.
  returned: for O(state=gathered)
  type: dict
  sample: {ipv4: {nat: "*nat\n:cali-OUTPUT - [0:0]\n…"}}
rolled_back:
  description: Whether the old state is in force again.
  returned: when a write failed
  type: bool
applied_tables:
  description: The tables that had been written before the failure, and were undone.
  returned: when a write failed
  type: list
  elements: str
  sample: [ipv4 nat]
failed_command:
  description: The command that failed, its exit code and message, and the numbered lines of its input that are suspect.
  returned: when a tool refused to write
  type: dict
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.calico.build_floating import TABLES, build  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.calico.node import calico_arguments  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import cluster_arguments  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.entry import carry_out  # noqa: E402


def main() -> None:
    """Read the arguments and run."""
    mapping = {"external": {"type": "str", "required": True}, "internal": {"type": "str", "required": True},
               "endpoint": {"type": "str"}}
    carry_out(AnsibleModule(
        argument_spec={
            **calico_arguments(),
            **cluster_arguments(),
            "mappings": {"type": "list", "elements": "dict", "options": mapping},
            "objects": {"type": "list", "elements": "dict"},
            "node_name": {"type": "str"},
            "enabled": {"type": "bool", "default": True},
            "metadata_address": {"type": "str", "default": ""},
            "dataplane": {"type": "str", "choices": ["iptables", "bpf"], "default": "iptables"},
            "conntrack_cleanup": {"type": "bool", "default": True},
        },
        mutually_exclusive=[("mappings", "objects", "cluster")],
        required_if=[("state", "present", ("mappings", "objects", "cluster"), True),
                     ("state", "rendered", ("mappings", "objects", "cluster"), True)],
        supports_check_mode=True,
    ), "floating_ip", TABLES, build)


if __name__ == "__main__":
    main()
