# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster file that a module was given: read, checked, and kept on the node for the next run.

The action plugin sends a file once and names it by its SHA-256. The module puts it to
``<state_dir>/cache/<sha256>.json.gz``, in check mode too: the cache is the one thing that check mode writes on a
node.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError, items_in, read_bytes
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import (
    APPLIED,
    CACHE,
    GUARD,
    PENDING,
    PREVIOUS,
    StateDir,
    StateError,
)
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

SUFFIX = ".json.gz"

#: Copies beyond this are removed, unless something on the node names them.
_KEPT = 2
#: Where documents may name a copy by its SHA-256.
_NAMED_IN = (APPLIED, PENDING, PREVIOUS, GUARD)
#: A temporary file that is older was left by a run that was killed.
_ABANDONED_SECONDS = 3600

_sha256 = re.compile(r"[0-9a-f]{64}").fullmatch
_hashes = re.compile(rb"(?<![0-9a-f])[0-9a-f]{64}(?![0-9a-f])").findall


def cluster_arguments() -> dict[str, dict[str, Any]]:
    """The argument spec of every module that reads a cluster file; the fragment ``cluster`` documents it."""
    return {
        "cluster": {"type": "path"},
        "remote_src": {"type": "bool", "default": False},
        "cluster_sha256": {"type": "str"},
    }


def read_input(params: dict[str, Any], warnings: list[str]) -> list[Any]:
    """The objects of the file that ``cluster`` names, which is on this machine.

    With ``cluster_sha256``, the file must have that hash, and is kept in the cache unless the state is ``rendered``.
    Where it cannot be kept, that is a warning. Raises ``ClusterFileError``, and ``StateError``
    for a ``state_dir`` that can be none.
    """
    path = str(params["cluster"])
    sha256 = params.get("cluster_sha256")
    data = read_bytes(path)
    if sha256:
        _check(path, data, sha256)
        if params["state"] != "rendered":
            _keep(StateDir(params["state_dir"]), path, sha256, data, warnings)
    return items_in(path, data, ours=bool(sha256))


def read_kinds(params: dict[str, Any], kinds: Sequence[str], warnings: list[str]) -> dict[str, list[Any]]:
    """As :func:`read_input`, the objects of some kinds by kind.

    What is not an object of any kind goes with the first one, so that it is named by who reads that.
    """
    found: dict[str, list[Any]] = {kind: [] for kind in kinds}
    for item in read_input(params, warnings):
        kind = item.get("kind") if isinstance(item, dict) else None
        if not isinstance(kind, str):
            found[kinds[0]].append(item)
        elif kind in found:
            found[kind].append(item)
    return found


def wants_input(params: dict[str, Any]) -> bool:
    """Whether this run reads a cluster file: the states that only look or remove do not."""
    return bool(params["cluster"]) and params["state"] in ("present", "rendered")


def _check(path: str, data: bytes, sha256: str) -> None:
    if not _sha256(sha256):
        raise ClusterFileError(f"cluster_sha256: {shown(sha256)} is not a SHA-256 in lower-case hexadecimal digits")
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        raise ClusterFileError(f"cluster: {path} is not what was sent: its SHA-256 is {found} and not {sha256}")


def _keep(state: StateDir, path: str, sha256: str, data: bytes, warnings: list[str]) -> None:
    if os.path.abspath(path) == state.file(CACHE, sha256 + SUFFIX):
        return
    try:
        state.write(data, CACHE, sha256 + SUFFIX)
        clean(state, sha256)
    except (OSError, StateError) as error:
        warnings.append(f"the cluster file is not kept on this node, so it will be sent again: {error}")


def clean(state: StateDir, sha256: str) -> None:
    """Remove old copies: all but this one, the newest, and those that a document of the state directory names.

    Raises ``OSError`` where a document cannot be read; nothing is removed then.
    """
    named = {sha256}.union(*map(_named_in, _documents(state)))
    copies = []
    for entry in os.scandir(state.file(CACHE)):
        age = time.time() - entry.stat().st_mtime
        if entry.name.endswith(SUFFIX) and _sha256(entry.name[:-len(SUFFIX)]):
            copies.append((age, entry.name[:-len(SUFFIX)]))
        elif entry.name.startswith(".") and age > _ABANDONED_SECONDS:
            _remove(entry.path)
    for _age, copy in sorted(copies)[_KEPT:]:
        if copy not in named:
            _remove(state.file(CACHE, copy + SUFFIX))


def _documents(state: StateDir) -> Iterator[str]:
    for place in _NAMED_IN:
        top = state.file(place)
        for folder, _folders, files in os.walk(top, onerror=_unless_missing):
            for name in files:
                yield os.path.join(folder, name)


def _unless_missing(error: OSError) -> None:
    if not isinstance(error, FileNotFoundError):
        raise error


def _named_in(path: str) -> set[str]:
    """Every hash in the file. What it says about it does not matter here: a copy too many does no harm."""
    try:
        with open(path, "rb") as file:
            return {found.decode() for found in _hashes(file.read())}
    except FileNotFoundError:  # a run beside this one has replaced it
        return set()


def _remove(path: str) -> None:
    with suppress(FileNotFoundError):  # a run beside this one was faster
        os.unlink(path)
