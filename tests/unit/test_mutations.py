# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The list of mutations is in step with the code: a fault that cannot be built in proves nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

_TOP = Path(__file__).parents[2]
_MUTATIONS = yaml.safe_load((_TOP / "molecule/mutations.yml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("mutation", _MUTATIONS, ids=lambda mutation: mutation["what"])
def test_it_can_be_built_in_and_is_for_a_scenario(mutation: dict[str, str]) -> None:
    text = (_TOP / mutation["file"]).read_text(encoding="utf-8")
    assert text.count(mutation["old"]) == 1
    changed = text.replace(mutation["old"], mutation["new"])
    assert changed != text
    if mutation["file"].endswith(".py"):
        ast.parse(changed)
    assert (_TOP / "molecule" / mutation["scenario"] / "molecule.yml").is_file()


def test_every_scenario_has_some() -> None:
    scenarios = {path.parent.name for path in (_TOP / "molecule").glob("*/molecule.yml")}
    assert {mutation["scenario"] for mutation in _MUTATIONS} == scenarios - {"default"}
