# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chains that are the same whatever the Services are."""

from __future__ import annotations

from collections.abc import Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.kube import names
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import FIREWALL_JUMPS, JumpRule
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import DROP_MARK, ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import parse_address, single
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import HEAD, IPV4, Chain, Jump

_NODEPORTS_COMMENT = (
    '-m comment --comment "kubernetes service nodeports; NOTE: this must be the last rule in this chain"'
)


def postrouting(options: ProxyOptions, family: str) -> Chain:
    """Masquerade what is marked, and take the mark off so that a second pass leaves it alone."""
    mark = options.mark
    fully = " --random-fully" if options.random_fully.get(family, True) else ""
    return Chain(names.POSTROUTING, (
        f"-m mark ! --mark {mark}/{mark} -j RETURN",
        f"-j MARK --set-xmark {mark}/0x0",
        f'-m comment --comment "kubernetes service traffic requiring SNAT" -j MASQUERADE{fully}',
    ))


def mark_masq(options: ProxyOptions) -> Chain:
    """Mark for :func:`postrouting`; other bits of the mark stay."""
    return Chain(names.MARK_MASQ, (f"-j MARK --set-xmark {options.mark}/{options.mark}",))


def mark_drop(options: ProxyOptions) -> Chain:
    """Mark for the kubelet's drop rule; the kubelet fills the chain unless we stand in for it."""
    if not options.provide_mark_drop:
        return Chain(names.MARK_DROP, exists_only=True)
    return Chain(names.MARK_DROP, (f"-j MARK --set-xmark {DROP_MARK:#x}/{DROP_MARK:#x}",))


def forward(options: ProxyOptions) -> Chain:
    """Let service traffic through a FORWARD policy of DROP."""
    rules = (
        "-m conntrack --ctstate INVALID -j DROP",
        f'-m comment --comment "kubernetes forwarding rules" -m mark --mark {options.mark}/{options.mark} -j ACCEPT',
        '-m comment --comment "kubernetes forwarding conntrack rule" '
        "-m conntrack --ctstate RELATED,ESTABLISHED -j ACCEPT",
    )
    liberal = options.tcp_be_liberal and options.layout.liberal_drops_rule
    return Chain(names.FORWARD, rules[1:] if liberal else rules)


def firewall(options: ProxyOptions, family: str) -> Chain:
    """KUBE-FIREWALL: keep others off the loopback addresses that node ports make reachable, or drop what is marked.

    Where there is nothing of ours to put in, the chain only has to exist: the kubelet may have rules in it.
    """
    if options.provide_mark_drop:
        return Chain(names.FIREWALL, (
            '-m comment --comment "kubernetes firewall for dropping marked packets" '
            f"-m mark --mark {DROP_MARK:#x}/{DROP_MARK:#x} -j DROP",
        ))
    if not options.serves_localhost(family):
        return Chain(names.FIREWALL, exists_only=True)
    return Chain(names.FIREWALL, (
        '! -s 127.0.0.0/8 -d 127.0.0.0/8 -m comment --comment "block incoming localnet connections" '
        "-m conntrack ! --ctstate RELATED,ESTABLISHED,DNAT -j DROP",
    ))


def canary() -> Chain:
    """The chain whose absence tells kube-proxy that somebody flushed the table."""
    return Chain(names.CANARY)


def nodeport_jumps(options: ProxyOptions, family: str) -> list[str]:
    """The last rules of KUBE-SERVICES: what is for the node itself and for no Service goes to the node ports."""
    if options.nodeport_networks(family):
        return sorted(f"-d {single(parse_address(text))} {_NODEPORTS_COMMENT} -j {names.NODEPORTS}"
                      for text in options.nodeport_ips(family))
    except_loopback = ""
    if options.layout.excludes_loopback and not options.serves_localhost(family):
        except_loopback = "! -d 127.0.0.0/8 " if family == IPV4 else "! -d ::1/128 "
    return [f"{except_loopback}{_NODEPORTS_COMMENT} -m addrtype --dst-type LOCAL -j {names.NODEPORTS}"]


def jumps(options: ProxyOptions, table: str) -> tuple[Jump, ...]:
    """The jumps of a table, the topmost first per built-in chain."""
    rules: Sequence[JumpRule] = options.layout.jumps.get(table, ())
    if options.provide_mark_drop and table == "filter":
        rules = (*FIREWALL_JUMPS, *rules)
    # Calico's jump from POSTROUTING is the last rule, so ours goes before it; the others stay before ours.
    return tuple(Jump(jump.parent, jump.rule, HEAD, ranked=jump.target != names.FIREWALL,
                      yields=jump.target != names.POSTROUTING) for jump in rules)
