# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Entries of the kernel's connection tracking table, made and read with the ``conntrack`` program."""

from __future__ import annotations

import itertools
import re

from support.node import Node

_client_ports = itertools.count(30_000)


def make_flow(one: Node, protocol: str, destination: str, answering: str, port: int = 80) -> None:
    """A flow of a client to ``destination`` that ``answering`` answers, on the same port."""
    source = str(next(_client_ports))
    client = "2001:db8::99" if ":" in destination else "192.0.2.99"
    state = ["--state", "ESTABLISHED"] if protocol == "tcp" else []
    one.exec("conntrack", "-I", "-t", "300", "-p", protocol, "-s", client, "-d", destination, "-r", answering,
             "-q", client, "--sport", source, "--dport", str(port), "--reply-port-src", str(port),
             "--reply-port-dst", source, *state)


def flows(one: Node) -> list[str]:
    """``protocol destination > answering`` of every flow of both families."""
    found = []
    for family in ("ipv4", "ipv6"):
        for line in one.exec("conntrack", "-L", "-f", family).splitlines():
            match = re.search(r"^(\w+).*? dst=(\S+) .*?src=(\S+)", line)
            assert match, line
            found.append(f"{match[1]} {match[2]} > {match[3]}")
    return sorted(found)
