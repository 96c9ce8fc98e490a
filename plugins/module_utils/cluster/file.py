# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a cluster file on the machine it is on: a ``v1`` List in JSON, or gzip of it."""

from __future__ import annotations

import gzip
import json
import zlib
from typing import Any

_GZIP_MAGIC = b"\x1f\x8b"


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
    try:
        return gzip.decompress(data) if data.startswith(_GZIP_MAGIC) else data
    except (OSError, EOFError, zlib.error) as error:
        raise ClusterFileError(f"cluster: {path} cannot be read: {error}") from None


def json_document(path: str, data: bytes, ours: bool = False) -> Any:
    """The one JSON value of ``data``.

    A key that is there twice is refused: JSON would silently take the last. What is ``ours`` has none, and is read
    several times as fast.
    """
    try:
        return json.loads(data, object_pairs_hook=None if ours else _no_duplicates)
    except RecursionError:
        raise ClusterFileError(f"cluster: {path} is nested too deeply") from None
    except ValueError as error:
        raise ClusterFileError(f"cluster: {path} is not whole JSON: {error}") from None


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
        keys = [key for key, _value in pairs]
        raise ValueError(f"key {next(key for key in keys if keys.count(key) > 1)!r} is there twice in one object")
    return found
