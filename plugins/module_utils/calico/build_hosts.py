# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""From the options of ``calico_host_ips`` to what the shared run needs."""

from __future__ import annotations

from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.calico import hosts
from ansible_collections.metal.nodenet.plugins.module_utils.calico.node import calico_manager
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.addresses import local_routes
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Desired
from ansible_collections.metal.nodenet.plugins.module_utils.states import Manager

TABLES = ("filter",)


def build(params: dict[str, Any]) -> Manager:
    """A manager for the module's parameters. Raises ``ValueError`` for bad input."""
    options = hosts.HostOptions(**{name: params[name] for name in (
        "calico_version", "rule_hashes", "insert_mode", "workload_prefixes", "exclude_interfaces", "forward_check",
        "nodeport_ranges", "max_ipset_size")})
    addresses = _addresses(params)

    def wanted(family: str, _random_fully: bool) -> tuple[Desired, list[str]]:
        return hosts.desired(addresses, options, family)

    return calico_manager(params, wanted, hosts.nothing)


def _addresses(params: dict[str, Any]) -> list[tuple[str, str]]:
    if params["addresses"] is not None:
        return [(one["address"], one["interface"]) for one in params["addresses"]]
    if params["state"] == "rendered":
        raise ValueError("addresses: state rendered reads nothing from a node; give the addresses")
    return [(route.address, route.interface) for route in local_routes()]
