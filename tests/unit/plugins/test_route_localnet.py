# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""When kube-proxy sets route_localnet."""

from __future__ import annotations

import pytest
from ansible.errors import AnsibleFilterError
from ansible_collections.metal.nodenet.plugins.filter.route_localnet import route_localnet


@pytest.mark.parametrize(("layout", "addresses", "localhost", "wanted"), [
    ("1.36", [], True, True),
    ("1.36", [], False, False),
    ("1.36", ["192.0.2.0/24"], True, False),
    ("1.36", ["192.0.2.0/24", "127.0.0.0/8"], True, True),
    ("1.36", ["127.0.0.1/32"], True, True),
    ("1.36", ["0.0.0.0/0"], True, True),
    ("1.36", ["64.0.0.0/2"], True, True),
    ("1.36", ["2001:db8::/32"], True, True),
    ("1.36", ["primary"], True, False),
    ("1.30", ["192.0.2.0/24"], True, False),
    ("1.30", ["127.0.0.0/8"], False, False),
    ("1.24", ["192.0.2.0/24"], True, True),
    ("1.24", ["192.0.2.0/24", "2001:db8::/32"], True, False),
    ("1.24", ["192.0.2.0/24", "::/0"], True, True),
])
def test_as_kube_proxy_decides(layout: str, addresses: list[str], localhost: bool, wanted: bool) -> None:
    assert route_localnet(layout, addresses, localhost) is wanted


@pytest.mark.parametrize(("layout", "addresses", "named"), [
    ("1.31", [], "'1.31'"),
    ("1.36", ["192.0.2.1"], "192.0.2.1"),
])
def test_bad_input_is_named(layout: str, addresses: list[str], named: str) -> None:
    with pytest.raises(AnsibleFilterError, match=named):
        route_localnet(layout, addresses)
