# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our state as text, in one form for what should be and what is: ``iptables-save`` blocks of our chains and jumps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    Desired,
    Tables,
    target_of,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import append_line
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.shared_chain import arrange


def rendered(desired: Desired) -> dict[str, str]:
    """The desired state of one family: table name to text."""
    out = {}
    for name, table in desired.tables.items():
        chains: dict[str, Sequence[str]] = {chain.name: chain.rules for chain in table.chains.values()}
        jumps = [(jump.parent, jump.rule) for jump in table.jumps]
        for shared in table.shared:
            chains[shared.name] = arrange((), shared, desired.family).rules
            jumps += [(hook.parent, hook.rule) for hook in shared.hooks]
        out[name] = _text(name, chains, jumps)
    return out


def gathered(current: Tables, ours: Desired) -> dict[str, str]:
    """What one family has of ours: table name to text. ``ours`` says which names these are; its content is not used."""
    out = {}
    for name, table in ours.tables.items():
        if name not in current:
            continue
        found = current[name]
        chains: dict[str, Sequence[str]] = {chain: rules for chain, rules in found.chains.items() if table.owns(chain)}
        leads = {chain for chain in table.entries if table.owns(chain)}
        for shared in table.shared:
            entries = [rule for rule in found.chains.get(shared.name, ()) if shared.rank_of(rule) in shared.ranks]
            if entries:
                chains[shared.name] = entries
                leads.add(shared.name)
        jumps = [(parent, rule) for parent in found.policies for rule in found.chains[parent]
                 if target_of(rule) in leads]
        if chains or jumps:
            out[name] = _text(name, chains, jumps)
    return out


def set_text(name: str, kind: str, family: str, maxelem: int, members: Iterable[str]) -> str:
    """One set in the form of ``ipset save``, without what the kernel chooses. ``family``: ``inet`` or ``inet6``."""
    lines = [f"create {name} {kind} family {family} maxelem {maxelem}",
             *(f"add {name} {member}" for member in sorted(members))]
    return "\n".join(lines) + "\n"


def _text(table: str, chains: Mapping[str, Sequence[str]], jumps: Sequence[tuple[str, str]]) -> str:
    lines = ["*" + table]
    lines += [f":{name} - [0:0]" for name in sorted(chains)]
    lines += [append_line(parent, rule) for parent, rule in sorted(jumps, key=lambda jump: jump[0])]
    for name in sorted(chains):
        lines += [append_line(name, rule) for rule in chains[name]]
    return "\n".join([*lines, "COMMIT"]) + "\n"
