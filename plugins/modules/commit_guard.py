#!/usr/bin/python
# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ``metal.nodenet.commit_guard``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: commit_guard
short_description: Have a node undo a change by itself unless somebody confirms it
version_added: 0.1.0
author:
  - the metal.nodenet authors (@metal-nodenet)
description:
  - Before a change, V(armed) takes a picture of all chains, sets and jumps of this collection and starts a timer on the
    node. When the timer is over and nobody has confirmed, the node gets back exactly what the modules own that have
    written under the guard. What others have written meanwhile stays, and what a running kube-proxy or Felix looks
    after where no module of its kind has written.
  - The timer is one of systemd's, or a process of its own where systemd does not look after the network namespace. It
    needs neither Ansible nor the connection nor the controller.
  - A node that is restarted while a guard is armed comes back with the old state, if it has systemd or the agent's
    C(restore) is called at boot.
  - Only one run at a time can have a guard on a node, and no run of another writes there meanwhile.
  - What modules are told to remember under a guard counts from the confirmation on.
options:
  state:
    description:
      - V(armed) takes the picture and starts the timer. A guard of another run that is over, whose timer was killed, is
        rolled back first, with a warning. For a run whose guard is armed already nothing changes, its time included.
      - V(confirmed) keeps the new state. The connection is made anew for it, so that a node which can no longer be
        reached is not confirmed.
      - V(rolled_back) with O(run_id) rolls that run back at once; without, the one that is armed. Without O(run_id) and
        with none armed, the node gets the state that it had before the last confirmed run that wrote something.
      - V(gathered) returns what is armed and remembered in RV(status).
    type: str
    choices: [armed, confirmed, rolled_back, gathered]
    required: true
  run_id:
    description:
      - A name for the run, the same for its guard, its modules and its confirmation, and used for no other run.
      - Up to 64 letters, digits, C(_), C(.) and C(-). Required for V(armed) and V(confirmed).
    type: str
  timeout:
    description:
      - After how many seconds the node rolls back, from arming on. All of the run and its probes must fit in.
      - From 5 to 86400.
    type: int
    default: 120
  state_dir:
    description:
      - Where the node keeps what it remembers; the same as for the modules that the guard is for.
    type: path
    default: /var/lib/nodenet
  lock_timeout:
    description:
      - How many seconds to wait for another program to release the xtables lock.
    type: int
    default: 10
  diff_limit:
    description:
      - How many lines of difference to show of a table. V(0) shows everything.
    type: int
    default: 5000
  controller:
    description:
      - Who arms, for messages to others. By default user and host of the controller.
    type: str
    default: ''
  agent:
    description:
      - The agent's path on the node before it is installed. Set by the module's own action plugin.
    type: path
  agent_sha256:
    description:
      - The agent's hash. Set by the module's own action plugin.
    type: str
extends_documentation_fragment:
  - ansible.builtin.action_common_attributes
attributes:
  check_mode:
    support: full
    details: Nothing is written, and no timer is started.
  diff_mode:
    support: full
    details: For V(rolled_back).
  platform:
    platforms: linux
requirements:
  - Python 3.9 on the node, and nothing but its standard library
  - C(iptables) on the node, 1.8.7 or later, either backend
  - root
seealso:
  - module: metal.nodenet.node_agent
"""

EXAMPLES = r"""
- name: Change a node so that it undoes the change if it cannot be reached any more
  block:
    - name: Have the node undo what follows after two minutes
      metal.nodenet.commit_guard:
        state: armed
        run_id: change-4711
        timeout: 120

    - name: Program the node's services
      metal.nodenet.kube_nat_chains:
        cluster: files/cluster.json
        guard: change-4711
        remember: true

    - name: See whether the node still serves
      ansible.builtin.wait_for:
        host: 10.96.0.10
        port: 53
        timeout: 10

    - name: Keep the change
      metal.nodenet.commit_guard:
        state: confirmed
        run_id: change-4711

- name: Go back to the state before the last change
  metal.nodenet.commit_guard:
    state: rolled_back
"""

RETURN = r"""
guard:
  description: The guard that is armed; for V(confirmed) and V(rolled_back) the one that was.
  returned: when there is or was one
  type: dict
  sample:
    run_id: change-4711
    armed_since: 2026-11-29 23:04:05 UTC
    deadline: 2026-11-29 23:06:05 UTC
    timer: systemd
    controller: admin@control
restored:
  description: The tables and documents that have been restored, or would be.
  returned: for O(state=rolled_back)
  type: list
  elements: str
  sample: [ipv4 nat, document of kube_nat_chains]
diff:
  description: What a roll-back changes, one entry per family and table.
  returned: for O(state=rolled_back)
  type: list
  elements: dict
messages:
  description: What was done, and what had to stay because somebody else makes use of it.
  returned: for O(state=rolled_back)
  type: list
  elements: str
status:
  description: What the node remembers, and what is armed.
  returned: for O(state=gathered)
  type: dict
  sample:
    guard:
    last: {run_id: change-4711, outcome: confirmed, at: 2026-11-29 23:05:10 UTC, reason: confirmed}
    applied: [kube_nat_chains]
    pending: []
    previous: true
    written: false
    unfinished: []
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.apply import ReconcileError  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.node.commit import COMMANDS  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import DEFAULT_PATH  # noqa: E402


def main() -> None:
    """Read the arguments and run."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": list(COMMANDS), "required": True},
            "run_id": {"type": "str"},
            "timeout": {"type": "int", "default": 120},
            "state_dir": {"type": "path", "default": DEFAULT_PATH},
            "lock_timeout": {"type": "int", "default": 10},
            "diff_limit": {"type": "int", "default": 5000},
            "controller": {"type": "str", "default": ""},
            "agent": {"type": "path"},
            "agent_sha256": {"type": "str"},
        },
        required_if=[("state", "armed", ("run_id", "agent", "agent_sha256")), ("state", "confirmed", ("run_id",))],
        supports_check_mode=True,
    )
    try:
        result = COMMANDS[module.params["state"]](module.params, module.check_mode, module.warn)
    except ReconcileError as error:
        module.fail_json(msg=str(error), **error.details)
    except (NetfilterError, ValueError) as error:
        module.fail_json(msg=str(error), changed=False)
    module.exit_json(**result)


if __name__ == "__main__":
    main()
