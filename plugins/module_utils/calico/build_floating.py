# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of ``floating_ip`` to what the shared run needs."""

from __future__ import annotations

import os
from itertools import chain
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.calico import floating
from ansible_collections.metal.nodenet.plugins.module_utils.calico.floating_ips import (
    read_endpoints,
    read_mappings,
)
from ansible_collections.metal.nodenet.plugins.module_utils.calico.node import calico_manager
from ansible_collections.metal.nodenet.plugins.module_utils.calico.stale import stale_flows
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import read_kinds, wants_input
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, Desired
from ansible_collections.metal.nodenet.plugins.module_utils.states import Manager

TABLES = ("nat",)
_OPTIONS = ("calico_version", "rule_hashes", "insert_mode", "dataplane", "enabled", "metadata_address")


def build(params: dict[str, Any]) -> Manager:
    """A manager for the module's parameters. Raises ``ValueError`` for bad input."""
    chosen = {name: params[name] for name in _OPTIONS}
    options = floating.FloatingOptions(**chosen)
    found, warnings = read_mappings(_without_none(one) for one in params["mappings"] or ())
    notices: list[str] = []
    objects = params["objects"]
    if wants_input(params):
        objects = list(chain.from_iterable(read_kinds(params, ("WorkloadEndpoint", "Pod"), notices).values()))
    if objects:
        name = params["node_name"] or os.uname().nodename.strip().lower()
        found, warnings = read_endpoints(objects, name)
    warnings = [*notices, *warnings]

    def wanted(family: str, random_fully: bool) -> tuple[Desired, list[str]]:
        known = floating.FloatingOptions(**chosen, random_fully=dict.fromkeys(FAMILIES, random_fully))
        state, more = floating.desired(found, known, family)
        return state, [*warnings, *more]

    stale = stale_flows if params["conntrack_cleanup"] else lambda _tables, _desired: []
    return calico_manager(params, wanted, lambda family: floating.nothing(family, options), stale)


def _without_none(mapping: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in mapping.items() if value is not None}
