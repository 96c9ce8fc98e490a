# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Quoting: what save writes, restore reads."""

from __future__ import annotations

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.quoting import (
    clip_comment,
    quote,
    tokenise,
    unquote,
)
from hypothesis import given
from hypothesis import strategies as st

WRITABLE = st.text(st.characters(blacklist_characters="\n\r\0", blacklist_categories=("Cs",)))


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("web_1-a", "web_1-a"),
        ("", '""'),
        ("default/web", '"default/web"'),
        ("a:b", '"a:b"'),
        ("it's a\\b", '"it\\\'s a\\\\b"'),
        ('say "hi"', '"say \\"hi\\""'),
        ("grün", '"grün"'),
    ],
)
def test_f012_quote_writes_what_save_prints(value: str, written: str) -> None:
    assert quote(value) == written
    assert unquote(written) == value


@given(WRITABLE)
def test_f012_quoting_is_undone_by_reading(value: str) -> None:
    assert unquote(quote(value)) == value
    assert tokenise(f"-m comment --comment {quote(value)} -j X")[3][0] == value


@pytest.mark.parametrize("value", ["a\nb", "a\rb", "a\0b", "\n"])
def test_f013_line_breaks_are_refused(value: str) -> None:
    with pytest.raises(ValueError, match="line break"):
        quote(value)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("-A X  -j\tY ", [("-A", False), ("X", False), ("-j", False), ("Y", False)]),
        ('--comment ""', [("--comment", False), ("", True)]),
        ('a"b c"d e', [("ab c", True), ("d", False), ("e", False)]),
        (r"a\b 'c d'", [("a\\b", False), ("'c", False), ("d'", False)]),
        (r'"a\"b\\" c', [('a"b\\', True), ("c", False)]),
        ('"handle IPs; NOTE: keep first"', [("handle IPs; NOTE: keep first", True)]),
        ('"a\u00a0b" c\u00a0d', [("a\u00a0b", True), ("c\u00a0d", False)]),
    ],
)
def test_f008_words_are_those_of_restore(line: str, words: list[tuple[str, bool]]) -> None:
    assert tokenise(line) == words


@pytest.mark.parametrize("line", ['"', 'a "b', '"a" "', 'a"', '"a\\"', '"a" b"c', 'a "b" "c d'])
def test_an_open_quote_is_an_error(line: str) -> None:
    with pytest.raises(ValueError, match="unterminated"):
        tokenise(line)


@pytest.mark.parametrize("word", ["a b", "", '"a" b'])
def test_unquote_wants_one_word(word: str) -> None:
    with pytest.raises(ValueError, match="not one word"):
        unquote(word)


@given(st.text(st.characters(blacklist_categories=("Cs",)), max_size=300))
def test_f054_comments_are_cut_at_a_character(text: str) -> None:
    cut = clip_comment(text)
    assert text.startswith(cut)
    assert len(cut.encode()) <= 255
    if cut != text:
        assert len((cut + text[len(cut)]).encode()) > 255


def test_f054_multibyte_comment() -> None:
    assert clip_comment("é" * 128) == "é" * 127
