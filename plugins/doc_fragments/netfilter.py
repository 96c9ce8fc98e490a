# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What all modules of the collection document in the same words."""

from __future__ import annotations


class ModuleDocFragment:
    """Options of ``module_utils/states.py``."""

    DOCUMENTATION = r"""
options:
  state:
    description:
      - V(present) brings the node to the desired state. What is ours by name and not desired goes.
      - V(absent) removes everything of ours from every table of both families.
      - V(rendered) returns the desired state as text in RV(ignore:rendered). It touches no node and needs neither root
        nor iptables.
      - V(gathered) returns what the node has of ours in RV(ignore:gathered).
    type: str
    choices: [present, absent, rendered, gathered]
    default: present
  families:
    description:
      - The address families to manage.
      - By default those that the node has. IPv6 is left out where the kernel has it switched off, and, with a warning,
        where there is no C(ip6tables).
    type: list
    elements: str
    choices: [ipv4, ipv6]
  backend:
    description:
      - The iptables backend.
      - V(auto) uses the one that already carries C(KUBE-) or C(cali-) chains, told per family; where there are none,
        the one that the plain command name stands for.
      - A node with such chains in both backends is refused with a message that says what was seen. O(state=absent)
        cleans both.
    type: str
    choices: [auto, nft, legacy]
    default: auto
  lock_timeout:
    description:
      - How many seconds to wait for another program to release the xtables lock.
    type: int
    default: 10
  takeover:
    description:
      - Write even though another program that manages the same state is running on this node.
      - Check mode does not need it.
    type: bool
    default: false
  verify:
    description:
      - Read the kernel again after writing, and restore the old state if it did not become the desired one.
    type: bool
    default: true
  diff_limit:
    description:
      - How many lines of difference to show of a table. Beyond, its entry in RV(ignore:diff) is a summary with counts,
        so that the first load of a large cluster does not return megabytes. V(0) shows everything.
    type: int
    default: 5000
  state_dir:
    description:
      - Where the node keeps what it remembers. It is made when something is to be remembered or guarded, and
        with the first cluster file that is sent to the node.
    type: path
    default: /var/lib/nodenet
  remember:
    description:
      - After a successful run with O(state=present), keep its options and its input in O(state_dir), so that the node
        can rebuild its state by itself; with O(state=absent) forget them. That the node remembers something else than
        before is a change.
    type: bool
    default: false
  guard:
    description:
      - The run id of the guard that M(metal.nodenet.commit_guard) has armed. The run writes only as long as that is
        armed, and what it asks the node to remember waits for the confirmation.
      - Whether it is given or not, nothing is written while the guard of another run is armed.
    type: str
  expect_plan:
    description:
      - The RV(ignore:plan_sha256) of an earlier run in check mode, empty if nothing was to change. If the run would
        change anything else, it fails before anything is touched, in check mode too. A run that has nothing to change
        never fails for it.
    type: str
attributes:
  check_mode:
    support: full
    details: No command that writes is run. The result is the same as that of the real run.
  diff_mode:
    support: full
    details: One entry per family and table that changes, with only what changes, and one for the sets of a family.
  platform:
    platforms: linux
requirements:
  - Python 3.9 on the node, and nothing but its standard library
  - C(iptables) on the node, 1.8.7 or later, either backend
  - root, or the capabilities NET_ADMIN and NET_RAW
"""
