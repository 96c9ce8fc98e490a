# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node was last told to be: one document per module, from which the module's run can be repeated."""

from __future__ import annotations

import gzip
import hashlib
import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import (
    APPLIED,
    CACHE,
    PENDING,
    StateDir,
    StateError,
)

#: The modules that can be remembered, in the order in which a node is rebuilt.
ORDER = ("kube_nat_chains", "calico_masq", "floating_ip", "service_loop_block", "calico_host_ips")

VERSION = 1
#: Options that are about one run and not about the node.
_OF_THE_RUN = frozenset(("remember", "guard", "expect_plan", "diff_limit", "state_dir", "remote_src",
                         "cluster_sha256"))
_GZIP = b"\x1f\x8b"


class Document(NamedTuple):
    """What one module was told, or that it was told to remove everything (``params`` is None)."""

    module: str
    params: dict[str, Any] | None
    #: The sha256 that names its cluster input in the cache, None where it has none.
    input: str | None = None
    #: What shows that the state is in force: see ``witnesses.py``.
    witnesses: Mapping[str, Any] | None = None

    def same(self, other: Document | None) -> bool:
        """Whether both ask for the same state. Witnesses follow from it."""
        return other is not None and (self.params, self.input) == (other.params, other.input)

    def as_json(self) -> dict[str, Any]:
        """The content of its file."""
        if self.params is None:
            return {"version": VERSION, "module": self.module, "removed": True}
        return {"version": VERSION, "module": self.module, "params": self.params, "input": self.input,
                "witnesses": dict(self.witnesses or {})}


class Input(NamedTuple):
    """A cluster file that a document needs: its name in the cache, and its bytes where it is not there yet."""

    sha256: str
    data: bytes | None


def compose(state: StateDir, module: str, params: Mapping[str, Any],
            witnesses: Mapping[str, Any]) -> tuple[Document, Input | None]:
    """The document of a run, and the input that must be in the cache before the document is written."""
    if params["state"] == "absent":
        return Document(module, None), None
    kept = {name: value for name, value in params.items() if name not in _OF_THE_RUN}
    cluster = params.get("cluster")
    if not cluster:
        return Document(module, kept, None, witnesses), None
    source = _input(state, cluster, params.get("cluster_sha256"))
    kept["cluster"] = cached(state, source.sha256)
    return Document(module, kept, source.sha256, witnesses), source


def cached(state: StateDir, sha256: str) -> str:
    """The path of an input in the cache."""
    return state.file(CACHE, sha256 + ".json.gz")


def _input(state: StateDir, path: str, sha256: str | None) -> Input:
    if sha256 and os.path.exists(cached(state, sha256)):
        return Input(sha256, None)
    try:
        with open(path, "rb") as file:
            data = file.read()
    except OSError as error:
        raise StateError(f"cluster: {path} cannot be kept for later: {error.strerror}") from None
    if not data.startswith(_GZIP):
        data = gzip.compress(data, mtime=0)
    found = hashlib.sha256(data).hexdigest()
    return Input(found, None if os.path.exists(cached(state, found)) else data)


def keep(state: StateDir, source: Input | None) -> None:
    """Put an input into the cache."""
    if source is not None and source.data is not None:
        state.write(source.data, CACHE, source.sha256 + ".json.gz")


def read(state: StateDir, folder: str, module: str) -> Document | None:
    """A document of ``applied`` or ``pending``, None where there is none. Raises ``StateError`` for a damaged one."""
    found = state.read_json(folder, module + ".json")
    return None if found is None else parse(found, state.file(folder, module + ".json"), module)


def parse(found: Mapping[str, Any], path: str, module: str) -> Document:
    """A document from the content of its file. Raises ``StateError`` naming the file."""
    if found.get("version") != VERSION:
        raise StateError(f"{path}: version {found.get('version')!r} is not {VERSION}: another release wrote it")
    if found.get("module") != module or module not in ORDER:
        raise StateError(f"{path}: module {found.get('module')!r} is not the one that the file is named after")
    if found.get("removed") is True:
        return Document(module, None)
    params, source, witnesses = found.get("params"), found.get("input"), found.get("witnesses")
    if not isinstance(params, dict) or not isinstance(witnesses, dict) or not isinstance(source, (str, type(None))):
        raise StateError(f"{path} is damaged: params, input or witnesses are missing")
    return Document(module, params, source, witnesses)


def read_all(state: StateDir, folder: str) -> Iterator[Document]:
    """All documents of a folder, in the order in which a node is rebuilt."""
    names = state.names(folder)
    unknown = [name for name in names if name not in {module + ".json" for module in ORDER}]
    if unknown:
        raise StateError(f"{state.file(folder, unknown[0])} is not a document of any module")
    for module in ORDER:
        found = read(state, folder, module)
        if found is not None:
            yield found


def current(state: StateDir, module: str, armed: bool) -> Document | None:
    """What the module was last told; under a guard, that may not be confirmed yet."""
    found = read(state, PENDING, module) if armed else None
    found = read(state, APPLIED, module) if found is None else found
    return found if found is not None and found.params is not None else None


def store(state: StateDir, document: Document, armed: bool) -> None:
    """Write a document; under a guard to where it waits for the confirmation."""
    name = document.module + ".json"
    if armed:
        state.write_json(document.as_json(), PENDING, name)
    elif document.params is None:
        state.remove(APPLIED, name)
    else:
        state.write_json(document.as_json(), APPLIED, name)
