#!/usr/bin/python
# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module ``metal.nodenet.node_agent``."""

from __future__ import annotations

DOCUMENTATION = r"""
module: node_agent
short_description: Install the program that rebuilds a node's state by itself, or remove everything that is kept there
version_added: 0.1.0
author:
  - the metal.nodenet authors (@metal-nodenet)
description:
  - The agent is one file of Python that runs without Ansible. It is made of the same code as the modules and sent only
    where the node does not have it yet.
  - C(restore) rolls back what is not confirmed, or rebuilds the state of the documents that the modules have left with
    their option O(metal.nodenet.kube_nat_chains#module:remember). It is for a unit that runs at boot.
  - C(heal) looks with a few small reads whether somebody has flushed tables, and rebuilds then. It is for a timer.
  - C(status) prints what is armed and remembered. C(roll-back) is for the timer of M(metal.nodenet.commit_guard).
  - All of them may be run by hand at any time. What they find and do goes to standard error, one line each. They end
    with 0 where the node is as it should be, and with 1 where it is not.
options:
  state:
    description:
      - V(present) installs the agent.
      - V(absent) removes the whole O(state_dir) - the agent, the documents, the cache of inputs, the way back - and the
        guard's boot unit. Rules stay as they are. It is refused while a guard is armed.
    type: str
    choices: [present, absent]
    default: present
  state_dir:
    description:
      - Where the node keeps what it remembers.
    type: path
    default: /var/lib/nodenet
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
  diff_mode:
    support: none
  platform:
    platforms: linux
requirements:
  - Python 3.9 on the node, and nothing but its standard library
  - root
"""

EXAMPLES = r"""
- name: Install the agent
  metal.nodenet.node_agent:
  register: agent

- name: Rebuild this node's state by hand
  ansible.builtin.command:
    argv: [python3, /var/lib/nodenet/agent/nodenet.pyz, restore]
  changed_when: true

- name: Remove everything that the node remembers
  metal.nodenet.node_agent:
    state: absent
"""

RETURN = r"""
path:
  description: Where units find the agent.
  returned: for O(state=present)
  type: str
  sample: /var/lib/nodenet/agent/nodenet.pyz
"""

from ansible.module_utils.basic import AnsibleModule  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.node import install  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.node.confirmation import finish_confirmation  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.node.guard import RETURNING, read_armed  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import (  # noqa: E402
    DEFAULT_PATH,
    StateDir,
    StateError,
)
from ansible_collections.metal.nodenet.plugins.module_utils.node.lock import locked  # noqa: E402
from ansible_collections.metal.nodenet.plugins.module_utils.node.timer import (  # noqa: E402
    forget_boot_unit,
    remove_boot_unit,
)


def main() -> None:
    """Read the arguments and run."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": ["present", "absent"], "default": "present"},
            "state_dir": {"type": "path", "default": DEFAULT_PATH},
            "agent": {"type": "path"},
            "agent_sha256": {"type": "str"},
        },
        required_if=[("state", "present", ("agent", "agent_sha256"))],
        supports_check_mode=True,
    )
    try:
        state = StateDir(module.params["state_dir"])
        if module.params["state"] == "present":
            _present(module, state)
        _absent(module, state)
    except (NetfilterError, ValueError) as error:
        module.fail_json(msg=str(error), changed=False)


def _present(module: AnsibleModule, state: StateDir) -> None:
    changed = not install.installed(state, module.params["agent_sha256"])
    if changed and not module.check_mode:
        with locked(state, "module node_agent"):
            install.install(state, module.params["agent"], module.params["agent_sha256"])
    module.exit_json(changed=changed, path=install.agent_path(state))


def _absent(module: AnsibleModule, state: StateDir) -> None:
    if not state.there():
        module.exit_json(changed=False)
    armed = read_armed(state)
    if armed is not None:
        raise StateError(f"this node is guarded by {armed.describe()}. Confirm that run or roll it back first")
    if state.there(*RETURNING):
        raise StateError(f"a roll-back to the state before the last apply was interrupted on this node "
                         f"({state.file(*RETURNING)}), and what it needs would go. Run commit_guard with state "
                         "rolled_back again, or the agent's restore, and then this")
    if not module.check_mode:
        with locked(state, "module node_agent"):
            if read_armed(state) is not None:
                raise StateError("a guard has been armed just now. Confirm that run or roll it back first")
            finish_confirmation(state)
            remove_boot_unit(state)
            strange = install.remove_all(state)
        forget_boot_unit()
        if strange:
            module.warn(f"{state.path} stays, for somebody else's files are in it: {', '.join(strange[:5])}")
    module.exit_json(changed=True)


if __name__ == "__main__":
    main()
