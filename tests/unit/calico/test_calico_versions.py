# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between versions, and what is no version."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.calico.versions import calico_version


@pytest.mark.parametrize(
    ("text", "pools", "lb", "exclusions", "last", "mask"),
    [
        ("3.22", "all-ipam-pools", False, False, False, 0xFFF00000),
        ("3.28", "all-ipam-pools", False, False, True, 0xFFF00000),
        ("3.28.1", "all-ipam-pools", False, False, False, 0xFFF00000),
        ("3.28.2", "all-ipam-pools", False, False, True, 0xFFF00000),
        ("3.29.0", "all-ipam-pools", False, False, True, 0xFFF00000),
        ("3.30", "all-ipam-pools", False, False, True, 0xFFE00000),
        ("3.31", "network-ip-pools", True, True, True, 0xFFE00000),
        ("3.31.5", "all-ipam-pools", False, True, True, 0xFFE00000),
        ("3.31.6", "network-ip-pools", True, True, True, 0xFFE00000),
        ("3.32.0", "all-ipam-pools", False, True, True, 0xFFE00000),
        ("3.32", "network-ip-pools", True, True, True, 0xFFE00000),
        ("v3.33.0", "network-ip-pools", True, True, True, 0xFFE00000),
    ],
)
def test_versions(text: str, pools: str, lb: bool, exclusions: bool, last: bool, mask: int) -> None:
    version = calico_version(text)
    assert (version.network_pools_id, version.excludes_lb_only, version.has_exclusions) == (pools, lb, exclusions)
    assert (version.nat_hook_last, version.endpoint_mask) == (last, mask)
    assert version.no_endpoint_mark == ((0x200000 if mask == 0xFFE00000 else 0x100000), mask)


@pytest.mark.parametrize("text", ["3", "3.21", "3.34", "4.1", "latest", "3.33.x", "3.33\n", "", 3.33, None])
def test_a_version_that_is_none_is_named(text: Any) -> None:
    with pytest.raises(ValueError, match="calico_version: ") as caught:
        calico_version(text)
    assert repr(text) in str(caught.value)
