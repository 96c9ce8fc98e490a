# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cuts a cluster down to what the modules read, so that little travels to a node. Values are kept as they are."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.shapes import FLOATING_IPS, SHAPES
from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

#: Higher levels take several times as long for a few percent.
_GZIP_LEVEL = 6


def reduce_items(items: Iterable[Any]) -> list[Any]:
    """The items of the kinds that are read, with only the fields that are read, by kind, namespace and name.

    The order in the source decides nothing, so that one state of a cluster is one content. What is malformed stays, to
    be named by who reads it.
    """
    out = []
    for item in items:
        kind = item.get("kind") if isinstance(item, dict) else None
        if not isinstance(kind, str):
            out.append(item)
            continue
        shape = SHAPES.get(kind)
        if shape is not None and not _is_read_by_none(item):
            out.append(_cut(item, shape))
    return sorted(out, key=_place)


def packed(items: list[Any]) -> bytes:
    """A ``v1`` List of the items as gzip of JSON: equal items are equal bytes."""
    document = {"apiVersion": "v1", "kind": "List", "items": items}
    text = json.dumps(document, separators=(",", ":"), sort_keys=True, allow_nan=False)
    return gzip.compress(text.encode(), _GZIP_LEVEL, mtime=0)


def _is_read_by_none(item: dict[str, Any]) -> bool:
    """Whether it is a Pod like any other. One with annotations of the wrong type stays, to be named."""
    if item.get("kind") != "Pod":
        return False
    annotations = _metadata(item).get("annotations") or {}
    return isinstance(annotations, dict) and not annotations.get(FLOATING_IPS)


def _metadata(item: dict[str, Any]) -> dict[str, Any]:
    meta = item.get("metadata")
    return meta if isinstance(meta, dict) else {}


def _place(item: Any) -> tuple[str, str, str]:
    if not isinstance(item, dict):
        return "", "", ""
    meta = _metadata(item)
    return _text(item.get("kind")), _text(meta.get("namespace") or "default"), _text(meta.get("name"))


def _text(value: Any) -> str:
    """What to sort by: a name, or something of a certain order where a name should be."""
    return value if isinstance(value, str) else shown(value)


def _cut(value: Any, shape: Any) -> Any:
    if shape is True:
        return value
    if isinstance(shape, list):
        return [_cut(item, shape[0]) for item in value] if isinstance(value, list) else value
    if not isinstance(value, dict):
        return value
    return {key: _cut(value[key], part) for key, part in shape.items() if key in value}
