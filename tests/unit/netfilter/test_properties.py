# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must hold for every dump, every rule and every parent chain. (Plans: test_plan_properties.py.)"""

from __future__ import annotations

import re
from pathlib import Path
from random import Random

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.canonical import same_rule
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.compare import same_chain
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.jumps import place
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    APPEND,
    HEAD,
    IPV4,
    Chain,
    Jump,
    Table,
    Tables,
    target_of,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.quoting import quote, tokenise
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import Dump, parse, write
from hypothesis import given, settings
from hypothesis import strategies as st
from unit.netfilter.spellings import Rule, rules, spelled

DUMPS = sorted(Path(__file__).parents[2].glob("conformance/cases/*/*.rules"))
COUNTERS = re.compile(r"\[\d+:\d+\]")

SEEDS = st.integers(0, 2**32)
LETTERS = st.sampled_from("abzAZ09 -_:;/,.!#*[]\"'\\\té\u00a0\u2028\u20ac\U0001d11e")
NAMES = st.text(st.sampled_from("ABZaz09-_.:!#*[]'\\"), min_size=1, max_size=28)
#: Any text, a line feed in it too: others may have such a comment.
COMMENTS = st.text(LETTERS | st.just("\n"), max_size=40) | st.sampled_from((
    "a\nCOMMIT\n*nat", "\n:X - [0:0]\n-A X", "-j DROP", "\\", '"', "'"))


def in_quotes(text: str) -> str:
    """A value in quotes, as save prints it; ``quote`` would refuse a line feed."""
    return '"' + re.sub(r"[\"'\\]", r"\\\g<0>", text) + '"'


RULES = st.sampled_from(("", "-j ACCEPT", "-s 192.0.2.1/32 -j RETURN")) | st.builds(
    lambda comment, name: f"-m comment --comment {in_quotes(comment)} -j {name}", COMMENTS, NAMES)


@st.composite
def dumps(draw: st.DrawFn) -> Tables:
    """Any tables."""
    tables = {}
    for name in draw(st.lists(st.sampled_from(("raw", "mangle", "nat", "filter")), unique=True)):
        chains = draw(st.dictionaries(NAMES, st.lists(RULES, max_size=4), max_size=6))
        policies = {chain: draw(st.sampled_from(("ACCEPT", "DROP"))) for chain in chains if draw(st.booleans())}
        tables[name] = Table(chains, policies)
    return tables


@settings(max_examples=300)
@given(dumps())
def test_f010_f012_what_is_written_is_read_again(tables: Tables) -> None:
    again = parse(write(tables))
    assert again == tables
    assert Dump(write(tables)).notices == ()
    assert [list(table.chains) for table in again.values()] == [list(table.chains) for table in tables.values()]


@pytest.mark.parametrize("path", DUMPS, ids=lambda path: f"{path.parent.name}-{path.name}")
def test_recorded_dumps_are_written_as_they_were_read(path: Path) -> None:
    text = path.read_text()
    lines = [line for line in COUNTERS.sub("[0:0]", text).splitlines() if not line.startswith("#")]
    assert write(parse(text)).splitlines() == lines


def test_there_are_recorded_dumps() -> None:
    assert len(DUMPS) > 100


@given(st.lists(st.text(LETTERS)), SEEDS)
def test_f008_any_words_are_split_where_they_were_joined(words: list[str], seed: int) -> None:
    pick = Random(seed)
    line = "".join(pick.choice((" ", "  ", "\t")) + quote(word) for word in words)
    assert [value for value, _quoted in tokenise(line)] == words


# --- the meaning of rules ---

@settings(max_examples=300)
@given(rules(), rules(), SEEDS, st.data())
def test_f018_rules_are_the_same_exactly_where_they_mean_the_same(
        one: Rule, other: Rule, seed: int, data: st.DataObject) -> None:
    pick = Random(seed)
    assert same_rule(spelled(one, pick), spelled(one, pick), IPV4)
    # The other is the first one with some parts exchanged, so that most differ in one place only.
    for name in data.draw(st.sets(st.sampled_from(sorted({*one, *other}))), "parts of the first"):
        other.pop(name, None)
        if name in one:
            other[name] = one[name]
    if "protocol" not in other:
        other = {name: value for name, value in other.items() if name not in ("--sport", "--dport")}
    there, back = spelled(one, pick), spelled(other, pick)
    assert same_rule(there, back, IPV4) == same_rule(back, there, IPV4) == (one == other), f"{there}\n{back}"


@given(st.lists(rules(), max_size=6), SEEDS, st.data())
def test_chain_without_order_is_the_same_in_any_order_and_spelling(
        some: list[Rule], seed: int, data: st.DataObject) -> None:
    pick = Random(seed)
    tail = data.draw(st.integers(0, len(some)), "tail")
    wanted = Chain("X", [spelled(rule, pick) for rule in some], ordered=False, tail=tail)
    body = data.draw(st.permutations(some[:len(some) - tail]))
    end = data.draw(st.permutations(some[len(some) - tail:]))
    current = [spelled(rule, pick) for rule in (*body, *end)]
    assert same_chain(current, wanted, IPV4)
    assert same_chain(current, wanted._replace(ordered=True), IPV4) == ([*body, *end] == some)
    if some:
        gone = data.draw(st.integers(0, len(some) - 1), "rule that is missing")
        assert not same_chain([*current[:gone], *current[gone + 1:]], wanted, IPV4)


# --- our jumps in chains of others ---

ENTRIES = frozenset({"OUR-A", "OUR-B", "OUR-C"})
OTHERS = ("-s 192.0.2.1/32 -j ACCEPT", "-s 192.0.2.2/32 -j FGN", "-j NBR-1", "-j NBR-2",
          '-m comment --comment "-j OUR-A"')
JUMPS = tuple(f"{match}-j {name}" for name in sorted(ENTRIES) for match in ("", "-i eth0 "))


@st.composite
def parents(draw: st.DrawFn) -> tuple[list[str], list[Jump], tuple[str, ...]]:
    """The rules of a chain of others, our jumps for it, and who may stand before them."""
    before = draw(st.lists(st.sampled_from((*OTHERS, *JUMPS)), max_size=10))
    wanted = draw(st.lists(st.sampled_from(JUMPS), unique=True, max_size=4))
    jumps = [Jump("INPUT", rule, draw(st.sampled_from((HEAD, HEAD, APPEND))), draw(st.booleans())) for rule in wanted]
    return before, jumps, draw(st.sampled_from(((), ("NBR-",))))


@settings(max_examples=500)
@given(parents())
def test_f032_placed_jumps_stay_where_they_are(case: tuple[list[str], list[Jump], tuple[str, ...]]) -> None:
    before, jumps, neighbours = case
    once = place(before, jumps, ENTRIES, neighbours, IPV4)
    again = place(once.rules, jumps, ENTRIES, neighbours, IPV4)
    assert again.rules == once.rules
    assert again.going == frozenset()


@settings(max_examples=500)
@given(parents())
def test_f041_placing_keeps_the_rules_of_others_in_their_order(
        case: tuple[list[str], list[Jump], tuple[str, ...]]) -> None:
    before, jumps, neighbours = case
    placed = place(before, jumps, ENTRIES, neighbours, IPV4)
    assert [rule for rule in placed.rules if rule in OTHERS] == [rule for rule in before if rule in OTHERS]
    assert not placed.going & set(OTHERS)
    assert placed.going <= set(before)


@settings(max_examples=500)
@given(parents())
def test_f032_every_jump_is_there_once_and_where_it_belongs(
        case: tuple[list[str], list[Jump], tuple[str, ...]]) -> None:
    before, jumps, neighbours = case
    placed = place(before, jumps, ENTRIES, neighbours, IPV4).rules
    assert sorted(rule for rule in placed if rule not in OTHERS) == sorted(jump.rule for jump in jumps)
    places = {jump: placed.index(jump.rule) for jump in jumps}
    for jump in jumps:
        above = placed[:places[jump]]
        if jump.position == HEAD:
            assert all(rule not in OTHERS or (neighbours and target_of(rule).startswith(neighbours)) for rule in above)
        elif jump.rule not in before:
            below = placed[places[jump] + 1:]
            assert all(rule not in OTHERS for rule in below)
    ranked = [places[jump] for jump in jumps if jump.position == HEAD and jump.ranked]
    assert ranked == sorted(ranked)
