# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is ours on a node, whichever module wrote it, and the way back to it."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, Table, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.undo import undo
from ansible_collections.metal.nodenet.plugins.module_utils.node.ours import Ours
from support.builders import endpoint_slice, render, service
from support.kernel_model import BUILT_IN, Kernel


def _state(generation: int) -> Tables:
    """A node with three services that have other endpoints in each generation."""
    objects = [service(name=f"s{at}", clusterIP=f"10.96.1.{at}") for at in range(3)]
    objects += [endpoint_slice(f"10.244.{generation}.{at}", name=f"s{at}", service_name=f"s{at}") for at in range(3)]
    return {name: Table({**{chain: [] for chain in BUILT_IN[name]},
                         **{chain.name: list(chain.rules) for chain in table.chains.values()}},
                        dict.fromkeys(BUILT_IN[name], "ACCEPT"))
            for name, table in render(objects).state.tables.items() if name in BUILT_IN}


def test_a_long_way_back_changes_one_service_after_the_other() -> None:
    before, now = _state(1), _state(2)
    kernel = Kernel(now)
    plan = Ours(IPV4).way_back(before, now)
    texts = [one.text for one in transactions(undo(plan, kernel.tables), 1)]
    for text in texts:
        kernel.restore(text)
    assert kernel.tables == before
    assert [text.count("\n:KUBE-SVC-") for text in texts if "\n:KUBE-SVC-" in text] == [1, 1, 1]
