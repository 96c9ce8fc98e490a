# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a cluster file on the machine it is on: a ``v1`` List in JSON, or gzip of it."""

from __future__ import annotations

import json
import zlib
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.shown import one_line, shown

_GZIP_MAGIC = b"\x1f\x8b"
#: A file of a few megabytes can unpack to thousands of times as much. The largest clusters need a tenth of this.
_UNPACKED_BYTES = 1 << 30


class ClusterFileError(ValueError):
    """A cluster file that cannot be read in full. Nothing is guessed from half of one."""


def read_items(path: str) -> list[Any]:
    """The objects in a cluster file. Raises ``ClusterFileError`` with the path and what is wrong with the file."""
    return items_in(path, read_bytes(path))


def items_in(path: str, data: bytes, ours: bool = False) -> list[Any]:
    """The objects in the content of a cluster file, plain or gzip; see ``json_document`` for ``ours``."""
    return items_of(path, json_document(path, unpacked(path, data), ours))


def read_bytes(path: str) -> bytes:
    """The content of the file as it is."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise ClusterFileError(f"cluster: {path} cannot be read: {error}") from None


def unpacked(path: str, data: bytes) -> bytes:
    """The content, unpacked if it is gzip."""
    if not data.startswith(_GZIP_MAGIC):
        return data
    parts: list[bytes] = []
    left = _UNPACKED_BYTES
    try:
        while data:
            stream = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
            # One byte more than there is room for: whether there is more is to be seen.
            parts.append(stream.decompress(data, left + 1))
            left -= len(parts[-1])
            if left < 0:
                raise ClusterFileError(f"cluster: {path} is more than {_UNPACKED_BYTES} bytes when it is unpacked")
            if not stream.eof:
                raise ClusterFileError(f"cluster: {path} cannot be read: the gzip data ends too early")
            data = stream.unused_data.lstrip(b"\0")
    except zlib.error as error:
        raise ClusterFileError(f"cluster: {path} cannot be read: {error}") from None
    return b"".join(parts)


def json_document(path: str, data: bytes, ours: bool = False) -> Any:
    """The one JSON value of ``data``.

    A key that is there twice is refused: JSON would silently take the last. What is ``ours`` has none, and is read
    several times as fast.
    """
    try:
        return json.loads(data, object_pairs_hook=None if ours else _no_duplicates, parse_constant=_no_constant)
    except RecursionError:
        raise ClusterFileError(f"cluster: {path} is nested too deeply") from None
    except ValueError as error:
        raise ClusterFileError(f"cluster: {path} is not whole JSON: {one_line(error)}") from None


def items_of(path: str, document: Any) -> list[Any]:
    """The objects of a List, or of several Lists in a list."""
    documents = document if isinstance(document, list) else [document]
    items: list[Any] = []
    for part in documents:
        if not isinstance(part, dict) or not isinstance(part.get("kind"), str):
            raise ClusterFileError(f"cluster: {path} is not a List of Kubernetes objects")
        if not part["kind"].endswith("List"):
            items.append(part)
            continue
        if not isinstance(part.get("items"), list):
            raise ClusterFileError(f"cluster: {path}: {part['kind']} has no list of items")
        # The API leaves kind and version out of the items of a typed list such as ServiceList.
        kind = part["kind"][:-len("List")]
        common = {"apiVersion": part["apiVersion"]} if kind and "apiVersion" in part else {}
        items += [{**common, "kind": kind, **item} if kind and isinstance(item, dict) else item
                  for item in part["items"]]
    return items


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for key, _value in pairs:
            if key in seen:
                raise ValueError(f"key {shown(key)} is there twice in one object")
            seen.add(key)
    return found


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number that JSON knows")
