# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The model of the kernel that the property tests stand on, against the real tools."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import parse
from support.kernel_model import BUILT_IN, Kernel, ModelError, Unreliable, target
from support.node import LOCK, Node, node

CHAINS = ("A", "B", "C", "D")
MATCHES = ("", "-s 192.0.2.1/32 ", "-p udp -m udp --dport 53 ", '-m comment --comment "to -j D, it\\\'s \\"x\\"" ')
SEEDS = 10
REFUSALS = ("no chain", "no such position", "no such rule", "not empty", "is used by")
REFUSED = (
    "*filter\n:A - [0:0]\n-A A -j B\n:B - [0:0]\nCOMMIT\n",  # not there yet
    "*filter\n:A - [0:0]\n-A A -j RETURN\n-X A\nCOMMIT\n",  # not empty
    "*filter\n:A - [0:0]\n-A INPUT -j A\n-X A\nCOMMIT\n",  # used
    "*filter\n:A - [0:0]\n:B - [0:0]\n-A A -j B\n-A B -j A\n-A INPUT -j A\nCOMMIT\n",  # a loop
    "*filter\n-A A -j ACCEPT\nCOMMIT\n",
    "*filter\n-I INPUT 2 -j ACCEPT\nCOMMIT\n",
    "*filter\n-D INPUT -j ACCEPT\nCOMMIT\n",
    "*filter\n-A INPUT -j ACCEPT\n",  # no COMMIT
)
EMPTY = "".join("\n".join([f"*{name}", *(f":{chain} ACCEPT [0:0]" for chain in chains), "COMMIT"]) + "\n"
                for name, chains in BUILT_IN.items())


@pytest.fixture(scope="module", params=["nft", "legacy"])
def real(request: pytest.FixtureRequest) -> Iterator[Node]:
    with node(request.param) as one:
        yield one


def _line(pick: random.Random, table: str) -> str:
    """Some line of a restore input; most make sense in some state."""
    # Users before the used, mostly, so that not every other input is refused for a loop. No rule for its own chain:
    # the legacy kernel lets a packet into that loop.
    parents = (*BUILT_IN[table][:2], *CHAINS)
    at = pick.randrange(len(parents))
    targets = (*CHAINS[max(0, at - 1):], "RETURN", "ACCEPT") if pick.random() < 0.7 else (*CHAINS[:at - 2], "NOT-THERE")
    rule = pick.choice(MATCHES) + "-j " + pick.choice(targets)
    chain = parents[at]
    kind = pick.choice(":::AAAAIIDDX")
    if kind == ":":
        if chain in BUILT_IN[table]:
            return f":{chain} {pick.choice(('ACCEPT', 'DROP') if table == 'filter' else ('ACCEPT',))} [0:0]"
        return f":{chain} - [0:0]"
    if kind == "X":
        # Not a built-in one: the nft tool deletes it where it is empty, and creates it again when it is needed.
        return f"-X {pick.choice(CHAINS)}"
    return f"-I {chain} {pick.randint(1, 3)} {rule}" if kind == "I" else f"-{kind} {chain} {rule}"


def _inputs(seed: int) -> Iterator[tuple[Kernel, str]]:
    """Some inputs with the state before each. Every third one is to be refused, each time for another reason."""
    pick = random.Random(seed)
    model = Kernel()
    for number in range(6):
        text = _input(pick, model, REFUSALS[(seed + number // 3) % len(REFUSALS)] if number % 3 == 2 else "")
        yield model, text  # the caller applies it


def _input(pick: random.Random, state: Kernel, to_be_refused: str) -> str:
    """A small restore input for a state: one or two tables with a few lines each."""
    out = []
    tables = pick.sample(sorted(BUILT_IN), pick.choice((1, 1, 2)))
    for table in tables:
        block: list[str] = []
        for wanted in [""] * pick.randint(1, 6) + [to_be_refused if table == tables[-1] else ""]:
            for _attempt in range(400):
                line = _line(pick, table)
                refusal = _refusal(state, ["*" + table, *block, line, "COMMIT"])
                if refusal is not None and (wanted in refusal if wanted else not refusal):
                    block.append(line)
                    break
        out += [f"*{table}", *block, "COMMIT"]
    return "\n".join(out) + "\n"


def _refusal(state: Kernel, block: list[str]) -> str | None:
    trial = Kernel(state.tables)
    try:
        trial.restore_block("\n".join(block) + "\n")
    except Unreliable:
        return None
    except ModelError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("seed", range(SEEDS))
def test_model_does_what_the_tools_do(real: Node, seed: int) -> None:
    real.load("ipv4", EMPTY, flush=True)
    for model, text in _inputs(seed):
        refused = ""
        try:
            model.restore(text)
        except ModelError as error:
            refused = str(error)
        code = real.status(real.tool("ipv4", "-restore"), *LOCK, "--noflush", text=text)
        assert (code != 0) == bool(refused), f"exit {code}, model: {refused or 'accepts'}\n{text}"
        assert parse(real.save("ipv4")) == model.tables, text


def test_generated_inputs_are_refused_for_all_reasons() -> None:
    reasons = set()
    for seed in range(SEEDS):
        for model, text in _inputs(seed):
            try:
                model.restore(text)
            except ModelError as error:
                reasons |= {reason for reason in REFUSALS if reason in str(error)}
    assert reasons == set(REFUSALS)


@pytest.mark.parametrize(("rule", "name"), [
    ("-j A", "A"), ("-g A", "A"), ("", ""), ("-s 192.0.2.1/32", ""), ('-m comment --comment "-j B" -j A', "A"),
    ("-m comment --comment -j", ""), ("-m comment --comment -j -j A", "A"), ("-j MARK --set-xmark 0x1/0x1", "MARK"),
])
def test_target_is_the_word_behind_the_jump(rule: str, name: str) -> None:
    assert target(rule) == name


@pytest.mark.parametrize("text", REFUSED)
def test_refused_block_leaves_its_table_and_keeps_the_tables_before_it(real: Node, text: str) -> None:
    real.load("ipv4", EMPTY, flush=True)
    model = Kernel()
    text = "*nat\n:N - [0:0]\nCOMMIT\n" + text
    with pytest.raises(ModelError):
        model.restore(text)
    assert real.status(real.tool("ipv4", "-restore"), *LOCK, "--noflush", text=text) != 0
    assert parse(real.save("ipv4")) == model.tables
    assert model.tables["filter"] == Kernel().tables["filter"]
    assert "N" in model.tables["nat"].chains
