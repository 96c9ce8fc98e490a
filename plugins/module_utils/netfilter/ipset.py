# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs ``ipset``: lists own sets by name, and loads a restore session.

Sets of others are never listed: one of a revision that this binary does not know must not stand in the way.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import ToolError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.tools import find_tool, run_tool
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

_ERROR_LINE = re.compile(r"[Ee]rror in line (\d+)")
_MAXELEM = re.compile(r"\bmaxelem ([0-9]{1,10})\b")
_FAMILY = re.compile(r"\bfamily (\w+)")
_ENTRIES = re.compile(r"(?m)^Number of entries: (\d+)")
_PLAIN_TYPES = ("hash:net", "hash:ip")
_plain_member = re.compile(r"[0-9a-fA-F.:]+(?:/[0-9]+)?").fullmatch
_number = re.compile(r"[0-9]{1,10}").fullmatch
_UNREADABLE = "not supported by userspace"
_IN_USE = "in use by a kernel component"
#: Seconds between tries to take a set away which the kernel still holds.
_PAUSES = (0.01, 0.05, 0.1, 0.2, 0.5, 1.0)


class SetState(NamedTuple):
    """One set as the kernel has it."""

    type: str
    #: ``inet`` or ``inet6``.
    family: str
    maxelem: int
    members: frozenset[str]
    #: How many rules and sets refer to it.
    references: int = 0
    #: Why it cannot be read (its type's revision is newer than the tool); the other fields say nothing then.
    unreadable: str = ""


class Ipset:
    """The ``ipset`` tool of this node."""

    def __init__(self) -> None:
        self._path = find_tool("ipset")

    def read(self, names: Iterable[str], needed: bool = True) -> dict[str, SetState]:
        """Those of ``names`` that exist, with one listing each. Raises ``ToolError``.

        ``needed``: False where a node without the tool is a node without these sets.
        """
        wanted = list(names)
        if not wanted or (self._path is None and not needed):
            return {}
        there = set(self._run(["list", "-name"]).split())
        return {name: self._list(name) for name in wanted if name in there}

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """How many members those of ``names`` have that exist, without reading the members."""
        wanted = list(names)
        if not wanted or self._path is None:
            return {}
        there = set(self._run(["list", "-name"]).split())
        heads = {name: self._run(["list", name, "-terse"]) for name in wanted if name in there}
        found = {name: _ENTRIES.search(head) for name, head in heads.items()}
        return {name: int(number.group(1)) for name, number in found.items() if number}

    def restore(self, text: str) -> None:
        """Carry out the lines of a session in order. It stops at the first that fails; earlier ones stay."""
        try:
            self._run(["restore"], text)
        except ToolError as error:
            raise _explain(error, text) from None

    def destroy(self, name: str) -> None:
        """Take a set away. The kernel may hold it for a moment after the last rule that named it is gone."""
        for pause in _PAUSES:
            try:
                self._run(["destroy", name])
                return
            except ToolError as error:
                if _IN_USE not in error.stderr:
                    raise
            time.sleep(pause)
        self._run(["destroy", name])

    def _list(self, name: str) -> SetState:
        try:
            return parse_list(self._run(["list", name]))
        except ToolError as error:
            if _UNREADABLE in error.stderr:
                return SetState("", "", 0, frozenset(), unreadable=error.stderr)
            raise

    def _run(self, words: Sequence[str], text: str | None = None) -> str:
        argv = [self._path or "ipset", *words]
        if self._path is None:
            raise ToolError("no ipset on this node: install the ipset package", argv)
        return run_tool(argv, text).stdout


def parse_list(text: str) -> SetState:
    """What ``ipset list NAME`` says of one set. Raises ``ToolError`` for what is no such list."""
    head, _members, tail = text.partition("\nMembers:\n")
    fields = dict(line.split(": ", 1) for line in head.split("\n") if ": " in line)
    header = fields.get("Header", "")
    maxelem, family = _MAXELEM.search(header), _FAMILY.search(header)
    references = fields.get("References", "0")
    kind = fields.get("Type", "")
    members = frozenset(line.split(" ", 1)[0] for line in tail.split("\n") if line)
    # What is of another type is never written member by member.
    odd = "" if kind not in _PLAIN_TYPES else next((member for member in members if not _plain_member(member)), "")
    odd = odd or next((line for line in tail.split("\n") if " nomatch" in line), "")
    if odd or not _number(references):
        raise ToolError(f"the list of set {shown(fields.get('Name', ''))} has something in it that this collection "
                        f"cannot read: {shown(odd or references)}", ["ipset", "list"])
    return SetState(kind, family.group(1) if family else "", int(maxelem.group(1)) if maxelem else 0,
                    members, int(references))


def _explain(error: ToolError, text: str) -> ToolError:
    named = _ERROR_LINE.search(error.stderr)
    lines = text.splitlines()
    line = int(named.group(1)) if named else None
    excerpt = [f"{line}: {lines[line - 1]}"] if line and 0 < line <= len(lines) else []
    shown = "".join("\n  " + shown for shown in excerpt)
    return ToolError(f"{error}{shown}", error.argv, error.rc, error.stderr, "", line, excerpt)
