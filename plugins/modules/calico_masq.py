#!/usr/bin/python
# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ``metal.nodenet.calico_masq``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: calico_masq
short_description: Masquerade what pods send to the outside, as Calico's Felix would
version_added: 0.1.0
author:
  - the metal.nodenet authors (@metal-nodenet)
description:
  - Keeps the two sets of IP pools and the chain C(cali-nat-outgoing) of the table nat, in both families. A packet is
    masqueraded whose source is in a pool that wants it and whose destination is in no pool at all.
  - Disabled pools count like any other, as they do for Felix.
  - An IPv4 O(nat_outgoing_address) is not given to IPv6, which masquerades instead; Felix fails there.
extends_documentation_fragment:
  - metal.nodenet.netfilter
  - metal.nodenet.calico
  - metal.nodenet.cluster
  - ansible.builtin.action_common_attributes
options:
  pools:
    description:
      - IPPool objects as C(kubectl get ippools -o json) gives them (a List of them, too), or dictionaries with C(cidr)
        and C(masquerade).
      - All pools of the cluster, or the destinations that are not masqueraded are incomplete.
      - Instead of O(cluster), whose IPPool objects count otherwise.
    type: list
    elements: dict
  allow_empty:
    description:
      - Accept an empty list of O(pools), or a O(cluster) without any. It is refused otherwise, for it is
        most often a failed read.
    type: bool
    default: false
  nat_outgoing_address:
    description:
      - An IPv4 address that pods are given as their source, instead of that of the interface.
    type: str
    default: ''
  nat_port_range:
    description:
      - The source ports for TCP and UDP, such as V(32768:65535).
    type: str
    default: ''
  interface_filter:
    description:
      - Masquerade only what leaves by this interface; a C(+) at the end stands for the rest of the name.
    type: str
    default: ''
  exclusions:
    description:
      - What is not masqueraded; V(pools_and_hosts) adds the O(hosts), from Calico 3.31 on.
    type: str
    choices: [pools, pools_and_hosts]
    default: pools
  hosts:
    description:
      - Addresses, CIDRs or Node objects of the cluster's hosts, for O(exclusions=pools_and_hosts).
      - By default the Node objects of O(cluster).
    type: list
    elements: raw
    default: []
  dataplane:
    description:
      - With V(bpf), packets to masquerade are told by their mark, and there are no sets.
    type: str
    choices: [iptables, bpf]
    default: iptables
  max_ipset_size:
    description:
      - C(maxelem) of the sets.
    type: int
    default: 1048576
"""

EXAMPLES = r"""
- name: Masquerade what the pods of one pool send to the outside
  metal.nodenet.calico_masq:
    pools:
      - cidr: 10.244.0.0/16
        masquerade: true
      - cidr: 10.245.0.0/16
        masquerade: false

- name: The same from the cluster's own pools, with a port range
  metal.nodenet.calico_masq:
    pools: "{{ (lookup('ansible.builtin.file', 'files/ippools.json') | from_json)['items'] }}"
    nat_port_range: '32768:65535'

- name: The same from a file with all that the modules read
  metal.nodenet.calico_masq:
    cluster: files/cluster.json
    nat_port_range: '32768:65535'

- name: Audit a node on which Felix 3.30 runs; fail on drift
  metal.nodenet.calico_masq:
    calico_version: '3.30'
    pools: "{{ (lookup('ansible.builtin.file', 'files/ippools.json') | from_json)['items'] }}"
  check_mode: true
  register: audit
  failed_when: audit is failed or audit is changed

- name: Remove everything again
  metal.nodenet.calico_masq:
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
      before: "# set cali40masq-ipam-pools (only the members that differ)\n"
      after: "# set cali40masq-ipam-pools (only the members that differ)\nadd cali40masq-ipam-pools 10.246.0.0/16\n"
plan:
  description: How many chains, rules, set members and flows are added, changed and removed.
  returned: for O(state=present) and O(state=absent)
  type: dict
  sample:
    chains: {added: 2, changed: 1, removed: 0}
    rules: {added: 3, changed: 0, removed: 0}
    set_members: {added: 3, changed: 0, removed: 0}
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
  sample: {ipv4: {nat: "*nat\n:cali-POSTROUTING - [0:0]\n…"}, sets: {cali40masq-ipam-pools: "create …"}}
gathered:
  description: Our chains, entries and sets as the node has them.
  returned: for O(state=gathered)
  type: dict
  sample: {ipv4: {nat: "*nat\n:cali-POSTROUTING - [0:0]\n…"}, sets: {cali40masq-ipam-pools: "create …"}}
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
from ansible_collections.metal.nodenet.plugins.module_utils.calico.build_masq import TABLES, build  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.calico.node import calico_arguments  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import cluster_arguments  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.entry import carry_out  # noqa: E402


def main() -> None:
    """Read the arguments and run."""
    carry_out(AnsibleModule(
        argument_spec={
            **calico_arguments(),
            **cluster_arguments(),
            "pools": {"type": "list", "elements": "dict"},
            "allow_empty": {"type": "bool", "default": False},
            "nat_outgoing_address": {"type": "str", "default": ""},
            "nat_port_range": {"type": "str", "default": ""},
            "interface_filter": {"type": "str", "default": ""},
            "exclusions": {"type": "str", "choices": ["pools", "pools_and_hosts"], "default": "pools"},
            "hosts": {"type": "list", "elements": "raw", "default": []},
            "dataplane": {"type": "str", "choices": ["iptables", "bpf"], "default": "iptables"},
            "max_ipset_size": {"type": "int", "default": 1048576},
        },
        mutually_exclusive=[("pools", "cluster")],
        required_if=[("state", "present", ("pools", "cluster"), True),
                     ("state", "rendered", ("pools", "cluster"), True)],
        supports_check_mode=True,
    ), "calico_masq", TABLES, build)


if __name__ == "__main__":
    main()
