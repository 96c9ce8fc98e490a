# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quoting as ``iptables-save`` writes it and ``iptables-restore`` reads it.

Save puts a value in double quotes unless it consists of ASCII letters, digits, ``_`` and ``-`` only, and puts a
backslash before ``"``, ``'`` and ``\\``. Restore knows double quotes only, a backslash means something inside quotes
only, and a closing quote ends the word even where no blank follows.
"""

from __future__ import annotations

import re

from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

#: The kernel keeps 255 bytes of a comment and drops the rest without a word.
COMMENT_BYTES = 255

_bare = re.compile(r"[A-Za-z0-9_-]+").fullmatch
_special = re.compile(r"[\"'\\]")
_word = re.compile(r'([^ \t\n"]*)"((?:[^"\\]|\\.)*)"|([^ \t\n"]+)', re.DOTALL)
_escaped = re.compile(r"\\(.)", re.DOTALL)


def quote(text: str) -> str:
    """The text as one word of a rule, spelled as ``iptables-save`` spells it.

    Raises ``ValueError`` for a line break or NUL: the format has no way to write them.
    """
    if _bare(text):
        return text
    if "\n" in text or "\r" in text or "\0" in text:
        raise ValueError(f"a line break or NUL cannot be written in a rule: {shown(text)}")
    return '"' + _special.sub(r"\\\g<0>", text) + '"'


def unquote(word: str) -> str:
    """The value of one word as it stands in a rule; the inverse of :func:`quote`.

    Raises ``ValueError`` if the text is not exactly one word.
    """
    words = tokenise(word)
    if len(words) != 1:
        raise ValueError(f"not one word: {shown(word)}")
    return words[0][0]


def tokenise(line: str) -> list[tuple[str, bool]]:
    """The words of a line as ``iptables-restore`` splits them: ``(value, was_quoted)`` each.

    Raises ``ValueError`` for a quote that is never closed.
    """
    if '"' not in line:
        return [(word, False) for word in line.replace("\t", " ").replace("\n", " ").split(" ") if word]
    words: list[tuple[str, bool]] = []
    end = 0
    for match in _word.finditer(line):
        if line.find('"', end, match.start()) >= 0:
            break
        end = match.end()
        before, quoted, plain = match.groups()
        if plain is not None:
            words.append((plain, False))
        else:
            words.append((before + _escaped.sub(r"\1", quoted) if "\\" in quoted else before + quoted, True))
    if line.find('"', end) >= 0:
        raise ValueError(f"unterminated quote: {shown(line)}")
    return words


def clip_comment(text: str) -> str:
    """The text cut to what the kernel keeps of a comment (255 bytes of UTF-8), never inside a character."""
    if len(text) * 4 <= COMMENT_BYTES:
        return text
    data = text.encode()
    if len(data) <= COMMENT_BYTES:
        return text
    return data[:COMMENT_BYTES].decode(errors="ignore")
