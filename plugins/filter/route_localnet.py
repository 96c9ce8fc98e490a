# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter ``metal.nodenet.route_localnet``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ansible.errors import AnsibleFilterError
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import (
    Network,
    is_loopback,
    parse_address,
    parse_network,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6

_PRIMARY = "primary"
_LOOPBACK = parse_address("127.0.0.0")


def route_localnet(layout: str, nodeport_addresses: Sequence[str] = (), localhost_nodeports: bool = True) -> bool:
    """Whether kube-proxy of that version sets ``net.ipv4.conf.all.route_localnet`` for these options.

    ``layout``: the name of a layout. ``nodeport_addresses``: CIDRs, or the word ``primary``.
    """
    if layout not in LAYOUTS:
        raise AnsibleFilterError(f"route_localnet: {layout!r} is no layout: one of {', '.join(LAYOUTS)}")
    if list(nodeport_addresses) == [_PRIMARY]:
        return False
    try:
        networks = [parse_network(text) for text in nodeport_addresses]
    except ValueError as error:
        raise AnsibleFilterError(f"route_localnet: nodeport_addresses: {error}") from error
    by_family = {family: [one for one in networks if one.family == family] for family in (IPV4, IPV6)}
    if not LAYOUTS[layout].excludes_loopback:
        # It asks for each family, and knows no switch.
        return any(_takes_loopback(ranges) for ranges in by_family.values())
    return localhost_nodeports and _takes_loopback(by_family[IPV4])


def _takes_loopback(ranges: Sequence[Network]) -> bool:
    """Whether these ranges, of one family, have an IPv4 loopback address, as kube-proxy asks; none means all."""
    return not ranges or any(one.length == 0 or _loopback4(one) for one in ranges)


def _loopback4(one: Network) -> bool:
    return one.family == IPV4 and (one.has(_LOOPBACK) or is_loopback(parse_address(one.text.partition("/")[0])))


class FilterModule:
    """What Ansible asks a filter file for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filters by name."""
        return {"route_localnet": route_localnet}
