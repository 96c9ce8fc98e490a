# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the modules for Calico's state document in the same words."""

from __future__ import annotations


class ModuleDocFragment:
    """Options of ``module_utils/calico/node.py``."""

    DOCUMENTATION = r"""
options:
  calico_version:
    description:
      - The Calico version whose state to give, such as V(3.33) or V(3.31.5). Without a patch, the newest one is meant.
      - Names of sets, the place of jumps and marks differ between versions.
    type: str
    default: '3.33'
  rule_hashes:
    description:
      - Write the comments by which Felix knows its own rules (C(cali:) and a hash), so that a Felix that starts later
        finds them. They are no difference to a rule without.
    type: bool
    default: true
  insert_mode:
    description:
      - Where the jumps to C(cali-) chains stand in the built-in chains. V(insert) puts them to the head, before any
        rule of others; V(append) to the end, where they then may stay wherever they are.
      - The jump from C(POSTROUTING) in the table nat always is the last rule, as Felix has it since 3.28.2.
    type: str
    choices: [insert, append]
    default: insert
notes:
  - The chains C(cali-PREROUTING), C(cali-OUTPUT), C(cali-POSTROUTING) and C(cali-FORWARD) are shared by several
    modules. Each module looks after its own entries; any of them in any order end in the same state, and a shared chain
    goes with its last entry.
  - Where Felix runs on the node, writing needs O(takeover). Check mode is an audit of what Felix has done.
"""
