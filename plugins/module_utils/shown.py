# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How a message shows a value that it is about: as Python writes it, and never more of it than a person reads."""

from __future__ import annotations

import reprlib

#: Characters.
_MOST = 300
#: Larger integers are not decimal: Python refuses to write very long ones, and takes long for long ones.
_DECIMAL_BITS = 256


class _Short(reprlib.Repr):
    """Cuts texts, long lists and deep nesting while it writes, so that the size of a value costs nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.maxlevel = 5
        self.maxlist = self.maxtuple = self.maxdict = self.maxset = self.maxfrozenset = 10
        self.maxother = _MOST

    def repr_str(self, x: str, level: int) -> str:
        return repr(x) if len(x) <= _MOST else f"{x[:_MOST]!r}…"

    def repr_int(self, x: int, level: int) -> str:
        return repr(x) if x.bit_length() <= _DECIMAL_BITS else hex(x)


_short = _Short()


def one_line(text: object) -> str:
    """A text, or the message of somebody else's error, as one line of printable characters, cut where it is long."""
    if not isinstance(text, (str, Exception)):
        return shown(text)
    text = " ".join(str(text)[:4 * _MOST].split())
    if not text.isprintable():
        text = "".join(char if char.isprintable() else repr(char)[1:-1] for char in text)
    return text if len(text) <= _MOST else text[:_MOST] + "…"


def shown(value: object) -> str:
    """``repr`` of a value for a message, cut where it is long, deep or large; one line, whatever is in it."""
    text = _short.repr(value)
    return text if len(text) <= _MOST else text[:_MOST] + "…"
