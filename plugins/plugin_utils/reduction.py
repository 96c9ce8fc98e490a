# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reduces a cluster file once per run of Ansible, whatever the number of hosts, tasks and forks."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.reduce import packed, reduce_items
from ansible_collections.metal.nodenet.plugins.module_utils.shown import one_line
from ansible_collections.metal.nodenet.plugins.plugin_utils.cluster_source import load_items, no_garbage_collection
from ansible_collections.metal.nodenet.plugins.plugin_utils.files import (
    claimed_hash,
    failing,
    sha256_of,
    write_private,
)


class Reduced(NamedTuple):
    """What goes to the nodes: a file on the controller, which is gone at the end of the run."""

    path: str
    sha256: str


def reduced(source: str, folder: str, say: Callable[[str], None]) -> Reduced:
    """The reduced form of a cluster file, made by whoever comes first; the others wait for it.

    ``folder`` is Ansible's own for this run, which its forks share. A file that is replaced during the run is another
    one. Raises ``ClusterFileError``, also for those who waited.
    """
    try:
        status = os.stat(source)
    except OSError as error:
        raise ClusterFileError(f"cluster: {source} cannot be read: {error}") from None
    identity = f"{os.path.realpath(source)}\0{status.st_mtime_ns}\0{status.st_size}\0{status.st_ino}"
    name = os.path.join(folder, "nodenet-" + hashlib.sha256(identity.encode(errors="surrogateescape")).hexdigest())
    with failing("cluster"), open(name + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        outcome = _known(name + ".json")
        if outcome is None:
            outcome = _taken(source, name + ".json.gz") or _reduce(source, name + ".json.gz", say)
            write_private(name + ".json", json.dumps(outcome).encode())
    if "error" in outcome:
        raise ClusterFileError(outcome["error"])
    return Reduced(name + ".json.gz", outcome["sha256"])


def pack(source: str, items: list[Any]) -> bytes:
    """Reduced items as they go to the nodes. Raises ``ClusterFileError``."""
    try:
        return packed(items)
    except (TypeError, ValueError, RecursionError) as error:
        raise ClusterFileError(f"{source} holds what JSON cannot say: {one_line(error)}") from None


def _known(path: str) -> dict[str, str] | None:
    try:
        with open(path, encoding="utf-8") as file:
            known: dict[str, str] = json.load(file)
            return known
    except FileNotFoundError:
        return None


def _taken(source: str, target: str) -> dict[str, str] | None:
    """A snapshot of ours goes as it is, for it has been reduced; None for any other file."""
    claimed = claimed_hash(source)
    if claimed is None:
        return None
    found = sha256_of(source)
    if found != claimed:
        return {"error": f"cluster: {source} is not the snapshot that its name says: its SHA-256 is {found}"}
    shutil.copyfile(source, target)
    return {"sha256": found}


def _reduce(source: str, target: str, say: Callable[[str], None]) -> dict[str, str]:
    say(f"nodenet: reducing {source}")
    try:
        with no_garbage_collection():
            data = pack(f"cluster: {source}", reduce_items(load_items(source)))
    except ClusterFileError as error:
        return {"error": str(error)}
    write_private(target, data)
    return {"sha256": hashlib.sha256(data).hexdigest()}
