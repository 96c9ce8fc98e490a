# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reduces a cluster file once per run of Ansible, whatever the number of hosts, tasks and forks."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Callable
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.reduce import packed, reduce_items
from ansible_collections.metal.nodenet.plugins.plugin_utils.cluster_source import load_items


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
    with open(name + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        outcome = _known(name + ".json")
        if outcome is None:
            say(f"nodenet: reducing {source}")
            outcome = _reduce(source, name + ".json.gz")
            write_private(name + ".json", json.dumps(outcome).encode())
    if "error" in outcome:
        raise ClusterFileError(outcome["error"])
    return Reduced(name + ".json.gz", outcome["sha256"])


def write_private(path: str, data: bytes) -> None:
    """Write a file for nobody else, in one step."""
    temporary = f"{path}.{os.getpid()}.tmp"
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def pack(source: str, items: list[object]) -> bytes:
    """The reduced form of the items as it goes to the nodes. Raises ``ClusterFileError``."""
    try:
        return packed(reduce_items(items))
    except (TypeError, ValueError, RecursionError) as error:
        raise ClusterFileError(f"cluster: {source} holds what JSON cannot say: {error}") from None


def _known(path: str) -> dict[str, str] | None:
    try:
        with open(path, encoding="utf-8") as file:
            known: dict[str, str] = json.load(file)
            return known
    except FileNotFoundError:
        return None


def _reduce(source: str, target: str) -> dict[str, str]:
    try:
        data = pack(source, load_items(source))
    except ClusterFileError as error:
        return {"error": str(error)}
    write_private(target, data)
    return {"sha256": hashlib.sha256(data).hexdigest()}
