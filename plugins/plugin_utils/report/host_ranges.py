# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many host names in few characters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import groupby

_numbered = re.compile(r"(.*?)([0-9]+)([^0-9]*)").fullmatch


def compact(hosts: Iterable[str]) -> str:
    """``node1``, ``node2``, ``node3`` as ``node[1-3]``; names in order, ranges of equally wide numbers together."""
    singles: list[str] = []
    numbers: dict[tuple[str, str, int], list[int]] = {}
    for host in dict.fromkeys(hosts):
        found = _numbered(host)
        if found is None:
            singles.append(host)
            continue
        head, digits, tail = found.groups()
        # Leading zeros are part of the name: node01 and node1 are two hosts. Width 0 stands for none.
        width = len(digits) if digits.startswith("0") and len(digits) > 1 else 0
        numbers.setdefault((head, tail, width), []).append(int(digits))
    ranges = [f"{head}{_ranges(found, width)}{tail}" for (head, tail, width), found in _merged(numbers).items()]
    return ", ".join(sorted(singles + ranges))


def _merged(numbers: dict[tuple[str, str, int], list[int]]) -> dict[tuple[str, str, int], list[int]]:
    """Numbers without a leading zero join those with zeros of their width: node099, node100."""
    out = {key: list(found) for key, found in numbers.items() if key[2]}
    for (head, tail, width), found in numbers.items():
        if width:
            continue
        for value in found:
            wide = (head, tail, len(str(value)))
            out.setdefault(wide if wide in numbers else (head, tail, 0), []).append(value)
    return out


def _ranges(numbers: list[int], width: int) -> str:
    texts = []
    for _offset, run in groupby(enumerate(sorted(numbers)), lambda pair: pair[1] - pair[0]):
        values = [value for _at, value in run]
        first, last = f"{values[0]:0{width}d}", f"{values[-1]:0{width}d}"
        texts.append(first if len(values) == 1 else f"{first}-{last}")
    return texts[0] if len(numbers) == 1 else f"[{','.join(texts)}]"
