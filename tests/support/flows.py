# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of the kernel's connection tracking table, made and read with the ``conntrack`` program."""

from __future__ import annotations

import itertools
import re
from typing import NamedTuple

from support.node import Node

_client_ports = itertools.count(30_000)


class Listed(NamedTuple):
    """One entry: what a client asked for, and who answers."""

    protocol: str
    destination: str
    port: int
    answering: str


def make_flow(one: Node, protocol: str, destination: str, answering: str, port: int = 80,
              answering_port: int | None = None) -> None:
    """A flow to ``destination`` that ``answering`` answers, on the same port unless told, from its own client port."""
    source = str(next(_client_ports))
    client = "2001:db8::99" if ":" in destination else "192.0.2.99"
    state = ["--state", "ESTABLISHED"] if protocol == "tcp" else []
    one.exec("conntrack", "-I", "-t", "300", "-p", protocol, "-s", client, "-d", destination, "-r", answering,
             "-q", client, "--sport", source, "--dport", str(port), "--reply-port-src", str(answering_port or port),
             "--reply-port-dst", source, *state)


def flows(one: Node) -> list[str]:
    """``protocol destination > answering`` of every flow of both families."""
    return sorted(f"{flow.protocol} {flow.destination} > {flow.answering}" for flow in listed_flows(one))


def listed_flows(one: Node) -> list[Listed]:
    """Every flow of both families."""
    found = []
    for family in ("ipv4", "ipv6"):
        for line in one.exec("conntrack", "-L", "-f", family).splitlines():
            match = re.search(r"^(\w+).*? dst=(\S+) sport=\d+ dport=(\d+).*?src=(\S+)", line)
            assert match, line
            found.append(Listed(match[1], match[2], int(match[3]), match[4]))
    return found
