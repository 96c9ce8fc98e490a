# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""CPU time of rendering, by size: ``python tests/bench/render.py [SERVICES …]`` (default 1000 10000 20000, times 5)."""

from __future__ import annotations

import gc
import platform
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import read_cluster
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.kube.rules import desired
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES
from bench.clusters import cluster

_ENDPOINTS = 5
_ROUNDS = 3


def main(sizes: list[int]) -> None:
    """Print one row per layout and size: seconds of CPU (best of three), and microseconds per rule."""
    print(f"{platform.python_implementation()} {platform.python_version()}, {_ENDPOINTS} endpoints per service, "
          f"both families, seconds of CPU, best of {_ROUNDS}")
    print(f"{'layout':>6} {'services':>9} {'rules':>8} {'read':>6} {'render':>7} {'both':>6} {'us/rule':>8}")
    for name, layout in LAYOUTS.items():
        options = ProxyOptions(layout=layout, node_name="node1", detect_local="cluster_cidr", cidrs=("10.128.0.0/9",))
        for size in sizes:
            objects = cluster(size, _ENDPOINTS)
            read, found = _best(lambda objects=objects, layout=layout: read_cluster(objects, layout))
            render, states = _best(lambda found=found, options=options: [
                desired(found, options, family)[0] for family in FAMILIES])
            rules = sum(len(chain.rules) for state in states for table in state.tables.values()
                        for chain in table.chains.values())
            print(f"{name:>6} {size:>9} {rules:>8} {read:>6.2f} {render:>7.2f} {read + render:>6.2f} "
                  f"{(read + render) / rules * 1e6:>8.2f}")


def _best(action: Callable[[], Any]) -> tuple[float, Any]:
    times = []
    for _round in range(_ROUNDS):
        result = None
        gc.collect()
        started = time.process_time()
        result = action()
        times.append(time.process_time() - started)
    return min(times), result


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [1000, 10_000, 20_000])
