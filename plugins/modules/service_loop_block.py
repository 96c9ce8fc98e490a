#!/usr/bin/python
# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ``metal.nodenet.service_loop_block``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: service_loop_block
short_description: Stop packets to unused service addresses from going in circles, as Calico's Felix would
version_added: 0.1.0
author:
  - the metal.nodenet authors (@metal-nodenet)
description:
  - Keeps the chain C(cali-cidr-block) of the table filter, in both families, as the last rule of C(cali-FORWARD). A
    packet to a service address that nobody serves would go back and forth between the node and its gateway until its
    time to live ends; here it is dropped or rejected.
  - A packet to an address that is served has been translated before it gets there. Addresses that are served in another
    way than by rules of this node, such as by another load balancer, must not be in the ranges.
extends_documentation_fragment:
  - metal.nodenet.netfilter
  - metal.nodenet.calico
  - metal.nodenet.cluster
  - ansible.builtin.action_common_attributes
options:
  cidrs:
    description:
      - CIDRs and addresses of services, of both families.
    type: list
    elements: str
  bgp_configuration:
    description:
      - A BGPConfiguration object, or a list or List of objects, instead of O(cidrs). The one that is called C(default)
        counts. O(cluster) may hold the same.
    type: raw
  action:
    description:
      - What happens to the packets. V(disabled) leaves the chain empty.
    type: str
    choices: [drop, reject, disabled]
    default: drop
  pools:
    description:
      - CIDRs or IPPool objects that must not be blocked, besides the IPPool objects of O(cluster). An overlap
        is a warning, or an error with O(strict).
    type: list
    elements: raw
    default: []
  strict:
    description:
      - Refuse a range that overlaps one of the O(pools) or holds an address of the node.
    type: bool
    default: false
"""

EXAMPLES = r"""
- name: Drop packets to service addresses that nobody serves
  metal.nodenet.service_loop_block:
    cidrs: [10.96.0.0/12, 203.0.113.0/24, 'fd00:10:96::/112']

- name: Reject them, for the ranges that the cluster advertises
  metal.nodenet.service_loop_block:
    bgp_configuration: "{{ lookup('ansible.builtin.file', 'files/bgpconfigurations.json') | from_json }}"
    action: reject

- name: The same from a file with all that the modules read
  metal.nodenet.service_loop_block:
    cluster: files/cluster.json
    action: reject

- name: Remove everything again
  metal.nodenet.service_loop_block:
    state: absent
"""

RETURN = r"""
diff:
  description: One entry per family and table that changes.
  returned: for O(state=present) and O(state=absent)
  type: list
  elements: dict
  sample:
    - before_header: ipv4 filter
      after_header: ipv4 filter
      before: "# cali-cidr-block\n"
      after: "# cali-cidr-block\n-A cali-cidr-block -d 10.96.0.0/12 -j DROP\n"
plan:
  description: How many chains, rules, set members and flows are added, changed and removed.
  returned: for O(state=present) and O(state=absent)
  type: dict
  sample:
    chains: {added: 2, changed: 1, removed: 0}
    rules: {added: 4, changed: 0, removed: 0}
    set_members: {added: 0, changed: 0, removed: 0}
    flows: {added: 0, changed: 0, removed: 0}
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
  sample: {ipv4: {filter: "*filter\n:cali-FORWARD - [0:0]\n…"}}
gathered:
  description: Our chain and entry as the node has them.
  returned: for O(state=gathered)
  type: dict
  sample: {ipv4: {filter: "*filter\n:cali-FORWARD - [0:0]\n…"}}
stale_flows:
  description: Always empty, for no flow depends on what this module writes.
  returned: for O(state=present) and O(state=absent)
  type: list
  elements: dict
  sample: []
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
from ansible_collections.metal.nodenet.plugins.module_utils.calico.build_loops import TABLES, build  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.calico.node import calico_arguments  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import cluster_arguments  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.entry import carry_out  # noqa: E402


def main() -> None:
    """Read the arguments and run."""
    carry_out(AnsibleModule(
        argument_spec={
            **calico_arguments(),
            **cluster_arguments(),
            "cidrs": {"type": "list", "elements": "str"},
            "bgp_configuration": {"type": "raw"},
            "action": {"type": "str", "choices": ["drop", "reject", "disabled"], "default": "drop"},
            "pools": {"type": "list", "elements": "raw", "default": []},
            "strict": {"type": "bool", "default": False},
        },
        mutually_exclusive=[("cidrs", "bgp_configuration", "cluster")],
        required_if=[("state", "present", ("cidrs", "bgp_configuration", "cluster"), True),
                     ("state", "rendered", ("cidrs", "bgp_configuration", "cluster"), True)],
        supports_check_mode=True,
    ), "service_loop_block", TABLES, build)


if __name__ == "__main__":
    main()
