# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client and pods around a node, each in a network namespace of its own, and what they say to each other."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from support.node import Node

_SERVER = """
import socket, sys
name, port = sys.argv[1], int(sys.argv[2])
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind(("0.0.0.0", port))
print("ready", flush=True)
while True:
    _question, sender = server.recvfrom(100)
    server.sendto(name.encode(), sender)
"""

_CLIENT = """
import socket, sys
address, port, source, seconds = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), float(sys.argv[4])
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
client.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
client.bind(("", source))
client.connect((address, port))
client.settimeout(seconds)
try:
    client.send(b"who are you")
    print(client.recv(100).decode())
except OSError:
    pass
"""


class Wire:
    """``node`` in the middle, a client at 192.0.2.99 on its far side of ``eth0``, pods at 10.244.N.5 behind it."""

    def __init__(self, node: Node, pods: int) -> None:
        self.node = node
        self.pods = [f"10.244.{number}.5" for number in range(1, pods + 1)]
        self.client = Node(node.backend)
        self.pod_nodes = [Node(node.backend) for _pod in self.pods]

    def __enter__(self) -> Wire:
        self.node.exec("sysctl", "-qw", "net.ipv4.ip_forward=1")
        self.node.ip("link", "set", "eth0-far", "netns", self.client.name)
        self.client.ip("addr", "add", "192.0.2.99/24", "dev", "eth0-far")
        self.client.ip("link", "set", "eth0-far", "up")
        self.client.ip("route", "add", "default", "via", "192.0.2.11")
        for number, (pod, address) in enumerate(zip(self.pod_nodes, self.pods)):
            self.node.ip("link", "add", f"pod{number}", "type", "veth", "peer", "name", "eth0", "netns", pod.name)
            self.node.ip("addr", "add", "169.254.1.1/32", "dev", f"pod{number}")
            self.node.ip("link", "set", f"pod{number}", "up")
            self.node.ip("route", "add", address, "dev", f"pod{number}")
            pod.ip("addr", "add", f"{address}/32", "dev", "eth0")
            pod.ip("link", "set", "eth0", "up")
            pod.ip("route", "add", "169.254.1.1", "dev", "eth0", "scope", "link")
            pod.ip("route", "add", "default", "via", "169.254.1.1")
        return self

    def __exit__(self, *_exception: object) -> None:
        for one in (self.client, *self.pod_nodes):
            one.close()

    @contextmanager
    def serve_udp(self, port: int) -> Iterator[None]:
        """Every pod answers its own address on this port."""
        servers = [subprocess.Popen(
            ["ip", "netns", "exec", pod.name, sys.executable, "-c", _SERVER, address, str(port)],
            stdout=subprocess.PIPE) for pod, address in zip(self.pod_nodes, self.pods)]
        try:
            for server in servers:
                assert server.stdout is not None
                assert server.stdout.readline() == b"ready\n"
            yield
        finally:
            for server in servers:
                server.kill()
                server.wait()
                if server.stdout:
                    server.stdout.close()

    def ask_udp(self, address: str, port: int, source_port: int, seconds: float = 1.0) -> str | None:
        """Who answers the client there; None for nobody."""
        time.sleep(0.05)
        answer = self.client.exec(sys.executable, "-c", _CLIENT, address, str(port), str(source_port), str(seconds))
        return answer.strip() or None
