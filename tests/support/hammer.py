# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client that opens connections without a pause, and keeps count of those that fail."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from support.node import Node

_SERVER = """
import socket, sys
server = socket.create_server(("0.0.0.0", int(sys.argv[1])), backlog=512)
print("ready", flush=True)
while True:
    connection, _client = server.accept()
    connection.sendall(b"here")
    connection.close()
"""

_CLIENT = """
import signal, socket, sys
address, port = sys.argv[1], int(sys.argv[2])
stop, good, bad = [], 0, []
signal.signal(signal.SIGTERM, lambda *_: stop.append(1))
print("ready", flush=True)
while not stop:
    try:
        with socket.create_connection((address, port), timeout=1) as connection:
            if connection.recv(4) != b"here":
                raise OSError("connected, and nobody answered")
            good += 1
    except OSError as error:
        bad.append(str(error))
print(good, len(bad), *bad[:3])
"""


@contextmanager
def tcp_server(host: Node, port: int) -> Iterator[None]:
    """Something on the host that answers every connection."""
    with subprocess.Popen(["ip", "netns", "exec", host.name, sys.executable, "-c", _SERVER, str(port)],
                          stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "ready\n"
        try:
            yield
        finally:
            server.kill()


class Hammer:
    """Connects again and again from its start to :meth:`stop`, or to the end of a block that fails."""

    def __init__(self, client: Node, address: str, port: int) -> None:
        self._process = subprocess.Popen(
            ["ip", "netns", "exec", client.name, sys.executable, "-c", _CLIENT, address, str(port)],
            stdout=subprocess.PIPE, text=True)
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == "ready\n"

    def __enter__(self) -> Hammer:
        return self

    def __exit__(self, *_failure: object) -> None:
        self._process.kill()
        self._process.wait()

    def stop(self) -> tuple[int, int, str]:
        """How many connections succeeded and failed, and the first reasons."""
        self._process.terminate()
        output, _nothing = self._process.communicate(timeout=10)
        good, bad, *reasons = output.split(" ", 2)
        return int(good), int(bad), " ".join(reasons).strip()
