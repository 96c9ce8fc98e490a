# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Other programs that write the same state on this node: they are found before they are fought."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.netlink import (
    NETLINK_NETFILTER,
    Netlink,
    attributes,
)

_NFT_GET_TABLE = 0xA01
_NFTA_TABLE_NAME = 1
_NFGENMSG = bytes(4)


class Agent(NamedTuple):
    """A program found at work in this network namespace."""

    name: str
    #: How it shows: ``process 812``, ``interface kube-ipvs0``, …
    sign: str


def running(names: Sequence[str]) -> list[Agent]:
    """Processes of this network namespace whose program is called one of ``names``."""
    here = _namespace("self")
    found = []
    for pid in sorted(_processes(), key=int):
        name = _program(pid, names)
        if name and _namespace(pid) == here:
            found.append(Agent(name, f"process {pid}"))
    return found


def interfaces() -> set[str]:
    """Names of the interfaces of this network namespace."""
    try:
        with open("/proc/net/dev", encoding="utf-8") as table:
            return {line.partition(":")[0].strip() for line in table if ":" in line}
    except OSError:
        return set()


def nft_tables() -> list[str]:
    """Names of the nftables tables of this network namespace; none where the kernel has no nftables."""
    try:
        with Netlink(NETLINK_NETFILTER) as link:
            messages = link.dump(_NFT_GET_TABLE, _NFGENMSG)
    except OSError:
        return []
    names = (dict(attributes(message, len(_NFGENMSG))).get(_NFTA_TABLE_NAME, b"") for message in messages)
    return sorted({name.rstrip(b"\0").decode("utf-8", "replace") for name in names})


def _processes() -> Iterator[str]:
    return (entry for entry in os.listdir("/proc") if entry.isdigit())


def _namespace(pid: str) -> str | None:
    try:
        return os.readlink(f"/proc/{pid}/ns/net")
    except OSError:
        return None


def _program(pid: str, names: Sequence[str]) -> str | None:
    """The one of ``names`` that a process is, by its command name or the path it was started with."""
    try:
        with open(f"/proc/{pid}/comm", encoding="utf-8", errors="replace") as file:
            command = file.read().strip()
        with open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as file:
            path = file.read().split("\0", 1)[0]
    except OSError:
        return None
    for name in names:
        if name in (command, os.path.basename(path)):
            return name
    return None
