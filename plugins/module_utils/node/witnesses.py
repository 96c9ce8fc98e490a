# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What shows, cheaply, that a module's state is in force: canaries, jumps, and chains and sets that must not be empty.

Whoever flushes tables takes some of these away. They are kept with the document of a run and looked at by the healer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.apply import Target
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import TableDesired

#: Of kube-proxy's chains those that stand for all others; Calico's are few. A look at a chain is a process each, and on
#: the legacy backend a copy of its table.
_KUBE = ("KUBE-SERVICES", "KUBE-POSTROUTING", "KUBE-PROXY-CANARY")


def witnesses(targets: Sequence[Target]) -> dict[str, Any]:
    """``{"rules": [[family, backend, table, chain, kind, rule]…], "sets": {name: whether it has members}}``.

    ``kind``: ``chain`` (it exists), ``filled`` (it has a rule) or ``rule`` (it has this one).
    """
    rules: list[list[str]] = []
    sets: dict[str, bool] = {}
    for target in targets:
        tool = target.handle.tool
        for name, table in target.desired.tables.items():
            rules += [[tool.family, tool.backend, name, *one] for one in _of_table(table)]
        sets.update({one.name: bool(one.members) for one in target.desired.sets})
    return {"rules": rules, "sets": sets}


def _of_table(table: TableDesired) -> list[list[str]]:
    found = [[chain.name, "filled" if chain.rules and not chain.exists_only else "chain", ""]
             for chain in table.chains.values() if chain.name in _KUBE or not chain.name.startswith("KUBE-")]
    found += [[jump.parent, "rule", jump.rule] for jump in table.jumps]
    for shared in table.shared:
        found += [[shared.name, "rule", entry.rule] for entry in shared.entries]
        if shared.entries:
            found += [[hook.parent, "rule", hook.rule] for hook in shared.hooks]
    return found
