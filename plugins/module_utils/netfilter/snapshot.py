# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our state as text, in one form for what should be and what is: ``iptables-save`` blocks of our chains and jumps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    Desired,
    Tables,
    target_of,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import append_line


def rendered(desired: Desired) -> dict[str, str]:
    """The desired state of one family: table name to text."""
    out = {}
    for name, table in desired.tables.items():
        chains = {chain.name: chain.rules for chain in table.chains.values()}
        out[name] = _text(name, chains, [(jump.parent, jump.rule) for jump in table.jumps])
    return out


def gathered(current: Tables, ours: Desired) -> dict[str, str]:
    """What one family has of ours: table name to text. ``ours`` says which names these are; its content is not used."""
    out = {}
    for name, table in ours.tables.items():
        if name not in current:
            continue
        found = current[name]
        chains = {chain: rules for chain, rules in found.chains.items() if table.owns(chain)}
        jumps = [(parent, rule) for parent in found.policies for rule in found.chains[parent]
                 if target_of(rule) in table.entries and table.owns(target_of(rule))]
        if chains or jumps:
            out[name] = _text(name, chains, jumps)
    return out


def _text(table: str, chains: Mapping[str, Sequence[str]], jumps: Sequence[tuple[str, str]]) -> str:
    lines = ["*" + table]
    lines += [f":{name} - [0:0]" for name in sorted(chains)]
    lines += [append_line(parent, rule) for parent, rule in sorted(jumps, key=lambda jump: jump[0])]
    for name in sorted(chains):
        lines += [append_line(name, rule) for rule in chains[name]]
    return "\n".join([*lines, "COMMIT"]) + "\n"
