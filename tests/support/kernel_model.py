# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What ``iptables-restore --noflush`` does to a kernel, in a hundred lines: fast enough for thousands of examples.

``tests/unit/netfilter/test_kernel_model.py`` holds it against the real tools of both backends. It shares no parser
with the engine. It does not know how ``iptables-save`` spells a rule: it keeps the texts that it is given, or what
``saved`` makes of them.
"""

from __future__ import annotations

import functools
import shlex
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Table, Tables

BUILT_IN = {
    "nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"),
    "filter": ("INPUT", "FORWARD", "OUTPUT"),
}
#: Targets that are no chains.
EXTENSIONS = frozenset({"ACCEPT", "DROP", "RETURN", "MARK", "MASQUERADE", "DNAT", "SNAT", "REJECT", "LOG", "CONNMARK"})


class ModelError(Exception):
    """The kernel, or the tool, refuses the block of a table."""


class Unreliable(ModelError):
    """An input that iptables-nft-restore 1.8.9 does not always do right, so that nothing may ask for it.

    It counts the places of ``-I`` in a chain that the same block emptied as if the old rules were still there, and does
    not always find a rule to delete that the same block added.
    """


class _Rule(NamedTuple):
    text: str
    #: Added by the very block that is being read.
    fresh: bool = False


class _Table:
    def __init__(self, chains: dict[str, list[_Rule]], policies: dict[str, str]) -> None:
        self.chains = chains
        self.policies = policies
        #: Chains that the block being read has emptied of rules.
        self.emptied: set[str] = set()

    def copy(self) -> _Table:
        return _Table({name: list(rules) for name, rules in self.chains.items()}, dict(self.policies))


class Kernel:
    """One family's tables."""

    def __init__(self, tables: Tables | None = None, saved: Callable[[str], str] = str) -> None:
        self._saved = saved
        self._tables = {name: _Table({chain: [] for chain in chains}, dict.fromkeys(chains, "ACCEPT"))
                        for name, chains in BUILT_IN.items()}
        for name, table in (tables or {}).items():
            self._tables[name] = _Table({chain: [_Rule(text) for text in rules]
                                         for chain, rules in table.chains.items()}, dict(table.policies))
            _check(self._tables[name])

    @property
    def tables(self) -> Tables:
        """A copy of the state, as a parsed ``iptables-save`` has it."""
        return {name: Table({chain: [rule.text for rule in rules] for chain, rules in table.chains.items()},
                            dict(table.policies)) for name, table in self._tables.items()}

    def restore(self, text: str) -> None:
        """Apply block by block. Raises ``ModelError`` at the first block that is refused; earlier ones stay."""
        for block in blocks(text):
            self.restore_block(block)

    def restore_block(self, text: str) -> None:
        """Apply the block of one table, wholly or not at all."""
        lines = text.splitlines()
        if not lines or lines[0][:1] != "*" or lines[-1] != "COMMIT":
            raise ModelError(f"not a block of one table: {text!r}")
        name = lines[0][1:]
        if name not in self._tables:
            raise ModelError(f"no table {name}")
        table = self._tables[name].copy()
        for line in lines[1:-1]:
            self._apply(table, line)
        _check(table)
        self._tables[name] = _Table({chain: [_Rule(rule.text) for rule in rules]
                                     for chain, rules in table.chains.items()}, table.policies)

    def _apply(self, table: _Table, line: str) -> None:
        if line.startswith(":"):
            chain, policy, counters = line[1:].split(" ")
            assert counters == "[0:0]", line
            _declare(table, chain, policy)
            return
        verb, _space, rest = line.partition(" ")
        chain, _space, rule = rest.partition(" ")
        if chain not in table.chains:
            raise ModelError(f"no chain {chain}: {line}")
        rules = table.chains[chain]
        if verb == "-X":
            _delete_chain(table, chain)
        elif verb == "-A":
            rules.append(_new(table, self._saved(rule)))
        elif verb in ("-I", "-D") and chain in table.emptied:
            raise Unreliable(f"{chain} was emptied above: {line}")
        elif verb == "-I":
            number, _space, rule = rule.partition(" ")
            if not 1 <= int(number) <= len(rules) + 1:
                raise ModelError(f"no such position: {line}")
            rules.insert(int(number) - 1, _new(table, self._saved(rule)))
        elif verb == "-D":
            at = next((at for at, found in enumerate(rules) if found.text == self._saved(rule)), None)
            if at is None:
                raise ModelError(f"no such rule: {line}")
            if rules[at].fresh:
                raise Unreliable(f"added above: {line}")
            del rules[at]
        else:
            raise ModelError(f"not understood: {line}")


def blocks(text: str) -> Iterator[str]:
    """The blocks of an input, each from ``*table`` to ``COMMIT``."""
    block: list[str] = []
    for line in text.splitlines():
        block.append(line)
        if line == "COMMIT":
            yield "\n".join(block) + "\n"
            block = []
    if block:
        raise ModelError(f"no COMMIT at the end: {block!r}")


@functools.lru_cache(maxsize=4096)
def target(rule: str) -> str:
    """The target of a rule, ``""`` if it has none."""
    words = shlex.split(rule)
    for at, word in enumerate(words[:-1]):
        if word in ("-j", "-g") and words[at - 1:at] != ["--comment"]:
            return words[at + 1]
    return ""


def reachable(table: Table) -> dict[str, list[str]]:
    """The chains that a packet can get to, with their rules: the built-in ones and all that they lead to."""
    found: dict[str, list[str]] = {}
    waiting = list(table.policies)
    while waiting:
        chain = waiting.pop()
        if chain not in found:
            found[chain] = list(table.chains[chain])
            waiting += [name for name in map(target, found[chain]) if name in table.chains]
    return found


def _declare(table: _Table, chain: str, policy: str) -> None:
    if (chain in table.policies) != (policy != "-"):
        raise ModelError(f"{chain} with policy {policy}")
    if policy == "-":
        if table.chains.get(chain):
            table.emptied.add(chain)
        table.chains[chain] = []
    else:
        table.policies[chain] = policy


def _delete_chain(table: _Table, chain: str) -> None:
    if chain in table.policies:
        raise ModelError(f"{chain} is built in")
    if table.chains[chain]:
        raise ModelError(f"{chain} is not empty")
    users = [name for name, rules in table.chains.items() if any(target(rule.text) == chain for rule in rules)]
    if users:
        raise ModelError(f"{chain} is used by {users}")
    del table.chains[chain]


def _new(table: _Table, rule: str) -> _Rule:
    name = target(rule)
    if name in table.policies or (name and name not in EXTENSIONS and name not in table.chains):
        raise ModelError(f"no chain {name} to go to: {rule}")
    return _Rule(rule, fresh=True)


def _check(table: _Table) -> None:
    """Refuse a loop that a packet could get into. (One that nothing leads to is legal.)"""
    below = {chain: {name for name in (target(rule.text) for rule in rules) if name in table.chains}
             for chain, rules in table.chains.items()}
    done: set[str] = set()

    def visit(chain: str, above: frozenset[str]) -> None:
        if chain in above:
            raise ModelError(f"a loop through {chain}")
        if chain not in done:
            for name in below[chain]:
                visit(name, above | {chain})
            done.add(chain)

    for chain in table.policies:
        visit(chain, frozenset())
