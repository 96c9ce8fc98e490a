# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the binaries of iptables: one family, one backend, one save, one restore at a time.

Nothing else starts an iptables process. A read that fails is an error, never an empty state.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import (
    LockError,
    SaveFormatError,
    ToolError,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, target_of
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import Dump
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.tools import run_tool
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import Transaction

NFT = "nft"
LEGACY = "legacy"
BACKENDS = (NFT, LEGACY)

LOCK_FILE = "/run/xtables.lock"

_LINE = re.compile(r"line:? (\d+)")
_INCOMPATIBLE = re.compile(r"[Tt]able `?(\w+)'? is incompatible")
_VERSION = re.compile(r"v(\d+)\.(\d+)(?:\.(\d+))?")
_PLAIN_TARGETS = frozenset({"ACCEPT", "DROP", "RETURN", ""})
_EXCERPT_LINES = 20


class Iptables:
    """The tools of one family and backend: ``paths`` are those of save, restore and, if there is one, the plain one."""

    def __init__(self, family: str, backend: str, paths: tuple[str, str, str | None], version: tuple[int, ...],
                 lock_timeout: int) -> None:
        self.family = family
        self.backend = backend
        self.version = version
        self._save, self._restore, self._plain = paths
        self._lock_timeout = lock_timeout

    @property
    def random_fully(self) -> bool:
        """Whether this binary knows ``MASQUERADE --random-fully``."""
        return self.version >= (1, 6, 2)

    @property
    def sorts_by_insertion(self) -> bool:
        """Whether this binary is fast at reading many chains only if they were made in falling order of their names.

        Up to 1.8.7, the nft tools put each chain that they read into a sorted list, which they walk from its head.
        Later ones use a quicksort, which is fast where there is no order.
        """
        return self.backend == NFT and () < self.version < (1, 8, 8)

    def save(self, tables: Sequence[str]) -> Dump:
        """Read everything. Raises where a table of ``tables`` cannot be shown in full."""
        argv = [self._save]
        done = run_tool(argv)
        dump = Dump(done.stdout, (line.lstrip("# ") for line in done.stderr.splitlines() if line.strip()))
        for notice in dump.notices:
            hidden = _INCOMPATIBLE.search(notice)
            if hidden and hidden.group(1) in tables:
                raise SaveFormatError(
                    f"{self.family}: table {hidden.group(1)} holds rules which {os.path.basename(argv[0])} cannot show "
                    f"({notice}); they were written with nft itself, and reading around them would be a guess")
        return dump

    @property
    def lists_chains(self) -> bool:
        """Whether :meth:`rules_of` can be asked."""
        return self._plain is not None

    def rules_of(self, table: str, chain: str) -> list[str] | None:
        """The rules of one chain, None where there is no such chain: much less than :meth:`save` on a large node.

        Only for chains that could be read before: one that the tool cannot show counts as not there.
        """
        lines = self._list(table, chain)
        start = f"-A {chain} "
        return None if lines is None else [line[len(start):] for line in lines if line.startswith(start)]

    def first_rule(self, table: str, chain: str) -> str | None:
        """The first rule of a chain, ``""`` where it is empty, None where there is no such chain."""
        lines = self._list(table, chain, "1")
        return None if lines is None else next((line for line in lines if line.startswith("-A ")), "")

    def _list(self, table: str, chain: str, *number: str) -> list[str] | None:
        argv = [self._plain or base_name(self.family), "-w", str(self._lock_timeout), "-t", table, "-S", chain, *number]
        try:
            return run_tool(argv).stdout.split("\n")
        except ToolError as error:
            # Only 1 means that it is not there; the lock and the kernel have codes of their own. iptables-nft 1.8.9
            # calls a chain that is not there incompatible.
            if error.rc == 1 and ("No chain" in error.stderr or "incompatible" in error.stderr):
                return None
            raise

    def restore(self, transaction: Transaction) -> None:
        """Load one transaction. The tool commits its tables one by one, each wholly or not at all."""
        # As two words: the restore tool refuses -w5.
        argv = [self._restore, "-w", str(self._lock_timeout), "--noflush"]
        try:
            run_tool(argv, transaction.text)
        except ToolError as error:
            raise _explain(error, transaction, self.family, self._lock_timeout) from None


def tool_version(path: str) -> tuple[str, tuple[int, ...]]:
    """Backend and version of a save tool, such as ``("nft", (1, 8, 9))``. Before 1.8 there was only legacy."""
    text = run_tool([path, "--version"]).stdout
    found = _VERSION.search(text)
    version = tuple(int(part or 0) for part in found.groups()) if found else ()
    return (NFT if "nf_tables" in text else LEGACY), version


def _explain(error: ToolError, transaction: Transaction, family: str, lock_timeout: int) -> ToolError:
    """The error with the table and the lines that are to blame."""
    if "xtables lock" in error.stderr:
        return LockError(f"{family}: another program held {LOCK_FILE} for more than {lock_timeout} s "
                         f"(lock_timeout)", error.argv, error.rc, error.stderr)
    lines = transaction.text.split("\n")
    named = _LINE.search(error.stderr)
    line = int(named.group(1)) if named else None
    table, excerpt = _suspects(lines, line)
    where = f" table {table}" if table else ""
    shown = "".join("\n  " + text for text in excerpt)
    return ToolError(f"{family}{where}: {error}{shown}", error.argv, error.rc, error.stderr, table, line, excerpt)


def _suspects(lines: Sequence[str], line: int | None) -> tuple[str, list[str]]:
    """Table and numbered input lines behind a failure at ``line``.

    The legacy tool names only COMMIT; the kernel then refused one of the rules with a target or match of its own.
    """
    if line is None or not 0 < line <= len(lines):
        return "", []
    start = next((at for at in range(line - 1, -1, -1) if lines[at].startswith("*")), 0)
    table = lines[start][1:]
    if lines[line - 1] != "COMMIT":
        return table, [f"{line}: {lines[line - 1]}"]
    declared = {text[1:].split(" ", 1)[0] for text in lines[start:line] if text.startswith(":")}
    suspects = [f"{at + 1}: {lines[at]}" for at in range(start, line)
                if lines[at].startswith(("-A ", "-I ", "-D "))
                and target_of(lines[at]) not in _PLAIN_TARGETS | declared]
    return table, suspects[:_EXCERPT_LINES]


def base_name(family: str) -> str:
    """``iptables`` or ``ip6tables``."""
    return "iptables" if family == IPV4 else "ip6tables"
