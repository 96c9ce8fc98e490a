# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options that all parts of Felix's state share, and how values of options are checked.

Everything here raises ``ValueError`` naming the option and the value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from ansible_collections.metal.nodenet.plugins.module_utils.calico.versions import (
    NEWEST,
    CalicoVersion,
    calico_version,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, IPV4, IPV6
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

INSERT = "insert"
APPEND = "append"

#: The dataplanes of Calico whose state is made of iptables rules, at least in part.
IPTABLES = "iptables"
BPF = "bpf"

DEFAULT_MAXELEM = 1048576

#: What the kernel takes: 15 characters and the NUL.
INTERFACE_LENGTH = 15

_port_range = re.compile(r"([0-9]{1,5})(?::([0-9]{1,5}))?").fullmatch


def _random_fully() -> dict[str, bool]:
    return {IPV4: True, IPV6: True}


@dataclass(frozen=True)
class CalicoOptions:
    """What the entries in shared chains depend on."""

    #: Such as ``3.33`` or ``3.31.5``.
    calico_version: str = NEWEST
    #: Whether jumps in built-in chains go to the head (``insert``) or to the end (``append``).
    insert_mode: str = INSERT
    #: Give rules the ids by which Felix knows them as its own.
    rule_hashes: bool = True

    def __post_init__(self) -> None:
        calico_version(self.calico_version)
        one_of("insert_mode", self.insert_mode, (INSERT, APPEND))

    @property
    def version(self) -> CalicoVersion:
        """What differs between versions."""
        return calico_version(self.calico_version)

    @property
    def bpf(self) -> bool:
        """Whether packets are forwarded in eBPF, and iptables has only what is left."""
        return False


@dataclass(frozen=True)
class NatOptions(CalicoOptions):
    """The options of what translates addresses."""

    #: ``iptables`` or ``bpf``.
    dataplane: str = IPTABLES
    #: Family to whether its iptables knows ``--random-fully``.
    random_fully: dict[str, bool] = field(default_factory=_random_fully)

    def __post_init__(self) -> None:
        super().__post_init__()
        one_of("dataplane", self.dataplane, (IPTABLES, BPF))
        missing = [family for family in FAMILIES if family not in self.random_fully]
        if missing:
            raise ValueError(f"random_fully: {shown(self.random_fully)} does not say anything about {missing[0]}")

    @property
    def bpf(self) -> bool:
        """Whether packets are forwarded in eBPF, and iptables has only what is left."""
        return self.dataplane == BPF


def one_of(option: str, value: object, allowed: Sequence[str]) -> None:
    """Refuse anything but one of the words."""
    if value not in allowed:
        raise ValueError(f"{option}: {shown(value)} is not one of {', '.join(allowed)}")


def at_least_one(option: str, value: object) -> None:
    """Refuse anything but a positive integer that the kernel takes."""
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= 0xFFFFFFFF:
        raise ValueError(f"{option}: {shown(value)} is not an integer from 1 to {0xFFFFFFFF}")


def port_range(option: str, value: int | str) -> tuple[int, int]:
    """The first and the last port of ``80``, ``"80"`` or ``"80:90"``, 0 included."""
    match = _port_range(str(value)) if isinstance(value, (int, str)) and not isinstance(value, bool) else None
    low = int(match.group(1)) if match else 1
    high = int(match.group(2) or low) if match else 0
    if not low <= high <= 65535:
        raise ValueError(f"{option}: {shown(value)} is not a port or a range MIN:MAX of ports from 0 to 65535")
    return low, high
