# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a client notices while everything around it changes: ``python tests/bench/no_gap.py [SERVICES]`` (root).

A client opens connections to one service without a pause, while many others are loaded, then all get other endpoints,
then go. The test of this name in ``tests/integration`` does the same with hundreds.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent))

from bench.clusters import cluster
from support.builders import endpoint_slice, service
from support.hammer import Hammer, tcp_server
from support.node import Node, node
from support.packets import Wire

_ADDRESS = "10.200.0.10"
_COLUMNS = ("backend", "services", "run", "seconds", "good", "failed", "chains")


def main(services: int = 10_000) -> None:
    """Print the table."""
    print(" ".join(f"{column:>10}" for column in _COLUMNS))
    for backend in ("nft", "legacy"):
        with node(backend) as one:
            one.add_interface("eth0", ["192.0.2.11/24"])
            with Wire(one, pods=1) as wire, tcp_server(wire.pod_nodes[0], 8080):
                _run(wire, [])
                everything = cluster(services, 5)
                for name, objects in (("load", everything), ("update", _moved(everything)), ("remove", [])):
                    print(" ".join(f"{cell:>10}" for cell in _hammered(wire, services, name, objects)), flush=True)


def _hammered(wire: Wire, services: int, name: str, objects: list[dict[str, Any]]) -> tuple[str, ...]:
    hammer = Hammer(wire.client, _ADDRESS, 80)
    started = time.monotonic()
    result = _run(wire, objects)
    took = time.monotonic() - started
    good, bad, reasons = hammer.stop()
    if bad:
        print(f"failed: {reasons}")
    return (wire.node.backend, str(services), name, f"{took:.1f}", str(good), str(bad),
            str(sum(result["plan"]["chains"].values())))


def _run(wire: Wire, objects: list[dict[str, Any]]) -> dict[str, Any]:
    items = [service(clusterIP=_ADDRESS), endpoint_slice(*wire.pods), *objects]
    services = [item for item in items if item["kind"] == "Service"]
    slices = [item for item in items if item["kind"] == "EndpointSlice"]
    result = _module(wire.node, services, slices)
    if result.get("failed"):
        sys.exit(result["msg"])
    return result


def _module(one: Node, services: list[dict[str, Any]], slices: list[dict[str, Any]]) -> dict[str, Any]:
    return one.module(services=services, endpoint_slices=slices, backend=one.backend, diff_limit=100,
                      conntrack_cleanup=True)


def _moved(objects: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same services, each with other endpoints."""
    return [{**item, "endpoints": [{**entry, "addresses": [entry["addresses"][0].replace("10.1", "10.2", 1)]}
                                   for entry in item["endpoints"]]}
            if item["kind"] == "EndpointSlice" else item for item in objects]


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
