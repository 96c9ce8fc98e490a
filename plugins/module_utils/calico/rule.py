# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One rule, spelled twice: as Felix writes it, which its id is made of, and as ``iptables-save`` prints it.

A rule is made of pieces (``pieces.py``) in Felix's order. ``iptables-save`` puts the options of the head first, in an
order of its own, and spells some pieces differently.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.quoting import quote

_ID_LENGTH = 16
_id = re.compile(r'(?:^|(?<= ))-m comment --comment (?:"cali:([A-Za-z0-9_-]+)"|cali:([A-Za-z0-9_-]+))(?: |$)')
_head = re.compile(r"(?:(?:! )?-[sdiop] [^ ]+ )*")

#: What save spells differently from Felix, word by word.
_FELIX_WORDS = {"-s": "--source", "-d": "--destination", "-i": "--in-interface", "-o": "--out-interface",
                "-j": "--jump", "-g": "--goto", "--dports": "--destination-ports", "--set-xmark": "--set-mark"}


class Piece(NamedTuple):
    """A match or a target in both spellings. ``saved`` is empty where ``iptables-save`` prints nothing."""

    felix: str
    saved: str
    #: The place among the options of the head, from 1; 0 for what is not of the head.
    head: int = 0


class FelixRule(NamedTuple):
    """One rule of Felix's: pieces in its order, the target last."""

    pieces: tuple[Piece, ...]
    #: The comment for people; Felix writes it before everything else.
    comment: str = ""

    def felix(self) -> str:
        """The rule as Felix writes it, without chain and id."""
        comment = [f'-m comment --comment "{self.comment}"'] if self.comment else []
        return " ".join(comment + [piece.felix for piece in self.pieces])

    def saved(self, rule_id: str = "") -> str:
        """The rule as ``iptables-save`` prints it after ``-A CHAIN ``, with its id if one is given."""
        head = sorted((piece for piece in self.pieces if piece.head), key=_head_place)
        words = [piece.saved for piece in head]
        words += [f"-m comment --comment {quote(text)}" for text in (_comment(rule_id), self.comment) if text]
        words += [piece.saved for piece in self.pieces if not piece.head]
        return " ".join(word for word in words if word)


def render(chain: str, rules: Sequence[FelixRule], with_ids: bool) -> list[str]:
    """The rules of a chain as ``iptables-save`` prints them, with or without their ids."""
    if not with_ids:
        return [rule.saved() for rule in rules]
    return [rule.saved(rule_id) for rule, rule_id in zip(rules, ids(chain, [rule.felix() for rule in rules]))]


def ids(chain: str, texts: Sequence[str]) -> list[str]:
    """The ids of a chain's rules, given as Felix writes them. Each depends on all rules before it.

    The rules that Felix always appends to a built-in chain are a list of their own, of chain ``NAME*appends*``.
    """
    found = []
    digest = first_digest(chain)
    for text in texts:
        digest = next_digest(digest, chain, text)
        found.append(id_of(digest))
    return found


def first_digest(chain: str) -> bytes:
    """What the id of the first rule of a chain builds on."""
    return hashlib.sha224(chain.encode()).digest()


def next_digest(digest: bytes, chain: str, text: str) -> bytes:
    """What the id of a rule is made of, and what the one behind it builds on."""
    # Rules of others may hold any bytes.
    return hashlib.sha224(digest + f"-A {chain} HASH {text}".encode(errors="surrogateescape")).digest()


def id_of(digest: bytes) -> str:
    """The id for a digest."""
    return base64.urlsafe_b64encode(digest).decode()[:_ID_LENGTH]


def split_id(saved: str) -> tuple[str, str]:
    """A rule's text without its id, and the id; ``""`` where it has none."""
    match = _id.search(saved)
    if match is None:
        return saved, ""
    return (saved[:match.start()] + saved[match.end():]).rstrip(" "), match.group(1) or match.group(2)


def join_id(saved: str, rule_id: str) -> str:
    """The inverse of :func:`split_id`: the text with an id where ``iptables-save`` prints it."""
    match = _head.match(saved)
    at = match.end() if match else 0
    return f"{saved[:at]}-m comment --comment {quote(_comment(rule_id))} {saved[at:]}"


def felix_text(saved: str) -> str:
    """A guess at how Felix wrote a rule that ``iptables-save`` prints so (without its id). The id tells if it is right.

    It is for rules of one match, and for those whose matches Felix writes in the same order.
    """
    words = [_FELIX_WORDS.get(word, word) for word in saved.split(" ")]
    return " ".join("0" + word[3:] if word.startswith("0x0/") else word for word in words)


def _comment(rule_id: str) -> str:
    return f"cali:{rule_id}" if rule_id else ""


def _head_place(piece: Piece) -> int:
    return piece.head
