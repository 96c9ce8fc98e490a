# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Felix's state looks like, in the form of ``iptables-save``."""

from __future__ import annotations

from typing import Callable

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Desired, Entry, SharedChain

Lines = Callable[..., list[str]]


@pytest.fixture
def lines() -> Lines:
    """One table of several parts as a node has it that had nothing before, sorted by built-in, shared and own chain."""
    return _lines


def _lines(table: str, *parts: Desired) -> list[str]:
    shared = [one for part in parts for one in part.tables[table].shared]
    hooks: dict[str, str] = {}
    inside: dict[str, list[str]] = {}
    for name in sorted({one.name for one in shared}):
        same = [one for one in shared if one.name == name]
        rules = _stamped(same)
        if rules:
            inside[name] = rules
            hooks.update({hook.parent: hook.rule for one in same for hook in one.hooks})
    own = {chain.name: list(chain.rules) for part in parts for chain in part.tables[table].chains.values()}
    out = [f"-A {parent} {rule}" for parent, rule in hooks.items()]
    for name, rules in [*inside.items(), *sorted(own.items())]:
        out += [f"-A {name} {rule}" for rule in rules]
    return out


def _stamped(parts: list[SharedChain]) -> list[str]:
    """The rules of a shared chain; whoever writes last gives the ids."""
    entries = [entry for part in parts for entry in part.entries]
    in_order = [entry.rule for entry in sorted(entries, key=_rank)]
    stamped = [part.stamp(in_order) for part in parts]
    assert all(one == stamped[0] for one in stamped), "every part must give the same ids"
    return stamped[0]


def _rank(entry: Entry) -> int:
    return entry.rank
