# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``iptables-save`` text to tables and back. Counters and comment lines are not part of a state."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import SaveFormatError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Table, Tables, outside_quotes
from ansible_collections.metal.nodenet.plugins.module_utils.shown import one_line

# They begin with a line feed and not with ^, for a literal is found much faster in a dump of many megabytes.
_comment = re.compile(r"\n#(.*)")
#: Counters of a built-in chain, which a save tool prints anew each time.
_counters = re.compile(r"(\n:\S+ [A-Z]+) \[\d+:\d+\](?=\n)")


class Dump:
    """The output of ``iptables-save``, and what the tool had to say. It is parsed when it is first looked into."""

    def __init__(self, text: str, notices: Iterable[str] = ()) -> None:
        self.text = text
        self._tables: Tables | None = None
        self.notices = tuple(dict.fromkeys([*_notices(text), *notices]))

    @property
    def tables(self) -> Tables:
        """The tables. Raises ``SaveFormatError`` where the text is not a whole dump."""
        if self._tables is None:
            self._tables = parse(self.text)
        return self._tables

    @property
    def digest(self) -> str:
        """The same for the same rules and policies in the same order. Known without parsing."""
        text = _counters.sub(r"\1", _comment.sub("", "\n" + self.text))
        return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()

    def has_chain(self, prefixes: Sequence[str]) -> bool:
        """Whether there is a chain with a name of that kind. Known without parsing."""
        return any(f"\n:{prefix}" in self.text for prefix in prefixes)


def parse(text: str) -> Tables:
    """Parse the output of ``iptables-save``. Blocks of the same table are merged.

    Raises ``SaveFormatError`` for anything that is not a whole dump: a missing ``COMMIT``, an unknown line.
    """
    tables: Tables = {}
    name = ""
    chains: dict[str, list[str]] = {}
    policies: dict[str, str] = {}
    lines = iter(text.split("\n"))
    for line in lines:
        first = line[:1]
        if first in ("-", "["):
            # Both checks are cheap and settle nearly every line.
            if line.count('"') & 1 or "\\" in line:
                line = _whole_rule(line, lines)
            if first == "[":
                line = line.partition("] ")[2]
            words = line.split(" ", 2)
            operation, chain, rule = words if len(words) == 3 else (*words, "", "")[:3]
            if operation != "-A" or chain not in chains:
                raise SaveFormatError(f"not a rule of a chain that table {one_line(name) or 'none'} declares: "
                                      f"{line[:200]!r}")
            chains[chain].append(rule)
        elif first == ":":
            _declare(chains, policies, line, name)
        elif first == "*":
            if name:
                raise SaveFormatError(f"table {one_line(name)} has no COMMIT before table {one_line(line[1:])}: the "
                                      "dump is cut")
            name = line[1:].strip()
            chains, policies = tables.setdefault(name, Table({}, {}))
        elif line == "COMMIT":
            name, chains, policies = "", {}, {}
        elif line and first != "#":
            raise SaveFormatError(f"not a line of an iptables-save dump: {line[:200]!r}")
    if name:
        raise SaveFormatError(f"table {one_line(name)} has no COMMIT: the dump is cut")
    return tables


def _whole_rule(line: str, lines: Iterator[str]) -> str:
    """A rule with the lines that follow it, as far as it goes: a comment of somebody else may have line feeds in it."""
    while not outside_quotes(line):
        following = next(lines, None)
        if following is None:
            raise SaveFormatError(f"rule with an open quote at the end of the dump: {line[:200]!r}")
        line += "\n" + following
    return line


def _declare(chains: dict[str, list[str]], policies: dict[str, str], line: str, table: str) -> None:
    fields = line[1:].split(" ")
    if not table or len(fields) < 2:
        raise SaveFormatError(f"not a chain declaration: {line[:200]!r}")
    if '"' in fields[0]:
        # The tools allow it, but then cannot say where a rule for it ends.
        raise SaveFormatError(f"table {table}: the name of chain {one_line(fields[0])} has a quote "
                              "in it; rename that chain")
    chains.setdefault(fields[0], [])
    if fields[1] != "-":
        policies[fields[0]] = fields[1]


def _notices(text: str) -> list[str]:
    """What comment lines say, but those that head and tail every table."""
    found = []
    for line in _comment.finditer("\n" + text):
        said = line.group(1).lstrip("# ").strip()
        # The line feed before it makes up for the one put in front of all.
        if said and not said.startswith(("Generated by", "Completed on")) and outside_quotes(text[:line.start()]):
            found.append(said)
    return found


def write(tables: Tables) -> str:
    """The dump text of ``tables``: one block and one ``COMMIT`` per table, counters zero."""
    out: list[str] = []
    for name, table in tables.items():
        out.append("*" + name)
        out += [f":{chain} {table.policies.get(chain, '-')} [0:0]" for chain in table.chains]
        for chain, rules in table.chains.items():
            out += [append_line(chain, rule) for rule in rules]
        out.append("COMMIT")
    return "\n".join(out) + "\n" if out else ""


def append_line(chain: str, rule: str) -> str:
    """``-A CHAIN RULE``, for a rule without any argument too."""
    return f"-A {chain} {rule}" if rule else f"-A {chain}"


def chain_lines(chain: str, rules: Sequence[str]) -> str:
    """The lines of all rules of a chain, each with its end."""
    if "" in rules:
        return "".join([append_line(chain, rule) + "\n" for rule in rules])
    # Joined as a whole, for there may be very many.
    start = f"-A {chain} "
    return start + f"\n{start}".join(rules) + "\n" if rules else ""
