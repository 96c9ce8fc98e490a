#!/usr/bin/python
# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The page of ``metal.nodenet.plan_report``, which is an action plugin."""

from __future__ import annotations

DOCUMENTATION = r"""
module: plan_report
short_description: One table of what would change on a whole fleet
version_added: 0.1.0
author:
  - the metal.nodenet authors (@metal-nodenet)
description:
  - Reads the results that the modules of this collection have recorded for each host (variable C(nodenet_results_dir)),
    puts hosts on which the same would change together, and shows a table of few lines.
  - With O(dest), writes the same as C(plan.json), which C(apply.yml) can hold a fleet to, and as C(plan.md), a page
    with one difference per group of hosts.
  - Runs on the controller only and needs no connection. Use it with C(run_once).
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
  - ansible.builtin.action_common_attributes.conn
  - ansible.builtin.action_common_attributes.flow
options:
  results_dir:
    description:
      - The directory with the recorded results, C(<host>/<module>.json).
    type: path
    required: true
  hosts:
    description:
      - The hosts to report on. One without results counts as failed.
    type: list
    elements: str
    required: true
  errors:
    description:
      - Host to what went wrong there.
    type: dict
    default: {}
  dest:
    description:
      - The directory for C(plan.json) and C(plan.md).
    type: path
  snapshot:
    description:
      - What is known of the input, C(sha256), C(source), C(path) and C(services), for the plan.
    type: dict
    default: {}
  details:
    description:
      - Name the chains and sets that differ in the table, too.
    type: bool
    default: false
attributes:
  check_mode:
    support: full
    details: It writes on the controller only, and does so in check mode, too, for that is what a plan is made in.
  diff_mode:
    support: none
  platform:
    platforms: posix
  action:
    support: full
  async:
    support: none
  become:
    support: none
  bypass_host_loop:
    support: none
  connection:
    support: none
  delegation:
    support: none
"""

EXAMPLES = r"""
- name: Report on all hosts
  metal.nodenet.plan_report:
    results_dir: /tmp/results
    hosts: "{{ ansible_play_hosts_all }}"
    dest: plans
  run_once: true
  register: report

- name: Fail if a node would change
  ansible.builtin.fail:
    msg: "{{ report.differing_hosts | metal.nodenet.compact_hosts }}"
  run_once: true
  when: report.differing_hosts | length > 0
"""

RETURN = r"""
table:
  description: The lines of the table. C(+) stands for added, C(~) for changed, C(-) for removed, and
    C(document) for what the node keeps to rebuild its state by itself.
  returned: always
  type: list
  elements: str
  sample:
    - nodes          module           changes
    - node[001-200]  kube_nat_chains  chains +4 ~2, rules +9
summary:
  description: One line about the whole fleet.
  returned: always
  type: str
  sample: '201 nodes: 200 to change, 0 as they should be, 1 failed'
groups:
  description: The groups of equal hosts, with counts and the names of the chains and sets that differ.
  returned: always
  type: list
  elements: dict
differing_hosts:
  description: The hosts on which anything would change.
  returned: always
  type: list
  elements: str
failed_hosts:
  description: The hosts for which there is no plan.
  returned: always
  type: list
  elements: str
plan_json:
  description: Where C(plan.json) is.
  returned: with O(dest)
  type: str
plan_md:
  description: Where C(plan.md) is.
  returned: with O(dest)
  type: str
"""
