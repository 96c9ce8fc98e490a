# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Spellings of one rule, as measured with iptables 1.8.9, and near misses that are other rules."""

from __future__ import annotations

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.canonical import meanings, same_rule
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, IPV4, IPV6

SAME = [
    # what is written, what save prints
    ("f001", "-j MARK --xor-mark 0x4000", "-j MARK --set-xmark 0x4000/0x0"),
    ("f008", '-j KUBE-SERVICES -m comment --comment "handle IPs; NOTE: keep first"',
     '-m comment --comment "handle IPs; NOTE: keep first" -j KUBE-SERVICES'),
    ("f018-order", "-m comment --comment x -m tcp -p TCP -d 198.51.100.7 --dport http ! -s 192.0.2.9/24 -j REJECT",
     "! -s 192.0.2.0/24 -d 198.51.100.7/32 -p tcp -m comment --comment x -m tcp --dport 80 "
     "-j REJECT --reject-with icmp-port-unreachable"),
    ("f018-recent", "-m recent --name S --rcheck --seconds 10800 --reap",
     "-m recent --rcheck --seconds 10800 --reap --name S --mask 255.255.255.255 --rsource"),
    ("f018-recent-default", "-m recent --set", "-m recent --set --name DEFAULT --mask 255.255.255.255 --rsource"),
    ("f018-set-mark", "-j MARK --set-mark 0x4000", "-j MARK --set-xmark 0x4000/0xffffffff"),
    ("f018-any", "-s 0.0.0.0/0 -j ACCEPT", "-j ACCEPT"),
    ("fact1-3", "-m statistic --mode random --probability 0.3333333333",
     "-m statistic --mode random --probability 0.33333333349"),
    ("fact1-5", "-m statistic --mode random --probability 0.2",
     "-m statistic --mode random --probability 0.20000000019"),
    ("fact1-6", "-m statistic --mode random --probability 0.1666666667",
     "-m statistic --mode random --probability 0.16666666651"),
    ("fact1-7", "-m statistic --mode random --probability 0.1428571429",
     "-m statistic --mode random --probability 0.14285714272"),
    ("fact1-9", "-m statistic --mode random --probability 0.1111111111",
     "-m statistic --mode random --probability 0.11111111101"),
    ("fact1-10", "-m statistic --mode random --probability 0.1",
     "-m statistic --mode random --probability 0.10000000009"),
    ("f017-old", "-m statistic --mode random --probability 0.16667",
     "-m statistic --mode random --probability 0.16667000018"),
    ("fact2-or", "-j MARK --or-mark 0x4000", "-j MARK --set-xmark 0x4000/0x4000"),
    ("fact2-set-mask", "-j MARK --set-mark 0x4000/0x4000", "-j MARK --set-xmark 0x4000/0x4000"),
    ("fact2-set-wider", "-j MARK --set-mark 0x4000/0x8000", "-j MARK --set-xmark 0x4000/0xc000"),
    ("fact2-and", "-j MARK --and-mark 0xffffbfff", "-j MARK --set-xmark 0x0/0x4000"),
    ("fact2-zeros", "-m mark --mark 0x00004000/0x00004000", "-m mark --mark 0x4000/0x4000"),
    ("fact2-decimal", "-m mark --mark 16384/16384", "-m mark --mark 0x4000/0x4000"),
    ("fact3-number", "-p 6 -m tcp --dport 80", "-p tcp -m tcp --dport 80"),
    ("fact3-all", "-p all -j ACCEPT", "-j ACCEPT"),
    ("fact3-interface", "-o + -j ACCEPT", "-j ACCEPT"),
    ("fact3-ports", "-p tcp --dport 0:65535 -j ACCEPT", "-p tcp -m tcp -j ACCEPT"),
    ("fact3-name", "-p udp --dport domain", "-p udp -m udp --dport 53"),
    ("fact3-one", "-p tcp --dport 80:80", "-p tcp -m tcp --dport 80"),
    ("fact3-open", "-p tcp --dport 1024:", "-p tcp -m tcp --dport 1024:65535"),
    ("fact5-empty", '-m comment --comment ""', '-m  comment  --comment ""'),
    ("fact5-needless-quotes", '-m comment --comment "web_1-a"', "-m comment --comment web_1-a"),
    ("mask", "-s 192.0.2.9/255.255.255.0", "-s 192.0.2.0/24"),
    ("syn", "-p tcp --syn", "-p tcp -m tcp --tcp-flags FIN,SYN,RST,ACK SYN"),
    ("states", "-m conntrack --ctstate RELATED,ESTABLISHED", "-m conntrack --ctstate ESTABLISHED,RELATED"),
    ("implied-first", "-p tcp --dport 53 -m recent --set", "-p tcp -m tcp --dport 53 -m recent --set"),
    ("implied-last", "-p tcp -m recent --set --dport 53", "-p tcp -m recent --set -m tcp --dport 53"),
    ("old-negation", "-s ! 192.0.2.1 -j ACCEPT", "! -s 192.0.2.1/32 -j ACCEPT"),
]


@pytest.mark.parametrize(("written", "saved"), [pair[1:] for pair in SAME], ids=[pair[0] for pair in SAME])
def test_f018_measured_forms_are_the_same(written: str, saved: str) -> None:
    assert same_rule(written, saved, IPV4)
    assert same_rule(saved, written, IPV4)


@pytest.mark.parametrize(("written", "saved"), [
    ("-j REJECT", "-j REJECT --reject-with icmp6-port-unreachable"),
    ("-p icmpv6 --icmpv6-type 135", "-p ipv6-icmp -m icmp6 --icmpv6-type 135"),
    ("-p 58 -j ACCEPT", "-p ipv6-icmp -j ACCEPT"),
    ("-s ::/0 -j ACCEPT", "-j ACCEPT"),
    ("-d 2001:DB8:0:0::7 -j ACCEPT", "-d 2001:db8::7/128 -j ACCEPT"),
    ("-d 2001:db8::7/ffff:ffff:: -j ACCEPT", "-d 2001:db8::/32 -j ACCEPT"),
    ("-m recent --set",
     "-m recent --set --name DEFAULT --mask ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff --rsource"),
])
def test_f040_v6_forms_are_the_same(written: str, saved: str) -> None:
    assert same_rule(written, saved, IPV6)


def test_f040_v4_defaults_are_not_those_of_v6() -> None:
    assert not same_rule("-j REJECT", "-j REJECT --reject-with icmp-port-unreachable", IPV6)
    assert not same_rule("-j REJECT", "-j REJECT --reject-with icmp6-port-unreachable", IPV4)


def test_f017_five_digits_are_a_difference() -> None:
    assert not same_rule("-m statistic --mode random --probability 0.16667000018",
                         "-m statistic --mode random --probability 0.16666666651", IPV4)


@pytest.mark.parametrize("number", [2, 3, 4, 5, 6, 7, 9, 10, 11, 100, 1000])
def test_f017_neighbouring_shares_are_different(number: int) -> None:
    one, other = (f"-m statistic --mode random --probability {1 / n:.11f}" for n in (number, number + 1))
    assert not same_rule(one, other, IPV4)


@pytest.mark.parametrize(("one", "other"), [
    ("-j A", "-g A"),
    ("-j A", ""),
    ("-s 192.0.2.1/32 -j A", "! -s 192.0.2.1/32 -j A"),
    ("-s 192.0.2.1/32 -j A", "-d 192.0.2.1/32 -j A"),
    ("-s 192.0.2.0/24 -j A", "-s 192.0.2.0/25 -j A"),
    ("-i eth0 -j A", "-i eth+ -j A"),
    ("-o eth0 -j A", "-j A"),
    ("! -o + -j A", "-j A"),
    ("-p tcp -j A", "-p udp -j A"),
    ("-p tcp -m tcp ! --dport 0:65535 -j A", "-p tcp -j A"),
    ("-p tcp -m tcp --dport 80 -j A", "-p tcp -m tcp --sport 80 -j A"),
    ("-p tcp -m tcp --dport 80 -j A", "-p tcp -m tcp --dport 80:81 -j A"),
    ("-m comment --comment a -j A", "-m comment --comment b -j A"),
    ("-m comment --comment a -j A", "-j A"),
    ("-m comment --comment a -m comment --comment b -j A", "-m comment --comment a -j A"),
    ('-m comment --comment "-j A"', "-j A"),
    ("-m mark --mark 0x4000/0x4000 -j A", "-m mark --mark 0x4000 -j A"),
    ("-m mark ! --mark 0x4000/0x4000 -j A", "-m mark --mark 0x4000/0x4000 -j A"),
    ("-j MARK --set-xmark 0x4000/0x4000", "-j MARK --set-xmark 0x4000/0x0"),
    ("-j MARK --set-xmark 0x4000/0x4000", "-j MARK --set-xmark 0x4000/0xffffffff"),
    ("-m recent --set --name A --rsource", "-m recent --set --name A --rdest"),
    ("-m recent --rcheck --name A", "-m recent --update --name A"),
    ("-m set --match-set S src -j A", "-m set --match-set S dst -j A"),
    ("-j MASQUERADE", "-j MASQUERADE --random-fully"),
    ("-j DNAT --to-destination 10.0.0.1:80", "-j DNAT --to-destination 10.0.0.1:81"),
    # What a match with a memory sees depends on what stands before it.
    ("-m recent --set -m set --match-set S src", "-m set --match-set S src -m recent --set"),
    ("-p tcp --dport 53 -m recent --set", "-p tcp -m recent --set --dport 53"),
    ("-m statistic --mode nth --every 2 --packet 0 -m set --match-set S src",
     "-m set --match-set S src -m statistic --mode nth --every 2 --packet 0"),
    ("-m limit --limit 5/min -m set --match-set S src", "-m set --match-set S src -m limit --limit 5/min"),
])
def test_other_values_are_another_rule(one: str, other: str) -> None:
    for family in FAMILIES:
        assert not same_rule(one, other, family)


def test_fact4_comma_list_is_a_rule_for_each() -> None:
    both = meanings("-s 192.0.2.1,192.0.2.2 -d 198.51.100.1,198.51.100.2 -j A", IPV4)
    each = [meanings(f"-s 192.0.2.{s}/32 -d 198.51.100.{d}/32 -j A", IPV4)[0] for s in (1, 2) for d in (1, 2)]
    assert list(both) == each
    assert not same_rule("-s 192.0.2.1,192.0.2.2 -j A", "-s 192.0.2.1/32 -j A", IPV4)


def test_f054_comment_is_compared_as_the_kernel_cuts_it() -> None:
    assert same_rule(f"-m comment --comment {'a' * 300}", f"-m comment --comment {'a' * 255}", IPV4)
    assert not same_rule(f"-m comment --comment {'a' * 254}b", f"-m comment --comment {'a' * 255}", IPV4)
    # 255 bytes end in the middle of a character; the tool prints the half of it.
    half = ("é" * 128).encode()[:255].decode("utf-8", "surrogateescape")
    assert same_rule(f'-m comment --comment "{"é" * 128}"', f'-m comment --comment "{half}"', IPV4)


def test_bytes_that_are_no_text_are_still_different() -> None:
    one, other = (f'-m comment --comment "{raw.decode("utf-8", "surrogateescape")}"' for raw in (b"\xe9", b"\xe8"))
    assert not same_rule(one, other, IPV4)


@pytest.mark.parametrize("text", ['-m comment --comment "open', "-m", "-j", "--dport 80 -j A", "--ctstate NEW -j A",
                                  "-m mark --mark nonsense", "-m statistic --probability much"])
def test_text_that_is_no_rule_is_only_itself(text: str) -> None:
    with pytest.raises(ValueError):
        meanings(text, IPV4)
    assert same_rule(text, text, IPV4)
    assert not same_rule(text, text + " ", IPV4)


def test_counters_are_no_part_of_the_decision() -> None:
    counted, = meanings("-m conntrack --ctstate INVALID -m nfacct --nfacct-name  dropped_pkts -j DROP", IPV4)
    plain, = meanings("-m conntrack --ctstate INVALID -j DROP", IPV4)
    assert counted.counters == {"dropped_pkts"}
    assert counted != plain
    assert counted.decision() == plain
