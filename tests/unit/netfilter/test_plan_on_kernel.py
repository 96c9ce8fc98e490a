# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random plans, and the way back from them, on real kernels."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import parse, write
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.undo import undo
from support.kernel_model import BUILT_IN
from support.node import Node, node
from unit.netfilter.states import kernel, steps, world

EMPTY = "".join(f"*{name}\n" + "".join(f":{chain} ACCEPT [0:0]\n" for chain in chains) + "COMMIT\n"
                for name, chains in BUILT_IN.items())


@pytest.fixture(scope="module", params=["nft", "legacy"])
def real(request: pytest.FixtureRequest) -> Iterator[Node]:
    with node(request.param) as one:
        yield one


def _tables(real: Node) -> Tables:
    return parse(real.save("ipv4"))


@pytest.mark.parametrize("seed", range(12))
def test_plan_and_undo_do_on_a_kernel_what_they_do_in_the_model(real: Node, seed: int) -> None:
    case = world(Random(seed))
    real.load("ipv4", EMPTY, flush=True)
    real.load("ipv4", write(case.current))
    before = _tables(real)
    model = kernel(before)
    plan = plan_family(before, case.desired)
    assert plan
    for block in steps(plan, case.batch):
        model.restore_block(block)
        real.load("ipv4", block)
        assert _tables(real) == model.tables
    after = _tables(real)
    assert not plan_family(after, case.desired)
    for block in steps(undo(plan, after), case.batch):
        real.load("ipv4", block)
    assert _tables(real) == before
