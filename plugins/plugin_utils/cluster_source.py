# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a cluster file on the controller, where YAML can be read too."""

from __future__ import annotations

from typing import Any

import yaml
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import (
    ClusterFileError,
    items_of,
    json_document,
    read_bytes,
    unpacked,
)

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class _StrictLoader(_Loader):  # type: ignore[misc]
    """Refuses a key that is there twice: YAML would silently take the last."""


def _mapping(loader: Any, node: Any, deep: bool = False) -> dict[Any, Any]:
    keys = [loader.construct_object(key, deep=True) for key, _value in node.value]
    if len(set(keys)) != len(keys):
        twice = next(key for key in keys if keys.count(key) > 1)
        raise yaml.constructor.ConstructorError(None, None, f"key {twice!r} is there twice", node.start_mark)
    for key in keys:
        if not isinstance(key, str):
            raise yaml.constructor.ConstructorError(None, None, f"key {key!r} is not a string", node.start_mark)
    return dict(yaml.SafeLoader.construct_mapping(loader, node, deep=True))


# A date is a string, as it is in JSON.
_StrictLoader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _Loader.yaml_implicit_resolvers.items()}
_StrictLoader.add_constructor(yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _mapping)


def load_items(path: str) -> list[Any]:
    """The objects in a cluster file, JSON or YAML, also with gzip. Raises ``ClusterFileError``."""
    data = unpacked(path, read_bytes(path))
    if data.lstrip()[:1] in (b"{", b"["):
        return items_of(path, json_document(path, data))
    try:
        documents = [document for document in yaml.load_all(data, Loader=_StrictLoader) if document is not None]
    except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
        raise ClusterFileError(f"cluster: {path} is not whole YAML: {error}") from None
    if not documents:
        raise ClusterFileError(f"cluster: {path} is empty")
    return items_of(path, documents)
