# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What we render equals what the real kube-proxy programmed, chain by chain, rule by rule, byte by byte."""

from __future__ import annotations

import re

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.kube.rules import desired
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, Chain, TableDesired
from conformance.cases import VERSIONS, Case, all_cases, cluster_for, options_for

Tables = dict[str, dict[str, list[str]]]

_nfacct = re.compile(r"-m nfacct --nfacct-name +\S+ ")


def _parameters() -> list[object]:
    return [
        pytest.param(case, version, second, family, id=f"{case.name}-{version}{'-second' if second else ''}-{family}")
        for case in all_cases()
        for version in case.versions
        for second in ([False, True] if case.has_second else [False])
        for family in FAMILIES
    ]


def read_dump(text: str) -> Tables:
    """Table to chain to rules, without what 1.36 has for counting only."""
    tables: Tables = {}
    chains: dict[str, list[str]] = {}
    for line in text.splitlines():
        if line.startswith("*"):
            chains = tables.setdefault(line[1:], {})
        elif line.startswith(":"):
            chains[line[1:].split(" ", 1)[0]] = []
        elif line.startswith("-A "):
            _word, chain, rule = line.split(" ", 2)
            if "localhost_nps_accepted_pkts" not in rule:
                chains[chain].append(_nfacct.sub("", rule))
    return tables


def _comparable(chain: Chain, rules: list[str]) -> tuple[list[str], list[str]]:
    if chain.ordered:
        return rules, []
    body = len(rules) - chain.tail
    return sorted(rules[:body]), sorted(rules[body:])


def _jumps(table: TableDesired) -> dict[str, list[str]]:
    by_parent: dict[str, list[str]] = {}
    for jump in table.jumps:
        by_parent.setdefault(jump.parent, []).append(jump.rule)
    return by_parent


@pytest.mark.parametrize(("case", "version", "second", "family"), _parameters())
def test_rendering_equals_the_dump(case: Case, version: str, second: bool, family: str) -> None:
    recorded = read_dump(case.dump(version, family, second).read_text(encoding="utf-8"))
    state, _warnings = desired(cluster_for(case, version, second), options_for(case, version), family)
    assert state.family == family
    assert set(state.tables) == set(recorded)
    for name, table in state.tables.items():
        dump = recorded[name]
        assert set(table.chains) == {chain for chain in dump if chain.startswith("KUBE-")}
        for chain in table.chains.values():
            assert table.owns(chain.name)
            if chain.exists_only:
                assert dump[chain.name] == [], chain.name
                continue
            assert _comparable(chain, list(chain.rules)) == _comparable(chain, dump[chain.name]), chain.name
        jumps = _jumps(table)
        built_in = {chain: rules for chain, rules in dump.items() if not chain.startswith("KUBE-")}
        assert {chain: rules for chain, rules in built_in.items() if rules} == jumps


def test_there_are_cases_of_every_version() -> None:
    cases = all_cases()
    assert len(cases) >= 20
    assert {version for case in cases for version in case.versions} == set(VERSIONS)
    assert any(case.has_second for case in cases)
