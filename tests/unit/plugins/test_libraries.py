# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A controller without one of the Python packages."""

from __future__ import annotations

import sys

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.plugin_utils.overlaps import ranges_of
from ansible_collections.metal.nodenet.plugins.plugin_utils.selection import select


def test_without_netaddr_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "netaddr", None)
    with pytest.raises(ClusterFileError, match=r"has no package netaddr: pip install netaddr"):
        list(ranges_of([], ["10.96.0.0/12"], []))


def test_without_jmespath_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jmespath", None)
    with pytest.raises(ClusterFileError, match=r"has no package jmespath: pip install jmespath"):
        select([], {"Service": "true"})
