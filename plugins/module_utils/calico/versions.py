# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What differs between the versions of Calico, as data."""

from __future__ import annotations

import re
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

NEWEST = "3.33"

_text = re.compile(r"v?3\.([0-9]{1,3})(?:\.([0-9]{1,3}))?").fullmatch

_OLDEST_MINOR = 22
_NEWEST_MINOR = 33
#: Stands for the newest patch of a minor version.
_LAST_PATCH = 999

#: From which patch of a minor version on; all later minor versions have it too.
_NAT_HOOK_LAST = ((28, 2), (29, 0))
_NETWORK_POOLS = ((31, 6), (32, 1), (33, 0))


class Mark(NamedTuple):
    """A value of the packet mark and the bits that it is compared or set in."""

    value: int
    mask: int


class CalicoVersion(NamedTuple):
    """One version's way of doing things."""

    name: str
    #: The id of the set of all pools.
    network_pools_id: str
    #: Pools for load balancers alone are left out of that set.
    excludes_lb_only: bool
    #: Addresses of hosts can be excluded from masquerading.
    has_exclusions: bool
    #: The jump from POSTROUTING in nat stands at the very end, whatever the insert mode is.
    nat_hook_last: bool
    #: eBPF dataplane: the mark of packets to masquerade.
    bpf_outgoing: Mark
    #: eBPF dataplane: the mark of packets that a pod sends to itself. None: there is no rule for them.
    bpf_loopback: Mark | None
    #: The bits that tell endpoints apart; the lowest of them alone means: no endpoint of Calico.
    endpoint_mask: int

    @property
    def no_endpoint_mark(self) -> Mark:
        """The mark of packets from where there is no endpoint of Calico."""
        return Mark(self.endpoint_mask & -self.endpoint_mask, self.endpoint_mask)


def calico_version(text: str) -> CalicoVersion:
    """The version for a text such as ``3.33`` or ``3.31.5``. Without a patch it is the newest one.

    Raises ``ValueError`` for anything that is no version, and for versions that are not covered.
    """
    match = _text(text) if isinstance(text, str) else None
    minor = int(match.group(1)) if match else 0
    if match is None or not _OLDEST_MINOR <= minor <= _NEWEST_MINOR:
        raise ValueError(f"calico_version: {shown(text)} is not a version from 3.{_OLDEST_MINOR} to 3.{_NEWEST_MINOR}, "
                         "with or without a patch")
    release = (minor, int(match.group(2)) if match.group(2) else _LAST_PATCH)
    network_pools = _has(release, _NETWORK_POOLS)
    return CalicoVersion(
        name=text,
        network_pools_id="network-ip-pools" if network_pools else "all-ipam-pools",
        excludes_lb_only=network_pools,
        has_exclusions=minor >= 31,
        nat_hook_last=_has(release, _NAT_HOOK_LAST),
        bpf_outgoing=_bpf_outgoing(minor),
        bpf_loopback=Mark(0x3600000, 0x3F00000) if minor >= 23 else None,
        endpoint_mask=0xFFE00000 if minor >= 30 else 0xFFF00000,
    )


def _has(release: tuple[int, int], since: tuple[tuple[int, int], ...]) -> bool:
    return release[0] > since[-1][0] or any(release[0] == minor and release[1] >= patch for minor, patch in since)


def _bpf_outgoing(minor: int) -> Mark:
    if minor >= 33:
        return Mark(0x1800000, 0x1F00000)
    return Mark(0x3800000, 0x3F00000 if minor >= 23 else 0x3800000)
