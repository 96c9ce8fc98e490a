# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module against the kernel, by size and backend: ``python tests/bench/kernel.py [SERVICES …]`` (root).

For each size: a first load, a run without change, one endpoint changed, one service added, everything removed; next to
the bare tools, which read and write files: one save of both families, the restores that a run made, and one plain
restore of the rules that the first load left (not on nft from 10,000 services on, where that alone takes minutes). The
first load and what it is compared with are measured five times in turn, and five times nothing to do and an endpoint
that changes; the medians count.
Figures of one run on one machine; read the ratios.
"""

from __future__ import annotations

import copy
import hashlib
import json
import platform
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

_HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(_HERE.parent))

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import SUFFIX
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.reduce import packed, reduce_items
from bench.clusters import cluster
from support.node import Node, node

_ENDPOINTS = 5
#: How often what has ratios to keep is measured; an odd number. The medians count: a machine has faster and slower
#: minutes, and these tools wait for memory most of the time.
_ROUNDS = 5
_PLAIN_RESTORE_LIMIT = {"nft": 2000, "legacy": 1_000_000}
_EMPTY = "".join(f"*{table}\nCOMMIT\n" for table in ("mangle", "filter", "nat"))
_COLUMNS = ("backend", "services", "run", "wall", "of save", "own CPU", "memory", "restores", "chains", "edits")

Objects = list[dict[str, Any]]


def main(sizes: list[int]) -> None:
    """Print the table."""
    print(f"{platform.python_implementation()} {platform.python_version()}, Linux {platform.release()}, "
          f"{_ENDPOINTS} endpoints per service; seconds, MB; 'of save' is wall over one bare save of both families")
    print(" ".join(f"{column:>10}" for column in _COLUMNS))
    for backend in ("nft", "legacy"):
        for size in sizes:
            with tempfile.TemporaryDirectory() as folder, node(backend) as one:
                one.add_interface("eth0", ["192.0.2.11/24", "2001:db8::11/64"])
                for row in _rows(one, size, Path(folder)):
                    print(" ".join(f"{cell:>10}" for cell in row), flush=True)


def _rows(one: Node, size: int, folder: Path) -> Iterator[tuple[str, ...]]:
    first = cluster(size, _ENDPOINTS)
    changed = _with_endpoint(first)
    more = [*changed, *cluster(size + 1, _ENDPOINTS)[-2:]]
    loads = [_load(one, folder, first) for _round in range(_ROUNDS)]
    cold = _middle([load.module for load in loads])
    save = median(load.save for load in loads)
    _measure(one, folder, first)
    yield _row(one, size, "cold", cold, save)
    for name, steps in (("first same", [first]), ("same", [first] * _ROUNDS),
                        ("endpoint", [changed, first] * (_ROUNDS // 2) + [changed]), ("service", [more])):
        found = [_measure(one, folder, objects) for objects in steps]
        yield _row(one, size, name, _middle(found), save)
        if found[-1]["payload"]:
            yield _bare(one, size, "restore", _restore(one, folder, found[-1]["payload"]), save)
    yield _row(one, size, "remove", _measure(one, folder, None), save)
    yield _bare(one, size, "save", save, save)
    batches = median(load.batches for load in loads)
    yield _bare(one, size, "cold", batches, save, cold["wall"] / (save + batches))
    plain = median(load.plain for load in loads)
    if plain:
        yield _bare(one, size, "plain", plain, save, cold["wall"] / (save + plain))


def _middle(runs: list[dict[str, Any]]) -> dict[str, Any]:
    """The run of median length, of an odd number."""
    return sorted(runs, key=lambda run: run["wall"])[len(runs) // 2]


class _Load(NamedTuple):
    """A first load, and the bare tools right after it; seconds."""

    module: dict[str, Any]
    save: float
    batches: float
    #: 0 where it would take minutes.
    plain: float


def _load(one: Node, folder: Path, objects: Objects) -> _Load:
    """Load an empty node in every way, and leave it empty."""
    module = _measure(one, folder, objects)
    save = _save(one, folder)
    dump = (folder / "ipv4").read_text()
    _measure(one, folder, None)
    batches = _restore(one, folder, module["payload"])
    _empty(one, folder)
    plain = 0.0
    if len(objects) // 2 <= _PLAIN_RESTORE_LIMIT[one.backend]:
        plain = _restore(one, folder, [("ipv4", dump)], flush=True)
        _empty(one, folder)
    return _Load(module, save, batches, plain)


def _empty(one: Node, folder: Path) -> None:
    for family in ("ipv4", "ipv6"):
        _restore(one, folder, [(family, _EMPTY)], flush=True)


def _row(one: Node, size: int, name: str, found: dict[str, Any], save: float) -> tuple[str, ...]:
    return (one.backend, str(size), name, f"{found['wall']:.2f}", f"{found['wall'] / save:.2f}",
            f"{found['own_cpu']:.2f}", f"{found['memory']:.0f}", str(found["restores"]), str(found["chains"]),
            str(found["edits"]))


def _bare(one: Node, size: int, name: str, took: float, save: float, cold: float = 0) -> tuple[str, ...]:
    """A row of the tool alone. ``cold``: the module's first load over one save and this, under "own CPU"."""
    return (one.backend, str(size), f"bare {name}", f"{took:.2f}", f"{took / save:.2f}",
            f"x {cold:.2f}" if cold else "", "", "", "", "")


def _with_endpoint(objects: Objects) -> Objects:
    """The cluster after one endpoint has another address."""
    changed = list(objects)
    at = next(index for index, item in enumerate(objects) if item["kind"] == "EndpointSlice")
    changed[at] = copy.deepcopy(objects[at])
    changed[at]["endpoints"][0]["addresses"] = ["10.250.0.1"]
    return changed


def _measure(one: Node, folder: Path, objects: Objects | None) -> dict[str, Any]:
    arguments: dict[str, Any] = {"state": "absent", "backend": one.backend, "state_dir": str(folder / "state")}
    if objects is not None:
        data = packed(reduce_items(objects))
        sha256 = hashlib.sha256(data).hexdigest()
        path = folder / "state/cache" / (sha256 + SUFFIX)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        # As the action plugin calls the module where the node has the file already.
        arguments = {"cluster": str(path), "remote_src": True, "cluster_sha256": sha256, "node_name": "node1",
                     "backend": one.backend, "state_dir": str(folder / "state"),
                     "detect_local": {"cidrs": ["10.128.0.0/9"]}}
    (folder / "arguments.json").write_text(json.dumps(arguments))
    found: dict[str, Any] = json.loads(one.exec(sys.executable, str(_HERE / "measured.py"),
                                                str(folder / "arguments.json")))
    return found


def _save(one: Node, folder: Path) -> float:
    """Seconds of one save of both families, the best of three."""
    times = []
    for _round in range(3):
        started = time.monotonic()
        for family in ("ipv4", "ipv6"):
            one.exec("sh", "-c", 'exec "$0" >"$1"', one.tool(family, "-save"), str(folder / family))
        times.append(time.monotonic() - started)
    return min(times)


def _restore(one: Node, folder: Path, payload: list[tuple[str, str]], flush: bool = False) -> float:
    """Seconds of restoring these texts, each of a family."""
    took = 0.0
    for family, text in payload:
        (folder / "payload").write_text(text)
        started = time.monotonic()
        one.exec("sh", "-c", 'exec "$0" $1 <"$2"', one.tool(family, "-restore"), "" if flush else "--noflush",
                 str(folder / "payload"))
        took += time.monotonic() - started
    return took


if __name__ == "__main__":
    main([int(word) for word in sys.argv[1:]] or [100, 1000, 10_000])
