# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of the engine. ``main()`` of a module turns each of them into ``fail_json`` once."""

from __future__ import annotations

from collections.abc import Sequence


class NetfilterError(Exception):
    """Base of all errors that the engine raises on purpose."""


class SaveFormatError(NetfilterError):
    """A dump that is not complete or not in ``iptables-save`` form. Reading fails closed."""


class PlanError(NetfilterError):
    """A desired state that must not be written; nothing has been touched."""


class BackendError(NetfilterError):
    """The node's backends are mixed, absent, or not the one that was asked for.

    ``missing`` is True where the node has no tools for the family at all.
    """

    def __init__(self, message: str, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class ToolError(NetfilterError):
    """A tool of the node failed.

    Attributes: ``argv``; ``rc`` (None where it did not run at all); ``stderr``; ``table`` and ``line`` (1-based number
    of the line of its input) where the tool named one; ``excerpt``, the numbered lines of its input that are suspect.
    """

    def __init__(self, message: str, argv: Sequence[str], rc: int | None = None, stderr: str = "",
                 table: str = "", line: int | None = None, excerpt: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.argv = list(argv)
        self.rc = rc
        self.stderr = stderr
        self.table = table
        self.line = line
        self.excerpt = list(excerpt)


class LockError(ToolError):
    """Another program held the xtables lock for longer than ``lock_timeout``."""


class FlowError(NetfilterError):
    """The kernel's table of flows could not be read or changed."""
