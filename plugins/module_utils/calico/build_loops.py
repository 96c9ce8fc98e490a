# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of ``service_loop_block`` to what the shared run needs."""

from __future__ import annotations

from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.calico import loops
from ansible_collections.metal.nodenet.plugins.module_utils.calico.node import calico_manager
from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import read_pools
from ansible_collections.metal.nodenet.plugins.module_utils.calico.reading import network_of
from ansible_collections.metal.nodenet.plugins.module_utils.calico.service_cidrs import (
    read_bgp_configuration,
    read_cidrs,
)
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import read_kinds, wants_input
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.addresses import local_addresses
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Network, parse_address
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Desired
from ansible_collections.metal.nodenet.plugins.module_utils.states import Manager

TABLES = ("filter",)


def build(params: dict[str, Any]) -> Manager:
    """A manager for the module's parameters. Raises ``ValueError`` for bad input."""
    options = loops.LoopOptions(**{name: params[name] for name in (
        "calico_version", "rule_hashes", "insert_mode", "action", "strict")})
    cidrs, warnings = read_cidrs(params["cidrs"] or ())
    notices: list[str] = []
    objects, pools_of_cluster = params["bgp_configuration"], []
    if wants_input(params):
        read = read_kinds(params, ("BGPConfiguration", "IPPool"), notices)
        objects, pools_of_cluster = read["BGPConfiguration"], read["IPPool"]
    if objects is not None:
        cidrs, warnings = read_bgp_configuration(objects if isinstance(objects, list) else [objects])
    pools, more = read_pools([*({"cidr": one} if isinstance(one, str) else one for one in params["pools"]),
                              *pools_of_cluster])
    networks = [pool.network for pool in pools]
    own = _own_networks() if params["state"] == "present" else []

    def wanted(family: str, _random_fully: bool) -> tuple[Desired, list[str]]:
        state, found = loops.desired(cidrs, options, family, networks, own)
        return state, [*notices, *warnings, *more, *found]

    return calico_manager(params, wanted, lambda family: loops.nothing(family, options))


def _own_networks() -> list[Network]:
    return [network_of(parse_address(address)) for address in local_addresses()]
