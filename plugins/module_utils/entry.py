# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The ``main()`` of every module: the only code here that needs Ansible on the node."""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible_collections.metal.nodenet.plugins.module_utils.apply import ReconcileError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.node.session import run
from ansible_collections.metal.nodenet.plugins.module_utils.states import Manager


def carry_out(module: AnsibleModule, name: str, tables: Sequence[str], build: Callable[[dict[str, Any]], Manager],
              facts: Callable[[dict[str, Any]], object] | None = None) -> None:
    """Run, and turn every error into one message.

    ``name``: that of the module, under which a node remembers it. ``tables``: those that the module has chains in.
    ``build`` makes a manager of the parameters. ``facts``: see ``session.run``.
    """
    # A run makes hundreds of thousands of small objects and no cycles, and then the process ends.
    gc.disable()
    try:
        result = run(name, module.params, module.check_mode, tables, build, module.warn, facts)
    except ReconcileError as error:
        module.fail_json(msg=str(error), **error.details)
    except (NetfilterError, ValueError) as error:
        module.fail_json(msg=str(error), changed=False)
    module.exit_json(**result)
