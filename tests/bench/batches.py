# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many chains one restore should hold: ``python tests/bench/batches.py [SERVICES [DIRECTORY …]]`` (root).

Loads the same new chains in batches of several sizes with the tools of this machine, or of the Debian systems whose
roots the directories are (``debootstrap --variant=minbase --include=iptables``), and saves them after that. 0 chains
stand for one restore of everything, which is left out where it would take minutes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import read_cluster
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.kube.rules import desired
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.iptables import Iptables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan, plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from bench.clusters import cluster
from support.node import Node, node

_SIZES = {"nft": (100, 200, 300, 500, 1000, 2000, 0), "legacy": (300, 1000, 5000, 0)}
#: From how many services on the sizes that take minutes are left out.
_LARGE = 2000
_LAST = {"nft": (2000, 0), "legacy": (300,)}


def main(services: int = 10_000, *roots: str) -> None:
    """Print a row for each size."""
    layout = LAYOUTS["1.36"]
    options = ProxyOptions(layout=layout, node_name="node1", detect_local="cluster_cidr", cidrs=("10.128.0.0/9",))
    plan = plan_family({}, desired(read_cluster(cluster(services, 5), layout), options, IPV4)[0])
    print(f"{'version':>8} {'backend':>8} {'services':>9} {'batch':>6} {'restores':>9} {'load':>7} {'save':>6}")
    for root in roots or ("/",):
        for backend, sizes in _SIZES.items():
            for size in sizes:
                if services <= _LARGE or size not in _LAST[backend]:
                    _row(plan, services, root, backend, size)


def _row(plan: FamilyPlan, services: int, root: str, backend: str, size: int) -> None:
    with tempfile.TemporaryDirectory() as folder, node(backend) as one:
        file = Path(folder) / "file"
        version = one.exec("chroot", root, f"iptables-{backend}", "--version").split()[1].lstrip("v")
        tool = Iptables(IPV4, backend, ("", "", None), tuple(map(int, version.split("."))), 1)
        texts = [found.text for found in transactions(plan, size or None, tool.sorts_by_insertion)]
        load = 0.0
        for text in texts:
            file.write_text(text)
            load += _timed(one, root, f"iptables-{backend}-restore --noflush", file, "<")
        save = _timed(one, root, f"iptables-{backend}-save", file, ">")
    print(f"{version:>8} {backend:>8} {services:>9} {size:>6} {len(texts):>9} {load:>7.2f} {save:>6.2f}", flush=True)


def _timed(one: Node, root: str, command: str, file: Path, direction: str) -> float:
    started = time.monotonic()
    # the file is opened outside of the root
    subprocess.run(["ip", "netns", "exec", one.name, "sh", "-c", f'exec chroot "$0" {command} {direction}"$1"', root,
                    str(file)], check=True)
    return time.monotonic() - started


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 10_000, *sys.argv[2:])
