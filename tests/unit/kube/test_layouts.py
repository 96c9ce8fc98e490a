# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A layout that is in the code can be chosen wherever one is chosen."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.modules import kube_nat_chains

_TOP = Path(__file__).parents[3]


def _yaml(path: str) -> Any:
    return yaml.safe_load((_TOP / path).read_text(encoding="utf-8"))


def test_every_layout_can_be_chosen_and_the_newest_is_the_default() -> None:
    names = list(LAYOUTS)
    options = [yaml.safe_load(kube_nat_chains.DOCUMENTATION)["options"]["layout"]]
    for role in ("kube_nat", "prerequisites"):
        specs = _yaml(f"roles/{role}/meta/argument_specs.yml")["argument_specs"]
        options.append(specs["main"]["options"][f"{role}_layout"])
    for option in options:
        assert (option["choices"], option["default"]) == (names, names[-1])
    assert _yaml("plugins/filter/route_localnet.yml")["DOCUMENTATION"]["options"]["_input"]["choices"] == names
