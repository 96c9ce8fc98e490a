# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's own routes, while interfaces come and go."""

from __future__ import annotations

import socket

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.addresses import local_routes


def test_an_interface_that_goes_while_routes_are_read_takes_its_own_along(monkeypatch: pytest.MonkeyPatch) -> None:
    before = local_routes()
    assert any(route.interface == "lo" for route in before)
    real = socket.if_indextoname

    def gone(index: int) -> str:
        name = real(index)
        if name != "lo":
            raise OSError(6, "No such device or address")
        return name

    monkeypatch.setattr(socket, "if_indextoname", gone)
    assert local_routes() == [route for route in before if route.interface == "lo"]
