#!/usr/bin/python
# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ``metal.nodenet.calico_host_ips``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: calico_host_ips
short_description: Keep the set of the node's own addresses, as Calico's Felix would
version_added: 0.1.0
author:
  - the metal.nodenet authors (@metal-nodenet)
description:
  - Keeps the sets C(cali40this-host) and C(cali60this-host) of the addresses that the node takes for its own, read from
    its kernel, without those of pods' interfaces.
  - With O(forward_check) it also keeps the chain C(cali-forward-check) of the table filter and, where it is not there
    yet, the chain C(cali-set-endpoint-mark) that it leads to, for nodes with kube-proxy in IPVS mode. Nothing jumps to
    C(cali-forward-check) until Felix does, for without Felix's other chains it would drop the traffic of all pods.
extends_documentation_fragment:
  - metal.nodenet.netfilter
  - metal.nodenet.calico
  - ansible.builtin.action_common_attributes
options:
  workload_prefixes:
    description:
      - What the names of pods' interfaces begin with. Their addresses do not count.
    type: list
    elements: str
    default: [cali]
  exclude_interfaces:
    description:
      - Names of other interfaces that do not count, or regular expressions between slashes.
    type: list
    elements: str
    default: [kube-ipvs0]
  addresses:
    description:
      - Dictionaries with C(address) and C(interface), instead of what the node's kernel says. Needed for
        O(state=rendered), which reads nothing from a node.
    type: list
    elements: dict
    suboptions:
      address:
        description: An address of the node.
        type: str
        required: true
      interface:
        description: The interface that has it.
        type: str
        required: true
  forward_check:
    description:
      - Keep the chains of IPVS mode, too. Otherwise they are left alone, for they may be Felix's; O(state=absent)
        removes them in any case.
    type: bool
    default: false
  nodeport_ranges:
    description:
      - Ports and ranges of node ports, for O(forward_check).
    type: list
    elements: str
    default: ['30000:32767']
  max_ipset_size:
    description:
      - C(maxelem) of the sets.
    type: int
    default: 1048576
"""

EXAMPLES = r"""
- name: Keep the set of the node's own addresses
  metal.nodenet.calico_host_ips:

- name: With the chains of IPVS mode
  metal.nodenet.calico_host_ips:
    forward_check: true
    nodeport_ranges: ['30000:32767', '40080']

- name: Remove everything again
  metal.nodenet.calico_host_ips:
    state: absent
"""

RETURN = r"""
diff:
  description: One entry per family and table that changes, and one for the sets of a family.
  returned: for O(state=present) and O(state=absent)
  type: list
  elements: dict
  sample:
    - before_header: ipv4 sets
      after_header: ipv4 sets
      before: "# set cali40this-host (only the members that differ)\n"
      after: "# set cali40this-host (only the members that differ)\nadd cali40this-host 192.0.2.12\n"
plan:
  description: How many chains, rules, set members and flows are added, changed and removed.
  returned: for O(state=present) and O(state=absent)
  type: dict
  sample:
    chains: {added: 0, changed: 0, removed: 0}
    rules: {added: 0, changed: 0, removed: 0}
    set_members: {added: 1, changed: 0, removed: 0}
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
  description: The desired state as text, by family and table, and the sets by name.
  returned: for O(state=rendered)
  type: dict
  sample: {ipv4: {filter: "*filter\nCOMMIT\n"}, sets: {cali40this-host: "create …"}}
gathered:
  description: Our chains and sets as the node has them.
  returned: for O(state=gathered)
  type: dict
  sample: {ipv4: {}, sets: {cali40this-host: "create …"}}
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
from ansible_collections.metal.nodenet.plugins.module_utils.calico.build_hosts import TABLES, build  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.calico.node import calico_arguments  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.entry import carry_out  # noqa: E402


def main() -> None:
    """Read the arguments and run."""
    address = {"address": {"type": "str", "required": True}, "interface": {"type": "str", "required": True}}
    carry_out(AnsibleModule(
        argument_spec={
            **calico_arguments(),
            "workload_prefixes": {"type": "list", "elements": "str", "default": ["cali"]},
            "exclude_interfaces": {"type": "list", "elements": "str", "default": ["kube-ipvs0"]},
            "addresses": {"type": "list", "elements": "dict", "options": address},
            "forward_check": {"type": "bool", "default": False},
            "nodeport_ranges": {"type": "list", "elements": "str", "default": ["30000:32767"]},
            "max_ipset_size": {"type": "int", "default": 1048576},
        },
        supports_check_mode=True,
    ), "calico_host_ips", TABLES, build)


if __name__ == "__main__":
    main()
