# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Recorded calls of the ``conntrack`` program, compared with the flows that the module selects."""

from __future__ import annotations

from typing import Any


def covered(call: str, selected: list[dict[str, Any]]) -> bool:
    """Whether a recorded deletion is among the selected ones.

    ``-D --orig-dst IP [--dst-nat EP] -p udp`` or ``-D -p udp --dport PORT [--dst-nat EP]``, with ``-f ipv6``. Ours are
    narrower in one way only: they name the port of the frontend where the recorded call takes every port of the
    address, and the addresses of the node where it takes every address.
    """
    words = call.split()
    value = {words[at]: words[at + 1] for at in range(len(words) - 1) if words[at].startswith("-")}
    family = value.get("-f", "ipv4")
    endpoint = value.get("--dst-nat")
    return any(one["family"] == family and one["protocol"] == value["-p"]
               and (value["--orig-dst"] in one["destinations"] if "--orig-dst" in value
                    else int(value["--dport"]) == one["port"])
               and (endpoint is None or not any(_address(kept) == endpoint for kept in one["kept_endpoints"]))
               for one in selected)


def _address(endpoint: str) -> str:
    return endpoint.rpartition(":")[0].strip("[]")
