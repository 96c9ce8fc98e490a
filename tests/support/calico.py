# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Calico modules on a test node: what is ours there, sets included, and what is not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from ansible_collections.metal.nodenet.plugins.modules import (
    calico_host_ips,
    calico_masq,
    floating_ip,
    service_loop_block,
)

from support.node import Node, Result

#: What the kernel chooses for a set.
_CHOSEN = re.compile(r" (hashsize \d+|bucketsize \d+|initval 0x[0-9a-f]+)")
_EMPTY = re.compile(r"\*\w+\n(:[A-Z]+ ACCEPT \[0:0\]\n)*COMMIT\n")
_TABLE = re.compile(r"(?ms)^\*.*?^COMMIT\n")
_OURS = re.compile(r"^:cali-|^-A cali-|-j cali-[A-Za-z-]+$")

MASQ: dict[str, Any] = {"pools": [{"cidr": "10.244.0.0/16", "masquerade": True}, {"cidr": "10.245.0.0/16"}]}
FLOATING: dict[str, Any] = {"mappings": [{"external": "198.51.100.10", "internal": "10.244.1.5"}]}
LOOPS: dict[str, Any] = {"cidrs": ["10.96.0.0/12", "fd5f::/119"]}

#: Each module with arguments that give it something to do in both families.
MODULES: dict[ModuleType, dict[str, Any]] = {
    calico_masq: MASQ, floating_ip: FLOATING, service_loop_block: LOOPS, calico_host_ips: {"forward_check": True}}


def sets(one: Node) -> list[str]:
    """All sets of the node and their members, in one order, without what the kernel chooses."""
    return sorted(_CHOSEN.sub("", line) for line in one.exec("ipset", "save").splitlines())


def members(one: Node, name: str) -> list[str]:
    """The members of a set that must be there."""
    return sorted(one.exec("ipset", "list", name).partition("Members:\n")[2].split())


def everything(one: Node) -> dict[str, Any]:
    """Both families' dumps and all sets. Tables are in one order, those without anything in them left out."""
    dumps = {family: sorted(_TABLE.findall(_EMPTY.sub("", dump))) for family, dump in one.saves().items()}
    return {**{family: "".join(tables) for family, tables in dumps.items()}, "sets": sets(one)}


def four_ways(one: Node, module: ModuleType, **arguments: Any) -> Result:
    """As ``Node.four_ways``; the sets of the node are looked at, too."""
    before = sets(one)
    one.module(check=True, module=module, **arguments)
    assert sets(one) == before, "check mode wrote a set"
    result = one.four_ways(module=module, **arguments)
    after = sets(one)
    assert not changed(one, module=module, **arguments)
    assert sets(one) == after
    return result


def changed(one: Node, **arguments: Any) -> bool:
    """Run a module, which must succeed, and say whether it changed anything."""
    result = one.module(**arguments)
    assert not result.get("failed"), result["msg"]
    return bool(result["changed"])


def rules(one: Node, table: str, *chains: str, family: str = "ipv4") -> list[str]:
    """The rules of a table, or of some of its chains, in the order of the dump."""
    found = [line for line in table_of(one, table, family) if line.startswith("-A")]
    return [line for line in found if not chains or line.split(" ", 2)[1] in chains]


def table_of(one: Node, table: str, family: str = "ipv4") -> list[str]:
    """The lines of one table."""
    _before, found, rest = one.save(family).partition(f"*{table}\n")
    return rest.partition("COMMIT\n")[0].splitlines() if found else []


def foreign_part(dump: str) -> list[str]:
    """What is left of a dump without chains of Calico's and jumps to them. Empty tables are no state."""
    lines = [line for line in dump.splitlines() if not _OURS.search(line)]
    return _EMPTY.sub("", "\n".join(lines) + "\n").splitlines()


def foreign_parts(one: Node) -> dict[str, list[str]]:
    """The same of both families."""
    return {family: foreign_part(dump) for family, dump in one.saves().items()}


def apply(one: Node, modules: Sequence[ModuleType] = tuple(MODULES), **options: Any) -> None:
    """Run these modules, with the arguments that they have here."""
    for module in modules:
        result = one.module(module=module, **MODULES[module], backend=one.backend, **options)
        assert not result.get("failed"), result["msg"]


def settle(one: Node) -> None:
    """Take the kernel's own addresses away, which come a second after an interface does, or later."""
    for name in ("eth0", "eth0-far"):
        one.ip("link", "set", name, "addrgenmode", "none")
        one.ip("-6", "addr", "flush", "dev", name, "scope", "link")


def shown(result: Result, header: str) -> list[str]:
    """The difference of one table as ``-line`` and ``+line``, headings left out."""
    entries = [entry for entry in result["diff"] if entry["after_header"] == header]
    assert len(entries) == 1, [entry["after_header"] for entry in result["diff"]]
    before, after = entries[0]["before"].splitlines(), entries[0]["after"].splitlines()
    return [f"-{line}" for line in before if line not in after] + [f"+{line}" for line in after if line not in before]
