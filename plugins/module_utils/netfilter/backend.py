# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which backend carries a family's state: seen in the kernel first, then told by the binary.

State in both backends is active twice, with surprising results; so a node with chains of ours (or of a kubelet, or of
Felix) in one backend is only ever written there, and a node with such chains in both is refused.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import BackendError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.iptables import (
    BACKENDS,
    NFT,
    Iptables,
    base_name,
    tool_version,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, IPV4
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import Dump
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.tools import find_tool

AUTO = "auto"

#: Names of chains that say where a node keeps its Kubernetes state.
CARRIERS = ("KUBE-", "cali-")

_NAMES_FILE = {"ipv4": "/proc/net/ip_tables_names", "ipv6": "/proc/net/ip6_tables_names"}


class Handle(NamedTuple):
    """One family on one backend, and what was read from it."""

    tool: Iptables
    dump: Dump
    #: ``ipv4``, or ``ipv4 (legacy)`` where both backends of a family are handled in one run.
    label: str


class Tools(NamedTuple):
    """The tools of one family that a node has, by backend."""

    family: str
    by_backend: dict[str, Iptables]
    #: The backend that the plain command name stands for.
    default: str

    def likely(self, backend: str) -> Iptables:
        """The one that is used unless the rules of the node say otherwise."""
        return self.by_backend[self.default if backend == AUTO else backend]


def node_families(even_if_disabled: bool = False) -> tuple[str, ...]:
    """The families that this network namespace has switched on; or that it could have rules of."""
    if not os.path.exists("/proc/net/if_inet6"):
        return (IPV4,)
    return FAMILIES if even_if_disabled or not _ipv6_disabled() else (IPV4,)


def _ipv6_disabled() -> bool:
    try:
        with open("/proc/sys/net/ipv6/conf/all/disable_ipv6", encoding="ascii") as switch:
            return switch.read().strip() == "1"
    except OSError:
        return True


def find_tools(family: str, backend: str, lock_timeout: int) -> Tools:
    """The tools of one family. Raises ``BackendError`` where it has none, or not those of ``backend``."""
    tools = _tools(family, lock_timeout)
    if not tools.by_backend:
        raise BackendError(f"{family}: no {base_name(family)}-save on this node: install the iptables package", True)
    if backend != AUTO and backend not in tools.by_backend:
        raise BackendError(f"{family}: backend {backend} was asked for, but this node has only "
                           f"{', '.join(tools.by_backend)}")
    return tools


def open_family(tools: Tools, backend: str, tables: Sequence[str], both: bool = False) -> list[Handle]:
    """Find and read the backend of one family. With ``both``, a mix gives a handle for each instead of an error.

    Raises ``BackendError`` where both backends carry state, or where ``backend`` names the one that does not carry it.
    """
    family, by_backend, default = tools
    dumps = {name: tool.save(tables) for name, tool in by_backend.items()
             if name in (default, backend) or _may_hold_state(family, name)}
    holders = [name for name, dump in dumps.items() if dump.has_chain(CARRIERS)]
    if len(holders) > 1:
        if both and backend == AUTO:
            return [Handle(by_backend[name], dumps[name], f"{family} ({name})") for name in holders]
        if not both:
            raise BackendError(_mix(family, dumps))
    chosen = backend if backend != AUTO else (holders[0] if holders else default)
    if not both and holders and chosen not in holders:
        found = _some(_carriers(dumps[holders[0]]))
        raise BackendError(f"{family}: backend {chosen} was asked for, but the chains are in {holders[0]} ({found}); "
                           "state must not be split over two backends. Remove them first with state absent and "
                           f"backend {holders[0]}, or use that backend")
    return [Handle(by_backend[chosen], dumps[chosen], family)]


def _tools(family: str, lock_timeout: int) -> Tools:
    base = base_name(family)
    tools: dict[str, Iptables] = {}
    default = ""
    for name in (base, *(f"{base}-{backend}" for backend in BACKENDS)):
        save, restore = find_tool(name + "-save"), find_tool(name + "-restore")
        if save is None or restore is None:
            continue
        backend, version = tool_version(save)
        default = default or backend
        tools.setdefault(backend, Iptables(family, backend, (save, restore, find_tool(name)), version, lock_timeout))
    return Tools(family, tools, default)


def quick_tool(family: str, backend: str, lock_timeout: int) -> Iptables:
    """The tool to ask for single chains of a backend that is known; nothing is read. Raises ``BackendError``."""
    name = f"{base_name(family)}-{backend}"
    plain = find_tool(name) or find_tool(base_name(family))
    if plain is None:
        raise BackendError(f"{family}: no {name} on this node: install the iptables package", True)
    return Iptables(family, backend, (name + "-save", name + "-restore", plain), (), lock_timeout)


def _may_hold_state(family: str, backend: str) -> bool:
    """Reading legacy tables creates them in the kernel, so they are only read where they are there already."""
    if backend == NFT:
        return True
    try:
        with open(_NAMES_FILE[family], encoding="ascii") as names:
            return bool(names.read().strip())
    except OSError:
        return False


def _carriers(dump: Dump) -> list[str]:
    return [f"{table} {chain}" for table, content in dump.tables.items() for chain in content.chains
            if chain.startswith(CARRIERS)]


def _mix(family: str, dumps: dict[str, Dump]) -> str:
    seen = "; ".join(f"{name} has {_some(_carriers(dump))}" for name, dump in dumps.items())
    return (f"{family}: both iptables backends carry Kubernetes or Calico chains, and both are active: {seen}. "
            "Decide for one, and remove the chains of the other with state absent and its backend")


def _some(chains: Sequence[str]) -> str:
    more = f" and {len(chains) - 3} more" if len(chains) > 3 else ""
    return ", ".join(chains[:3]) + more
