# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random plans, and the way back from them, on real kernels."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.as_planned import AsPlanned
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    IPV4,
    Chain,
    Desired,
    TableDesired,
    Tables,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import TablePlan, plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import parse, write
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.undo import undo
from support.kernel_model import BUILT_IN
from support.node import Node, node
from unit.netfilter.states import kernel, saved, steps, world

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


def _exact(seed: int) -> bool:
    """Whether the kernel will print all that is written in this world as it is written; most have other spellings."""
    case = world(Random(seed))
    tables = plan_family(case.current, case.desired).tables
    return all(saved(rule) == rule for table in tables for rules in (
        *(write.chain.rules for write in table.writes), *(edit.after for edit in table.parents)) for rule in rules)


@pytest.mark.parametrize("seed", [*range(10), *list(filter(_exact, range(1000)))[:20]])
def test_what_became_as_planned_is_known_by_its_text(real: Node, seed: int) -> None:
    chance = Random(seed)
    case = world(chance)
    real.load("ipv4", EMPTY, flush=True)
    real.load("ipv4", write(case.current))
    text = real.save("ipv4")
    before = parse(text)
    plan = plan_family(before, case.desired)
    assert not AsPlanned(before, plan).reads(text)
    for block in steps(plan, case.batch):
        real.load("ipv4", block)
    text = real.save("ipv4")
    # a world has rules in spellings that the kernel prints in another way
    exact = all(_planned(table, before) == parse(text)[table.table].chains for table in plan.tables)
    assert AsPlanned(before, plan).reads(text) is exact
    assert exact or not _exact(seed)
    if not exact:
        return
    # any other rule in a table that changed, a chain more, or another policy is noticed
    table = chance.choice([table.table for table in plan.tables if table])
    head, block, rest = _around(text, table)
    lines = block.splitlines(keepends=True)
    for at in chance.sample(range(len(lines)), min(8, len(lines))):
        other = [*lines[:at], *lines[at + 1:]]
        assert not AsPlanned(before, plan).reads(head + "".join(other) + rest)
        if lines[at].startswith("-A"):
            assert not AsPlanned(before, plan).reads(head + "".join([*lines[:at], lines[at], *lines[at:]]) + rest)
    assert not AsPlanned(before, plan).reads(head + ":MORE - [0:0]\n" + block + rest)
    assert not AsPlanned(before, plan).reads(head + block.replace(" ACCEPT [", " DROP [", 1) + rest)
    assert not AsPlanned(before, plan).reads(head + block)


def _planned(table: TablePlan, before: Tables) -> dict[str, list[str]]:
    chains = {name: rules for name, rules in before[table.table].chains.items() if name not in table.removals}
    chains |= {write.chain.name: list(write.chain.rules) for write in table.writes}
    return chains | {edit.parent: list(edit.after) for edit in table.parents}


def _around(text: str, table: str) -> tuple[str, str, str]:
    head, mark, rest = text.partition(f"*{table}\n")
    block, end, behind = rest.partition("COMMIT\n")
    return head + mark, block, end + behind


def test_a_table_that_was_not_there_brings_chains_of_its_own() -> None:
    table = TableDesired({"KUBE-A": Chain("KUBE-A", ("-j RETURN",))}, (), lambda name: name.startswith("KUBE-"))
    desired = Desired(IPV4, {"nat": table})
    plan = plan_family({}, desired)
    text = "*nat\n:INPUT ACCEPT [0:0]\n:KUBE-A - [0:0]\n-A KUBE-A -j RETURN\nCOMMIT\n"
    assert AsPlanned({}, plan).reads(text)
    assert AsPlanned({}, plan).reads("# said first\n" + text)
    assert not AsPlanned({}, plan).reads(text.replace("-j RETURN", "-j DROP"))
    assert not AsPlanned({}, plan).reads(text.replace("-A KUBE-A -j RETURN\n", ""))
    assert not AsPlanned({}, plan).reads(text.replace("-A KUBE-A", "-A INPUT"))
    assert not AsPlanned({}, plan).reads(text.replace("*nat", "*filter"))
