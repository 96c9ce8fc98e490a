# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play over many nodes on this machine: ``python tests/bench/fleet.py [NODES [SERVICES [FORKS]]]`` (root).

Network namespaces stand for the nodes, so the machine does the work of the controller and of all nodes. What is sent is
what would be sent over a network. Seconds are those of ``ansible-playbook``, its own start included.
"""

from __future__ import annotations

import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent))

from bench.clusters import cluster
from support.fleet import Fleet, make_nodes

_ENDPOINTS = 5
_COLUMNS = ("run", "seconds", "per node", "changed", "sent", "kB each")


def main(nodes: int = 100, services: int = 1000, forks: int = 20) -> None:
    """Print the table."""
    print(f"{platform.python_implementation()} {platform.python_version()}, Linux {platform.release()}, {nodes} nodes, "
          f"{services} services of {_ENDPOINTS} endpoints, {forks} forks")
    print(" ".join(f"{column:>12}" for column in _COLUMNS))
    fleet_nodes = make_nodes([f"node{at:03d}" for at in range(1, nodes + 1)])
    try:
        with tempfile.TemporaryDirectory() as folder:
            fleet = Fleet(Path(folder), fleet_nodes)
            for row in _rows(fleet, services, forks):
                print(" ".join(f"{cell:>12}" for cell in row), flush=True)
    finally:
        for one in fleet_nodes.values():
            one.close()


def _rows(fleet: Fleet, services: int, forks: int) -> Iterator[tuple[str, ...]]:
    objects = cluster(services, _ENDPOINTS)
    yield _run(fleet, "check", objects, forks, "--check")
    yield _run(fleet, "cold", objects, forks)
    yield _run(fleet, "first same", objects, forks)
    yield _run(fleet, "same", objects, forks)
    objects[2]["endpoints"][0]["addresses"] = ["10.250.0.1"]
    yield _run(fleet, "endpoint", objects, forks)


def _run(fleet: Fleet, name: str, objects: list[dict[str, Any]], forks: int, *options: str) -> tuple[str, ...]:
    source = fleet.write("cluster.json", {"kind": "List", "items": objects})
    task = {"name": "Apply", "metal.nodenet.kube_nat_chains": {
        "cluster": str(source), "node_name": "{{ inventory_hostname }}", "state_dir": "{{ node_state_dir }}",
        "diff_limit": 100, "detect_local": {"cidrs": ["10.128.0.0/9"]}}}
    play = fleet.write("play.json", [{"hosts": "nodes", "gather_facts": False, "tasks": [task]}])
    started = time.monotonic()
    done = fleet.run(str(play), "-vv", "--forks", str(forks), *options).ok()
    wall = time.monotonic() - started
    sizes = [path.stat().st_size for path in fleet.state_dir(next(iter(fleet.nodes))).glob("cache/*.json.gz")]
    return (name, f"{wall:.1f}", f"{wall / len(fleet.nodes):.2f}", str(sum(done.count("changed").values())),
            str(done.stdout.count("was sent")), f"{max(sizes) / 1024:.0f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
