# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One host asks another, over UDP or TCP, who it is and whom it sees: what becomes of addresses on the way."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from support.node import Node

REFUSED = "refused"

_SERVER = """
import socket, sys, threading
name, port = sys.argv[1], int(sys.argv[2])
udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
udp.bind(("0.0.0.0", port))
tcp = socket.create_server(("0.0.0.0", port))
def streams():
    while True:
        connection, sender = tcp.accept()
        connection.sendall(f"{name} sees {sender[0]}:{sender[1]}".encode())
        connection.close()
threading.Thread(target=streams, daemon=True).start()
print("ready", flush=True)
while True:
    _question, sender = udp.recvfrom(100)
    udp.sendto(f"{name} sees {sender[0]}:{sender[1]}".encode(), sender)
"""

_CLIENT = """
import socket, sys
protocol, address, port, source, seconds = sys.argv[1:]
family = socket.AF_INET6 if ":" in address else socket.AF_INET
client = socket.socket(family, socket.SOCK_DGRAM if protocol == "udp" else socket.SOCK_STREAM)
client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
client.bind(("", int(source)))
client.settimeout(float(seconds))
try:
    client.connect((address, int(port)))
    if protocol == "udp":
        client.send(b"who are you")
    print(client.recv(100).decode())
except ConnectionRefusedError:
    print("refused")
except OSError:
    pass
"""


@contextmanager
def listening(host: Node, name: str, port: int) -> Iterator[None]:
    """``host`` answers on this port of both protocols that it is ``name``, and whom it sees."""
    with subprocess.Popen(["ip", "netns", "exec", host.name, sys.executable, "-c", _SERVER, name, str(port)],
                          stdout=subprocess.PIPE) as server:
        try:
            assert server.stdout is not None
            assert server.stdout.readline() == b"ready\n"
            yield
        finally:
            server.kill()


def ask(host: Node, protocol: str, address: str, port: int, source_port: int = 0, seconds: float = 1.0) -> str | None:
    """What ``host`` is told there: ``NAME sees ADDRESS:PORT``, :data:`REFUSED`, or nothing."""
    answer = host.exec(sys.executable, "-c", _CLIENT, protocol, address, str(port), str(source_port), str(seconds))
    return answer.strip() or None


def seen(answer: str | None) -> tuple[str, str]:
    """Who answered, and whose address it saw."""
    assert answer is not None, "nobody answered"
    name, _sees, sender = answer.split(" ")
    return name, sender.rpartition(":")[0]
