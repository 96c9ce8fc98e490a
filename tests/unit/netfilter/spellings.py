# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random IPv4 rules as data, and as text in one of their many spellings, for hypothesis.

A rule is a dict of parts. Two rules mean the same exactly where their dicts are equal; the text of one differs with
every call of :func:`spelled`.
"""

from __future__ import annotations

from random import Random

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.quoting import quote
from hypothesis import strategies as st

Rule = dict[str, object]

_ADDRESSES = ("192.0.2.1", "192.0.2.10", "198.51.100.7")
_PORTS = (53, 80, 1024)
_SHARES = (2, 3, 4, 5, 6, 7, 9, 10)


@st.composite
def rules(draw: st.DrawFn) -> Rule:
    """A rule with any of the parts that rules of this collection and its neighbours have."""
    rule: Rule = {"target": draw(st.sampled_from((
        "none", "accept", "jump", "goto", "mark", "or", "xor", "reject", "reject-reset", "dnat", "masquerade")))}
    optional: dict[str, st.SearchStrategy[object]] = {
        "-s": st.tuples(st.booleans(), st.sampled_from(_ADDRESSES)),
        "-d": st.tuples(st.booleans(), st.sampled_from(_ADDRESSES)),
        "-i": st.tuples(st.booleans(), st.sampled_from(("eth0", "cali+"))),
        "protocol": st.sampled_from(("tcp", "udp")),
        "comment": st.text(st.sampled_from("ab -/:\"'\\é"), max_size=20)
        | st.sampled_from(("-j DROP", "!", "-j", 'a "b"')),
        "states": st.sets(st.sampled_from(("NEW", "ESTABLISHED", "RELATED", "INVALID")), min_size=1).map(frozenset),
        "mark": st.tuples(st.booleans(), st.sampled_from((0, 0x4000, 0x8000)),
                          st.sampled_from((0x4000, 0xC000, 0xFFFFFFFF))),
        "share": st.sampled_from(_SHARES),
        "recent": st.tuples(st.sampled_from(("DEFAULT", "OTHER")), st.sampled_from(("--set", "--rcheck")),
                            st.booleans()),
    }
    for name, values in optional.items():
        if draw(st.booleans()):
            rule[name] = draw(values)
    if "protocol" in rule and draw(st.booleans()):
        for name in draw(st.sampled_from((("--dport",), ("--sport",), ("--sport", "--dport")))):
            low, high = sorted(draw(st.tuples(st.sampled_from(_PORTS), st.sampled_from(_PORTS))))
            rule[name] = (draw(st.booleans()), low, high)
    return rule


def spelled(rule: Rule, pick: Random) -> str:
    """The rule in one of its spellings: order of options, optional words, defaults, forms of values."""
    head = [_network(name, rule[name], pick) for name in ("-s", "-d") if name in rule]
    head += [p for p in ("-s 0.0.0.0/0", "-d 0.0.0.0/0") if p[:2] not in rule and pick.random() < 0.1]
    if "-i" in rule:
        negated, name = rule["-i"]  # type: ignore[misc]
        head.append(_not(negated) + pick.choice(("-i", "--in-interface")) + f" {name}")
    if pick.random() < 0.1:
        head.append("-o +")
    matches = _matches(rule, pick)
    ports = _ports(rule, pick)
    if "protocol" in rule:
        protocol = str(rule["protocol"])
        number = {"tcp": "6", "udp": "17"}[protocol]
        head.append(pick.choice(("-p", "--protocol")) + " " + pick.choice((protocol, protocol.upper(), number)))
        if ports and pick.random() < 0.5:
            # The match need not be named: its options may stand anywhere before the target.
            matches += ports
        elif ports or pick.random() < 0.5:
            matches.append(" ".join([f"-m {protocol}", *ports]))
    elif pick.random() < 0.1:
        head.append("-p all")
    memory = [text for text in matches if text.startswith(("-m statistic", "-m recent"))]
    other = [text for text in matches if text not in memory]
    pick.shuffle(other)
    pick.shuffle(head)
    # A match with a memory sees what the ones before it let through, so these keep their places.
    words = head + other + memory if pick.random() < 0.5 else _mixed(head, other, pick) + memory
    return " ".join(words + _target(str(rule["target"]), pick))


def _mixed(head: list[str], matches: list[str], pick: Random) -> list[str]:
    out = list(matches)
    for part in head:
        out.insert(pick.randint(0, len(out)), part)
    return out


def _not(negated: object) -> str:
    return "! " if negated else ""


def _network(name: str, value: object, pick: Random) -> str:
    negated, address = value  # type: ignore[misc]
    long = {"-s": ("-s", "--source", "--src"), "-d": ("-d", "--destination", "--dst")}[name]
    return _not(negated) + pick.choice(long) + " " + address + pick.choice(("", "/32", "/255.255.255.255"))


def _ports(rule: Rule, pick: Random) -> list[str]:
    out = []
    for name, long in (("--dport", "--destination-port"), ("--sport", "--source-port")):
        if name in rule:
            negated, low, high = rule[name]  # type: ignore[misc]
            text = pick.choice((str(low), f"{low}:{low}")) if low == high else f"{low}:{high}"
            out.append(f"{_not(negated)}{pick.choice((name, long))} {text}")
        elif pick.random() < 0.1:
            out.append(f"{name} 0:65535")
    pick.shuffle(out)
    return out


def _matches(rule: Rule, pick: Random) -> list[str]:
    out = []
    if "comment" in rule:
        out.append(f"-m comment --comment {quote(str(rule['comment']))}")
    if "states" in rule:
        states = sorted(rule["states"])  # type: ignore[call-overload]
        pick.shuffle(states)
        out.append("-m conntrack --ctstate " + ",".join(states))
    if "mark" in rule:
        negated, mark, mask = rule["mark"]  # type: ignore[misc]
        short = mask == 0xFFFFFFFF and pick.random() < 0.5
        end = "" if short else "/" + _number(mask, pick)
        out.append(f"-m mark {_not(negated)}--mark {_number(mark, pick)}{end}")
    if "share" in rule:
        options = ["--mode random", f"--probability {1 / int(str(rule['share'])):.{pick.choice((10, 11, 12))}f}"]
        pick.shuffle(options)
        out.append("-m statistic " + " ".join(options))
    if "recent" in rule:
        name, what, destination = rule["recent"]  # type: ignore[misc]
        options = [what, *(["--rdest"] if destination else ["--rsource"] if pick.random() < 0.5 else []),
                   *([f"--name {name}"] if name != "DEFAULT" or pick.random() < 0.5 else []),
                   *(["--mask 255.255.255.255"] if pick.random() < 0.5 else [])]
        pick.shuffle(options)
        out.append("-m recent " + " ".join(options))
    return out


def _number(value: int, pick: Random) -> str:
    return pick.choice((str(value), f"{value:#x}", f"{value:#010x}", f"{value:#X}".replace("X", "x")))


def _target(kind: str, pick: Random) -> list[str]:
    mark = _number(0x4000, pick)
    return pick.choice({
        "none": ([],),
        "accept": (["-j", "ACCEPT"], ["--jump", "ACCEPT"]),
        "jump": (["-j", "KUBE-SVC-X"],),
        "goto": (["-g", "KUBE-SVC-X"], ["--goto", "KUBE-SVC-X"]),
        "mark": (["-j", "MARK", "--set-mark", mark], ["-j", "MARK", f"--set-xmark {mark}/0xffffffff"]),
        "or": (["-j", "MARK", "--or-mark", mark], ["-j", "MARK", "--set-mark", f"{mark}/{mark}"],
               ["-j", "MARK", "--set-xmark", f"{mark}/{mark}"]),
        "xor": (["-j", "MARK", "--xor-mark", mark], ["-j", "MARK", "--set-xmark", f"{mark}/0x0"]),
        "reject": (["-j", "REJECT"], ["-j", "REJECT", "--reject-with", "icmp-port-unreachable"],
                   ["-j", "REJECT", "--reject-with", "port-unreach"]),
        "reject-reset": (["-j", "REJECT", "--reject-with", "tcp-reset"],),
        "dnat": (["-j", "DNAT", "--to-destination", "10.0.1.1:80", "--random"],
                 ["-j", "DNAT", "--random", "--to-destination", "10.0.1.1:80"]),
        "masquerade": (["-j", "MASQUERADE", "--random-fully"],),
    }[kind])
