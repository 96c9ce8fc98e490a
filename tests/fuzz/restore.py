# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A strict reader of what goes to ``iptables-restore`` and ``ipset restore``.

It shares nothing with the collection. It knows only what the collection writes, and takes nothing else: every option
by its name, every value by its alphabet, text of people in quotes behind ``--comment`` alone.
"""

from __future__ import annotations

import functools
import ipaddress
import re
from typing import NamedTuple

_TABLES = frozenset({"nat", "filter", "mangle"})
_BUILT_IN = frozenset({"PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING"})
_CHAIN = re.compile(r"(?:KUBE|cali)-[A-Za-z0-9-]{1,23}").fullmatch
_TARGETS = frozenset({"ACCEPT", "DROP", "RETURN", "MARK", "MASQUERADE", "DNAT", "SNAT", "REJECT"})
_MATCHES = frozenset({"comment", "tcp", "udp", "sctp", "addrtype", "conntrack", "mark", "statistic", "recent", "set",
                      "multiport"})
_PORT = re.compile(r"[0-9]{1,5}").fullmatch
_PRINTABLE = re.compile(r"[\x20-\x7e]*").fullmatch
_COMMENT_BYTES = 255


class NotWritten(AssertionError):
    """A byte or a word that the collection has no business to write."""


class Rule(NamedTuple):
    """One ``-A``, ``-I`` or ``-D``: option to value, a negated one as ``! -s``."""

    table: str
    verb: str
    chain: str
    options: dict[str, str]
    comment: str
    text: str


def _word(pattern: str) -> object:
    return re.compile(pattern).fullmatch


def _network(text: str) -> bool:
    address, slash, length = text.partition("/")
    network = ipaddress.ip_network(text, strict=True)
    return bool(slash) and length.isdigit() and str(network.network_address) == address


def _endpoint(text: str) -> bool:
    """``ADDRESS``, ``ADDRESS:PORT`` or ``[ADDRESS]:PORT``."""
    match = re.fullmatch(r"\[([0-9a-f:]+)\]:([0-9]+)|([0-9.]+):([0-9]+)", text)
    if not match:
        return str(ipaddress.ip_address(text)) == text
    address, port = match[1] or match[3], match[2] or match[4]
    return str(ipaddress.ip_address(address)) == address and 0 < int(port) < 65536


def _port(text: str) -> bool:
    return bool(_PORT(text)) and 0 < int(text) < 65536


def _hex(text: str) -> bool:
    return bool(re.fullmatch(r"0x[0-9a-f]{1,8}(?:/0x[0-9a-f]{1,8})?", text))


def _interface(text: str) -> bool:
    return bool(re.fullmatch(r"[A-Za-z0-9_.@:%=,~+-]{1,15}", text))


def _set_name(text: str) -> bool:
    return bool(re.fullmatch(r"cali[46]0[a-z-]{1,25}|nodenet-[0-9a-f]{8}", text))


_VALUES = {
    "-s": _network, "-d": _network, "-i": _interface, "-o": _interface, "-p": frozenset({"tcp", "udp", "sctp"}),
    "-m": _MATCHES, "--dport": _port, "--dports": _word(r"[0-9]{1,5}(?:[:,][0-9]{1,5}){0,14}"),
    "--mark": _hex, "--set-xmark": _hex, "--or-mark": _hex, "--xor-mark": _hex,
    "--ctstate": frozenset({"NEW", "INVALID", "RELATED,ESTABLISHED", "RELATED,ESTABLISHED,DNAT"}),
    "--ctstatus": frozenset({"DNAT"}),
    "--dst-type": frozenset({"LOCAL"}), "--src-type": frozenset({"LOCAL"}), "--mode": frozenset({"random"}),
    "--probability": _word(r"[01]\.[0-9]{11}"), "--seconds": _word(r"[1-9][0-9]{0,4}"), "--name": _CHAIN,
    "--mask": frozenset({"255.255.255.255", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}),
    "--to-destination": _endpoint, "--to-source": _word(r"[0-9a-f.:]+(?:-[0-9]+)?"),
    "--to-ports": _word(r"[0-9]+(?:-[0-9]+)?"),
    "--reject-with": frozenset({"icmp-port-unreachable", "icmp6-port-unreachable"}), "--match-set": _set_name,
}
_FLAGS = frozenset({"--rcheck", "--reap", "--rsource", "--set", "--random-fully"})


def read_restore(text: str) -> list[Rule]:
    """The rules of an input for ``iptables-restore --noflush``. Raises :class:`NotWritten`."""
    lines = text.split("\n")
    if lines.pop() != "":
        raise NotWritten("no line feed at the end")
    rules: list[Rule] = []
    table = ""
    for line in lines:
        if not _PRINTABLE(line):
            raise NotWritten(f"a byte that is not printable: {line!r}")
        if line.startswith("*"):
            if table or line[1:] not in _TABLES:
                raise NotWritten(f"table {line!r} in table {table!r}")
            table = line[1:]
        elif not table:
            raise NotWritten(f"outside of a table: {line!r}")
        elif line == "COMMIT":
            table = ""
        elif line.startswith(":"):
            name, policy, counters = line[1:].split(" ")
            if not _CHAIN(name) or policy != "-" or counters != "[0:0]":
                raise NotWritten(f"chain {line!r}")
        elif line.startswith("-X "):
            if not _CHAIN(line[3:]):
                raise NotWritten(f"removal {line!r}")
        else:
            rules.append(_rule(table, line))
    if table:
        raise NotWritten("no COMMIT at the end")
    return rules


@functools.lru_cache(maxsize=65536)
def _rule(table: str, line: str) -> Rule:
    words = _words(line)
    if len(words) < 2 or words[0] not in ("-A", "-I", "-D"):
        raise NotWritten(f"not a rule: {line!r}")
    chain = words[1]
    if not (_CHAIN(chain) or chain in _BUILT_IN):
        raise NotWritten(f"chain {chain!r}: {line!r}")
    rest = words[2:]
    if words[0] == "-I":
        if not _PORT(rest[0]):
            raise NotWritten(f"position {rest[0]!r}")
        rest = rest[1:]
    options: dict[str, str] = {}
    comment = ""
    negated = ""
    while rest:
        word = rest.pop(0)
        if word == "!":
            negated = "! "
            continue
        if word == "--comment":
            text = rest.pop(0)
            comment = comment or (_text(text) if text.startswith('"') else text)
            if len(text) > 2 * _COMMENT_BYTES or (not text.startswith('"') and not re.fullmatch(r"[A-Za-z0-9_-]+",
                                                                                                text)):
                raise NotWritten(f"comment {text!r}")
        elif word in _FLAGS:
            options[word] = ""
        elif word in ("-j", "-g"):
            target = rest.pop(0)
            if not (_CHAIN(target) or target in _TARGETS):
                raise NotWritten(f"target {target!r}: {line!r}")
            options["-j"] = target
        elif word in _VALUES:
            value = rest.pop(0)
            _check(word, value, line)
            if word == "--match-set" and rest.pop(0) not in ("src", "dst"):
                raise NotWritten(f"direction: {line!r}")
            options[negated + word] = value
        else:
            raise NotWritten(f"word {word!r}: {line!r}")
        negated = ""
    return Rule(table, words[0], chain, options, comment, line.split(" ", 2)[2] if len(words) > 2 else "")


def _check(option: str, value: str, line: str) -> None:
    allowed = _VALUES[option]
    try:
        fits = value in allowed if isinstance(allowed, frozenset) else allowed(value)  # type: ignore[operator]
    except ValueError:
        fits = False
    if not fits:
        raise NotWritten(f"{option} {value!r}: {line!r}")


def _words(line: str) -> list[str]:
    """Words divided by one blank each; one in quotes begins and ends with its quote."""
    words = re.findall(r'(?:^| )("(?:[^"\\]|\\[\\"\x27])*"|[^ "\\\x27]+)(?= |$)', line)
    if " ".join(words) != line:
        raise NotWritten(f"not words with one blank between them: {line!r}")
    for before, word in zip(words, words[1:]):
        if word.startswith('"') and before != "--comment":
            raise NotWritten(f"quotes where no text of people belongs: {line!r}")
    return words


def _text(quoted: str) -> str:
    return re.sub(r"\\(.)", r"\1", quoted[1:-1])


def read_sets(text: str) -> dict[str, list[str]]:
    """The members that a session adds, by set. Raises :class:`NotWritten`."""
    members: dict[str, list[str]] = {}
    lines = text.split("\n")
    if lines.pop() != "":
        raise NotWritten("no line feed at the end")
    for line in lines:
        words = line.split(" ")
        if words[0] == "create":
            if not re.fullmatch(r"create \S+ hash:(?:net|ip) family inet6? maxelem [1-9][0-9]*", line):
                raise NotWritten(f"set {line!r}")
            members[words[1]] = []
        elif words[0] in ("add", "del") and len(words) == 3:
            ipaddress.ip_network(words[2], strict=True)
            members.setdefault(words[1], []).append(words[2])
        elif words[0] not in ("swap", "destroy"):
            raise NotWritten(f"line {line!r}")
        if not _PRINTABLE(line) or not all(map(_set_name, words[1:3 if words[0] == "swap" else 2])):
            raise NotWritten(f"name {line!r}")
    return members
