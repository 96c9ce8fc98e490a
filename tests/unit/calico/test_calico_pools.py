# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools as different tools print them."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import read_pools

SPEC = {"metadata": {"name": "a"}, "spec": {"cidr": "10.1.0.0/16", "natOutgoing": True}}
VERSION = "projectcalico.org/v3"


def test_items_of_a_typed_list_need_not_say_what_they_are() -> None:
    alone, _warnings = read_pools([{"apiVersion": VERSION, "kind": "IPPool", **SPEC}])
    in_list, warnings = read_pools([{"apiVersion": VERSION, "kind": "IPPoolList", "items": [SPEC]}])
    assert in_list == alone
    assert [pool.network.text for pool in in_list] == ["10.1.0.0/16"]
    assert warnings == []
