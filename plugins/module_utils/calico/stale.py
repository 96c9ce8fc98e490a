# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which flows a change of floating IPs leaves behind, told from the rules alone."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ansible_collections.metal.nodenet.plugins.module_utils.calico import names
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.conntrack import FlowSelector
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Desired, Tables

_EXTERNAL = re.compile(r"-d ([0-9a-fA-F.:]+)/\d+ ")
_INTERNAL = re.compile(r" --to-destination ([0-9a-fA-F.:]+)(?: |$)")


def stale_flows(current: Tables, desired: Desired) -> list[FlowSelector]:
    """Selectors of the flows to external addresses that are gone or lead elsewhere now. Pure."""
    found = current["nat"].chains.get(names.FIP_DNAT, ()) if "nat" in current else ()
    wanted = desired.tables["nat"].chains.get(names.FIP_DNAT)
    return between(found, wanted.rules if wanted else (), desired.family)


def between(old_rules: Iterable[str], new_rules: Iterable[str], family: str) -> list[FlowSelector]:
    """The same for the rules that the translating chain had and will have. Pure."""
    before, after = _leads(old_rules), _leads(new_rules)
    return [FlowSelector(family, frozenset({external}), 0,
                         frozenset({(after[external], 0)} if external in after else ()),
                         f"floating IP {external}", f"it led to {internal}")
            for external, internal in sorted(before.items()) if after.get(external) != internal]


def _leads(rules: Iterable[str]) -> dict[str, str]:
    """External to internal address."""
    leads: dict[str, str] = {}
    for rule in rules:
        external, internal = _EXTERNAL.search(rule), _INTERNAL.search(rule)
        if external and internal:
            leads.setdefault(external.group(1), internal.group(1))
    return leads
