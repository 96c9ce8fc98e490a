# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two rule texts, one meaning: what a rule says, whichever spelling a person, a tool or a tool's version chose.

``iptables-save`` 1.8.7 to 1.8.11, ``iptables-restore`` input and hand-written rules spell the same rule in different
ways: order of options, implied matches, port names, defaults, mark arithmetic, 31-bit probabilities. ``meanings()``
maps all of them to the same value. It is only asked about texts that differ.
"""

from __future__ import annotations

import functools
import re
import socket
from typing import Callable, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import parse_address, parse_network, single
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.quoting import COMMENT_BYTES, tokenise

#: An option: its name, whether it is negated, its values.
Option = tuple[str, bool, tuple[str, ...]]


class Match(NamedTuple):
    """One ``-m`` of a rule, or its target."""

    name: str
    options: frozenset[Option]


class Meaning(NamedTuple):
    """What one rule says. Equal meanings are the same rule to the kernel (and to a reader of its comments)."""

    head: frozenset[Option]
    #: Matches with a memory keep their place; the others are sorted between them.
    matches: tuple[Match, ...]
    target: Match | None
    #: Names of the counters (``-m nfacct``) that the rule feeds. They decide nothing about a packet.
    counters: frozenset[str]

    def decision(self) -> Meaning:
        """The rule without its counters."""
        return self._replace(counters=frozenset())


_HEAD = {
    "-s": "-s", "--source": "-s", "--src": "-s", "-d": "-d", "--destination": "-d", "--dst": "-d",
    "-i": "-i", "--in-interface": "-i", "-o": "-o", "--out-interface": "-o",
    "-p": "-p", "--protocol": "-p", "--proto": "-p", "-f": "-f", "--fragment": "-f",
}
_PROTOCOLS = {"6": "tcp", "17": "udp", "132": "sctp", "1": "icmp", "58": "ipv6-icmp", "icmpv6": "ipv6-icmp",
              "icmp6": "ipv6-icmp", "33": "dccp", "136": "udplite", "50": "esp", "51": "ah", "0": "all"}
_PORTS = {"--dport": "--dport", "--destination-port": "--dport", "--sport": "--sport", "--source-port": "--sport"}
_PORT_MATCHES = ("tcp", "udp", "sctp", "dccp", "udplite")
_PROTOCOL_MATCH = {"ipv6-icmp": "icmp6"}
#: Options that load the match of the rule's protocol by themselves.
_IMPLIED = frozenset(_PORTS) | {"--tcp-flags", "--syn", "--tcp-option", "--icmp-type", "--icmpv6-type", "--chunk-types"}
#: Options whose one value may look like an option.
_ONE_VALUE = frozenset({"--comment", "--log-prefix", "--nflog-prefix", "--string", "--hex-string", "--name",
                        "--nfacct-name", "--set-name", "--probability"})
#: Matches that remember packets: what stands before them decides what they see.
_STATEFUL = frozenset({"limit", "hashlimit", "recent", "statistic", "quota", "connlimit", "connbytes", "nfacct",
                       "rateest"})
#: Options whose comma list is a set.
_SETS = frozenset({"--ctstate", "--ctstatus", "--state", "--dst-type", "--src-type"})
_REJECT = {True: "icmp-port-unreachable", False: "icmp6-port-unreachable"}
_REJECT_ALIASES = {"port-unreach": "icmp6-port-unreachable", "icmp6-port-unreachable": "icmp6-port-unreachable"}
_ALL_ONES = {True: "255.255.255.255", False: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"}
_PROBABILITY_ONE = 1 << 31
_RULE_ID = re.compile(r"cali:[A-Za-z0-9_-]{16}").fullmatch


@functools.lru_cache(maxsize=65536)
def meanings(rule: str, family: str) -> tuple[Meaning, ...]:
    """What ``rule`` (text after ``-A CHAIN ``) says; several where addresses are a comma list.

    Raises ``ValueError`` where the text cannot be a rule (open quote, option without a match).
    """
    parsed = _split(rule)
    v4 = family == IPV4
    matches = [_match(name, options, v4) for name, options in parsed.matches]
    counters = frozenset(value for match in matches if match.name == "nfacct"
                         for _name, _negated, values in match.options for value in values)
    kept = [match for match in matches if match.name != "nfacct" and not _says_nothing(match) and not _is_id(match)]
    target = _target(parsed.target, v4) if parsed.target else None
    return tuple(Meaning(head, _ordered(kept), target, counters) for head in _heads(parsed.head))


def same_rule(one: str, other: str, family: str) -> bool:
    """True where two rule texts mean the same. A text that cannot be read equals only itself."""
    if one == other:
        return True
    try:
        return meanings(one, family) == meanings(other, family)
    except ValueError:
        return False


class _Parsed(NamedTuple):
    head: list[Option]
    matches: list[tuple[str, list[Option]]]
    target: tuple[str, list[Option]] | None


def _split(rule: str) -> _Parsed:
    """Group the tokens of a rule: head options, the options of each match, target and its options."""
    head: list[Option] = []
    matches: list[tuple[str, list[Option]]] = []
    target: tuple[str, list[Option]] | None = None
    #: The options of what was named last.
    named: list[Option] | None = None
    implied: list[Option] = []
    implied_at = 0
    tokens = tokenise(rule)
    at = 0
    negated = False
    while at < len(tokens):
        token, quoted = tokens[at]
        at += 1
        if token == "!" and not quoted:
            negated = True
            continue
        if token in ("-m", "--match", "-j", "--jump", "-g", "--goto"):
            if at >= len(tokens):
                raise ValueError(f"{token} without a name in rule {rule!r}")
            name = tokens[at][0]
            at += 1
            # Save prints the target last, but a person may put matches behind it.
            named = []
            if token in ("-m", "--match"):
                matches.append((name, named))
            else:
                target = ("goto " + name if token in ("-g", "--goto") else name, named)
            negated = False
            continue
        values, at, negated_value = _values(token, tokens, at)
        option = (_HEAD.get(token, token), negated or negated_value, values)
        negated = False
        if token in _HEAD:
            head.append(option)
        elif token in _IMPLIED:
            # The tool loads the match at the first of them.
            implied_at = implied_at if implied else len(matches)
            implied.append(option)
        elif named is not None:
            named.append(option)
        else:
            raise ValueError(f"option {token} belongs to no match in rule {rule!r}")
    _give_to_protocol(implied, implied_at, head, matches)
    return _Parsed(head, matches, target)


def _values(token: str, tokens: list[tuple[str, bool]], at: int) -> tuple[tuple[str, ...], int, bool]:
    """The values behind an option: up to the next option, or exactly one. Also reads the old ``--opt ! value``."""
    if token in _ONE_VALUE and at < len(tokens):
        return (tokens[at][0],), at + 1, False
    values: list[str] = []
    negated = False
    while at < len(tokens):
        value, quoted = tokens[at]
        if not quoted and value == "!":
            if values or token not in _HEAD or at + 1 >= len(tokens) or tokens[at + 1][0].startswith("-"):
                break
            negated = True
        elif not quoted and value.startswith("-") and len(value) > 1 and not value[1].isdigit():
            break
        else:
            values.append(value)
        at += 1
    return tuple(values), at, negated


def _give_to_protocol(implied: list[Option], at: int, head: list[Option],
                      matches: list[tuple[str, list[Option]]]) -> None:
    """Hand ``--dport`` and its kind to the match of the protocol, which need not be the last one or be named at all."""
    if not implied:
        return
    protocol = next((_protocol(values[0]) for name, _negated, values in head if name == "-p" and values), "")
    name = _PROTOCOL_MATCH.get(protocol, protocol)
    for match, options in matches:
        if match == name or (not name and match in _PORT_MATCHES):
            options.extend(implied)
            return
    if not name:
        raise ValueError(f"option {implied[0][0]} without a protocol")
    matches.insert(at, (name, list(implied)))


def _protocol(text: str) -> str:
    lower = text.lower()
    return _PROTOCOLS.get(lower, lower)


def _heads(options: list[Option]) -> list[frozenset[Option]]:
    """The head of each rule that the text stands for: one per pair of source and destination."""
    fixed: list[Option] = []
    sources: list[Option] = []
    destinations: list[Option] = []
    for name, negated, values in options:
        if name in ("-s", "-d"):
            found = sources if name == "-s" else destinations
            for text in values[0].split(",") if values else ():
                found.append((name, negated, (_network(text),)))
        elif name == "-p":
            protocol = _protocol(values[0]) if values else ""
            if protocol != "all":
                fixed.append((name, negated, (protocol,)))
        elif negated or values != ("+",):
            fixed.append((name, negated, values))
    heads = []
    for source in sources or [None]:  # type: ignore[list-item]
        for destination in destinations or [None]:  # type: ignore[list-item]
            pair = [option for option in (source, destination) if option and not _any_address(option)]
            heads.append(frozenset(fixed + pair))
    return heads


def _network(text: str) -> str:
    """Address, CIDR or address with a dotted mask, as a CIDR; host names and split masks stay as they are."""
    address, slash, mask = text.partition("/")
    try:
        if not slash:
            return single(parse_address(address))
        if "." in mask or ":" in mask:
            packed = socket.inet_pton(socket.AF_INET6 if ":" in mask else socket.AF_INET, mask)
            ones = f"{int.from_bytes(packed, 'big'):0{len(packed) * 8}b}"
            if "01" in ones:
                return text
            mask = str(ones.count("1"))
        return parse_network(f"{address}/{mask}").text
    except (ValueError, OSError):
        return text


def _any_address(option: Option) -> bool:
    return not option[1] and option[2][0] in ("0.0.0.0/0", "::/0")


def _ordered(matches: list[Match]) -> tuple[Match, ...]:
    out: list[Match] = sorted((m for m in matches if m.name == "comment"), key=_sort_key)
    run: list[Match] = []
    for match in matches:
        if match.name in _STATEFUL:
            out += sorted(run, key=_sort_key)
            out.append(match)
            run = []
        elif match.name != "comment":
            run.append(match)
    return tuple(out + sorted(run, key=_sort_key))


def _sort_key(match: Match) -> tuple[str, list[Option]]:
    return match.name, sorted(match.options)


def _is_id(match: Match) -> bool:
    """Felix numbers its rules with a comment, ``cali:`` and a hash: a name of the rule, not a part of it."""
    return match.name == "comment" and any(_RULE_ID(value) for option in match.options for value in option[2])


def _says_nothing(match: Match) -> bool:
    return not match.options and match.name in _PORT_MATCHES


# --- what the options of single matches and targets mean ---

def _match(name: str, options: list[Option], v4: bool) -> Match:
    if name in _PORT_MATCHES:
        options = [_port(option, name) for option in options]
        options = [option for option in options if option[1] or option[2] != ("0:65535",)
                   or option[0] not in ("--dport", "--sport")]
    elif name in ("mark", "connmark"):
        options = [(option, negated, (_mark_match(values),)) for option, negated, values in options]
    elif name == "comment":
        options = [(option, negated, tuple(_cut(value) for value in values)) for option, negated, values in options]
    elif name == "recent":
        options = _recent(options, v4)
    elif name == "statistic":
        options = [_statistic(option) for option in options]
    return Match(name, frozenset(_set_valued(option) for option in options))


def _set_valued(option: Option) -> Option:
    name, negated, values = option
    if name in _SETS and values:
        return name, negated, (",".join(sorted(set(values[0].upper().split(",")))),)
    return option


def _port(option: Option, protocol: str) -> Option:
    name, negated, values = option
    if name == "--syn":
        return "--tcp-flags", negated, ("ACK,FIN,RST,SYN", "SYN")
    if name == "--tcp-flags":
        return name, negated, tuple(",".join(sorted(value.split(","))) for value in values)
    if name not in _PORTS or not values:
        return option
    low, colon, high = values[0].partition(":")
    first = _port_number(low or "0", protocol)
    last = _port_number(high or "65535", protocol) if colon else first
    return _PORTS[name], negated, (first if first == last else f"{first}:{last}",)


@functools.lru_cache(maxsize=1024)
def _port_number(text: str, protocol: str) -> str:
    if text.isdigit():
        return str(int(text))
    try:
        return str(socket.getservbyname(text, protocol))
    except OSError:
        return text


def _cut(comment: str) -> str:
    return comment.encode("utf-8", "surrogateescape")[:COMMENT_BYTES].decode("utf-8", "surrogateescape")


def _mark_match(values: tuple[str, ...]) -> str:
    value, _slash, mask = (values[0] if values else "0").partition("/")
    number, bits = int(value, 0), int(mask, 0) if mask else 0xFFFFFFFF
    return f"{number:#x}/{bits:#x}"


def _recent(options: list[Option], v4: bool) -> list[Option]:
    names = {option[0] for option in options}
    defaults: dict[str, tuple[str, ...]] = {"--name": ("DEFAULT",), "--mask": (_ALL_ONES[v4],)}
    if "--rdest" not in names:
        defaults["--rsource"] = ()
    return options + [(name, False, values) for name, values in defaults.items() if name not in names]


def _statistic(option: Option) -> Option:
    name, negated, values = option
    if name != "--probability" or not values:
        return option
    # The kernel keeps 31 bits of it.
    probability = float(values[0])
    if not 0 <= probability <= 1:
        raise ValueError(f"{values[0]} is no probability")
    return name, negated, (str(int(probability * _PROBABILITY_ONE + 0.5)),)


def _target(target: tuple[str, list[Option]], v4: bool) -> Match:
    name, options = target
    change = _TARGETS.get(name)
    return Match(name, frozenset(change(options, v4) if change else options))


def _mark_target(options: list[Option], _v4: bool) -> list[Option]:
    out: list[Option] = []
    for name, negated, values in options:
        value, _slash, mask = (values[0] if values else "0").partition("/")
        number, bits = int(value, 0), int(mask, 0) if mask else 0xFFFFFFFF
        xmark = {"--set-xmark": (number, bits), "--set-mark": (number, number | bits), "--or-mark": (number, number),
                 "--and-mark": (0, ~number & 0xFFFFFFFF), "--xor-mark": (number, 0)}.get(name)
        out.append(("--set-xmark", negated, (f"{xmark[0]:#x}/{xmark[1]:#x}",)) if xmark else (name, negated, values))
    return out


def _reject_target(options: list[Option], v4: bool) -> list[Option]:
    if not options:
        return [("--reject-with", False, (_REJECT[v4],))]
    aliases = _REJECT_ALIASES if not v4 else {"port-unreach": _REJECT[True]}
    return [(name, negated, tuple(aliases.get(value, value) for value in values)) for name, negated, values in options]


def _log_target(options: list[Option], _v4: bool) -> list[Option]:
    return [option for option in options if option[:1] + option[2:] not in (("--log-level", ("4",)),
                                                                            ("--log-level", ("warning",)))]


_TARGETS: dict[str, Callable[[list[Option], bool], list[Option]]] = {
    "MARK": _mark_target, "REJECT": _reject_target, "LOG": _log_target,
}
