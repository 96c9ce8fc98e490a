# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Values that nobody should put into an object, and objects with such values in them.

What is too large or too deep to be drawn and shown is drawn as a :class:`Stand`, and put in its place by :func:`real`.
"""

from __future__ import annotations

import copy
import random
from typing import Any

from hypothesis import strategies as st

MARKER = "nodenet-fuzz-marker"


class Stand:
    """Stands for a value that only :func:`real` makes."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"<{self.name}>"

    def __deepcopy__(self, _memo: dict[int, Any]) -> Stand:
        return self


def _deep(depth: int) -> Any:
    value: Any = "end"
    for _level in range(depth):
        value = [value]
    return value


def _deep_mapping(depth: int) -> Any:
    value: Any = {}
    for _level in range(depth):
        value = {"spec": value, "metadata": value} if depth < 20 else {"items": [value], "kind": "List"}
    return value


_LONG_TEXT = "0" * 10_000_000
_REAL = {
    "10 MB": lambda: _LONG_TEXT,
    "10 MB of zeros before an address": lambda: _LONG_TEXT + "10.0.0.1",
    "10 MB of zeros in IPv6": lambda: _LONG_TEXT + "1::1",
    "10 MB of lines": lambda: "\n-A INPUT -j DROP" * 600_000,
    "10 MB of quotes": lambda: '"' * 10_000_000,
    "10 MB of brackets": lambda: "[" * 10_000_000,
    "50000 lists": lambda: _deep(50_000),
    "900 lists": lambda: _deep(900),
    "20000 Lists": lambda: _deep_mapping(20_000),
    "huge integer": lambda: 10 ** 6000,
}
stands = st.sampled_from(sorted(_REAL)).map(Stand)


def real(value: Any) -> Any:
    """The value with every stand replaced by what it stands for."""
    if isinstance(value, Stand):
        return _REAL[value.name]()
    if isinstance(value, dict):
        return {key: real(one) for key, one in value.items()}
    if isinstance(value, list):
        return [real(one) for one in value]
    return value


SHELL = (f"$(touch {MARKER})", f"`touch {MARKER}`", f"; touch {MARKER} #", f"| touch {MARKER}", f"&& touch {MARKER}",
         f"'$(touch {MARKER})'", f"-x; touch {MARKER}")
JINJA = (f"{{{{ lookup('pipe', 'touch {MARKER}') }}}}", "{% for a in range(10) %}{{ a }}{% endfor %}", "{{ 7 * 7 }}",
         "{# no #}", "{{ lookup('file', '/etc/passwd') }}", "{% raw %}", "}}{{")
RESTORE = ("web\n-A INPUT -j DROP", 'web" -j ACCEPT -m comment --comment "', "a\nCOMMIT\n*filter\n:INPUT DROP", "\\",
           '"',
           "'", 'a\\"b', "10.0.0.1 -j ACCEPT", "10.0.0.1\n-F", "-j DROP", "! -s 0.0.0.0/0", "--comment", "*nat",
           "COMMIT",
           "a b", "a\tb", "10.0.0.1\r", "[0:0]", ":X - [0:0]", "KUBE-SERVICES", "\x0010.0.0.1", "10.0.0.1\x00",
           "10.0.0.1\n")
TEXTS = ("", " ", "\ud800", "\udcff", "a\ud800b", "é", "\u202e", "\u2028", "\x00", "\x1b[31m",
         "\u0660.\u0660.\u0660.1", "²",
         "١٠.0.0.1", "10.0.0.1", "010.0.0.01", " 10.0.0.1 ", "\t10.0.0.1", "10.0.0.1/32", "10.0.0.0/8", "0.0.0.0/0",
         "::/0", "::1",
         "fe80::1%eth0", "::ffff:10.0.0.1", "0:0:0:0:0:ffff:a00:1", "FD00::00AB", "1.2.3", "1.2.3.4.5", "256.1.1.1",
         "0x7f.1",
         "10.0.0.1,10.0.0.2", "127.0.0.1", "224.0.0.1", "255.255.255.255", "None", "null", "true", "80", "65536", "-1",
         "http", "TCP", "tcp", "UDP", "IPv4", "IPv6", "FQDN", "Local", "Cluster", "a" * 63, "a" * 64, "a" * 253,
         "a" * 254,
         "a.b", "-a", "a-", "A", "a/b", "../../etc/passwd", "%s%n", "kubernetes", '["10.0.0.1"]', "[[[[]]]]", "{}",
         "[1]")

texts = st.one_of(st.sampled_from(SHELL + JINJA + RESTORE), st.sampled_from(TEXTS), st.text(max_size=20),
                  st.text(st.sampled_from("0123456789abcdef.:/ \t\n\"\\'-%"), max_size=24))
numbers = st.one_of(
    st.sampled_from((0, 1, -1, 80, 65535, 65536, 2 ** 31, 2 ** 32, 2 ** 63, 2 ** 64, 10 ** 400, 0.0, 80.0, 80.5, 1e300,
                     float("nan"), float("inf"), float("-inf"), True, False)), st.integers())
#: What takes long is rare.
scalars = st.one_of(texts, texts, numbers, st.none(), st.integers(0, 19).flatmap(
    lambda number: texts if number else stands))
values = st.recursive(scalars, lambda inner: st.one_of(
    st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)), max_leaves=6)


def places(tree: Any, here: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in a tree, that to the tree itself included."""
    found = [here]
    inside = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in inside:
        found += places(value, (*here, key))
    return found


def respelled(text: str) -> st.SearchStrategy[str]:
    """A text in another spelling, or with something before or behind it: still an address, or nearly."""
    spelled = st.sampled_from((
        f" {text}", f"{text} ", f"\t{text}", f"0{text}", f"::ffff:{text}", text.upper(), f"{text}\n",
        text.replace(".", ".0"), text.replace("::", ":0:0:"), text.replace(":", ":00"), f"{text}/32", f"{text}:80",
        f"[{text}]"))
    joined = texts.map(lambda more: text + more) | texts.map(lambda more: more + text)
    return st.integers(0, 5).flatmap(lambda kind: spelled if kind else joined)


def at(tree: Any, way: tuple[Any, ...]) -> Any:
    """The value at the end of a way."""
    for key in way:
        tree = tree[key]
    return tree


#: Of ten kinds of change, those that make a text a little different.
RESPELL = (4, 5, 6)


@st.composite
def broken(draw: st.DrawFn, trees: st.SearchStrategy[Any], most: int = 3) -> Any:
    """A tree with up to ``most`` of its values replaced, removed, doubled, or joined by strangers."""
    tree = copy.deepcopy(draw(trees))
    for _change in range(draw(st.integers(0, most))):
        # An index from a list in a certain order, and not sampled_from: trees are many, and each would be a strategy.
        kind = draw(st.integers(0, 9))
        ways = places(tree)
        if kind in RESPELL:
            ways = [way for way in ways if isinstance(at(tree, way), str)] or ways
        way = ways[draw(st.integers(0, len(ways) - 1))]
        if not way:
            continue
        parent = at(tree, way[:-1])
        if kind == 0 and isinstance(parent, dict):
            del parent[way[-1]]
        elif kind == 1 and isinstance(parent, list):
            parent.append(copy.deepcopy(parent[way[-1]]))
        elif kind == 2 and isinstance(parent, dict):
            parent[draw(texts)] = draw(values)
        elif kind == 3:
            parent[way[-1]] = draw(texts)
        elif kind in RESPELL and isinstance(parent[way[-1]], str):
            parent[way[-1]] = draw(respelled(parent[way[-1]]))
        else:
            parent[way[-1]] = draw(values)
    return tree


def scattered(seed: int, data: bytes, flips: int) -> bytes:
    """Bytes with some of them changed, removed or doubled."""
    chance = random.Random(seed)
    out = bytearray(data)
    for _flip in range(flips):
        if not out:
            break
        at = chance.randrange(len(out))
        what = chance.randrange(4)
        if what == 0:
            out[at] = chance.choice(b'"\\{}[]:,&*!|>%@`\x00\n\xff\xc3\xed0-#')
        elif what == 1:
            del out[at:at + chance.randrange(1, 8)]
        elif what == 2:
            out[at:at] = out[at:at + chance.randrange(1, 8)]
        else:
            out[at] = chance.randrange(256)
    return bytes(out)
