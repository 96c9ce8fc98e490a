# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The matches and targets that Felix's rules are made of, each in both spellings (see ``rule.py``)."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import Piece
from ansible_collections.metal.nodenet.plugins.module_utils.calico.versions import Mark
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Network
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4

#: What iptables-save prints behind a REJECT that says nothing more.
_REJECT_WITH = {True: "icmp-port-unreachable", False: "icmp6-port-unreachable"}

RETURN = Piece("--jump RETURN", "-j RETURN")
DROP = Piece("--jump DROP", "-j DROP")


def source(text: str, network: Network) -> Piece:
    """The source of a packet; ``text`` as Felix has it."""
    return Piece(f"--source {text}", f"-s {network.text}", 1)


def destination(text: str, network: Network) -> Piece:
    """The destination of a packet; ``text`` as Felix has it."""
    return Piece(f"--destination {text}", f"-d {network.text}", 2)


def in_interface(name: str) -> Piece:
    """The interface that a packet comes in by; a ``+`` at the end stands for the rest."""
    return Piece(f"--in-interface {name}", f"-i {name}", 3)


def out_interface(name: str) -> Piece:
    """The interface that a packet goes out by; ``+`` alone is every interface, and save does not print it."""
    return Piece(f"--out-interface {name}", "" if name == "+" else f"-o {name}", 4)


def protocol(name: str) -> Piece:
    """The protocol of a packet, by its name."""
    return Piece(f"-p {name}", f"-p {name}", 5)


def in_set(name: str, direction: str) -> Piece:
    """The packet's ``src`` or ``dst`` is in a set."""
    return _same(f"-m set --match-set {name} {direction}")


def not_in_set(name: str, direction: str) -> Piece:
    """The packet's ``src`` or ``dst`` is not in a set."""
    return _same(f"-m set ! --match-set {name} {direction}")


def destination_ports(ports: str) -> Piece:
    """Destination ports: ``80``, ``30000:32767``, several with commas."""
    return Piece(f"-m multiport --destination-ports {ports}", f"-m multiport --dports {ports}")


def conntrack_state(states: str) -> Piece:
    """The state of the packet's connection."""
    return _same(f"-m conntrack --ctstate {states}")


def marked(mark: Mark) -> Piece:
    """The packet has a mark."""
    return _same(f"-m mark --mark {mark.value:#x}/{mark.mask:#x}")


def jump(chain: str) -> Piece:
    """To a chain and back."""
    return Piece(f"--jump {chain}", f"-j {chain}")


def goto(chain: str) -> Piece:
    """To a chain, and from its end to where this one was called from."""
    return Piece(f"--goto {chain}", f"-g {chain}")


def reject(family: str) -> Piece:
    """Refuse the packet, with the kernel's usual answer."""
    return Piece("--jump REJECT", f"-j REJECT --reject-with {_REJECT_WITH[family == IPV4]}")


def set_mark(mark: Mark) -> Piece:
    """Set the bits of a mark, and no others."""
    return Piece(f"--jump MARK --set-mark {mark.value:#x}/{mark.mask:#x}",
                 f"-j MARK --set-xmark {mark.value:#x}/{mark.mask:#x}")


def dnat(target: str) -> Piece:
    """A new destination: an address, or ``ADDRESS:PORT``."""
    return Piece(f"--jump DNAT --to-destination {target}", f"-j DNAT --to-destination {target}")


def snat(address: str, ports: tuple[int, int] | None, random_fully: bool) -> Piece:
    """A fixed new source (with ports: IPv4 only)."""
    full = _random(random_fully)
    felix, saved = (f":{text}" if text else "" for text in _ports(ports))
    return Piece(f"--jump SNAT --to-source {address}{felix}{full}", f"-j SNAT --to-source {address}{saved}{full}")


def masquerade(ports: tuple[int, int] | None, random_fully: bool) -> Piece:
    """The address of the interface as new source."""
    full = _random(random_fully)
    felix, saved = (f" --to-ports {text}" if text else "" for text in _ports(ports))
    return Piece(f"--jump MASQUERADE{felix}{full}", f"-j MASQUERADE{saved}{full}")


def _same(text: str) -> Piece:
    return Piece(text, text)


def _random(random_fully: bool) -> str:
    return " --random-fully" if random_fully else ""


def _ports(ports: tuple[int, int] | None) -> tuple[str, str]:
    """A port range as Felix writes it, and as save prints it: a range of one port as that port."""
    if ports is None:
        return "", ""
    low, high = ports
    return f"{low}-{high}", f"{low}" if low == high else f"{low}-{high}"
