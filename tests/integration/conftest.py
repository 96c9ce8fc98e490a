# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Fixtures of the tests on a real kernel."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.agent import Agent
from support.node import Node, node
from support.shims import Shims


@pytest.fixture(params=["nft", "legacy"])
def kube_node(request: pytest.FixtureRequest) -> Iterator[Node]:
    """An empty node with one interface, once per backend."""
    with node(request.param) as one:
        one.add_interface("eth0", ["192.0.2.11/24", "2001:db8::11/64"])
        yield one


@pytest.fixture
def nft_node() -> Iterator[Node]:
    """The same on the nft backend only, where the backend makes no difference."""
    with node("nft") as one:
        one.add_interface("eth0", ["192.0.2.11/24", "2001:db8::11/64"])
        yield one


@pytest.fixture
def shims(tmp_path: Path) -> Shims:
    """Stand-ins for tools."""
    return Shims(tmp_path / "shims")


@pytest.fixture
def agent(kube_node: Node, tmp_path: Path) -> Iterator[Agent]:
    """What a node remembers, once per backend. Processes that wait for a deadline end with the test."""
    yield from _agent(kube_node, tmp_path)


@pytest.fixture
def nft_agent(nft_node: Node, tmp_path: Path) -> Iterator[Agent]:
    """The same on the nft backend only."""
    yield from _agent(nft_node, tmp_path)


def _agent(one_node: Node, folder: Path) -> Iterator[Agent]:
    one = Agent(one_node, folder)
    yield one
    for process in one.waiting():
        # It may have seen by itself that it is not needed any more.
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)
