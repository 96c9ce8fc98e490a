# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reads a cluster file on the controller, where YAML can be read too."""

from __future__ import annotations

import gc
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import yaml
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import (
    ClusterFileError,
    items_of,
    json_document,
    read_bytes,
    unpacked,
)
from ansible_collections.metal.nodenet.plugins.module_utils.shown import one_line, shown

_Safe: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG = "tag:yaml.org,2002:"

#: How many times as long as itself the aliases of a file may make it, and what they may make of a short one.
_ALIAS_FACTOR = 10
_ALIAS_FREE = 1 << 20
#: The size of a node that is being added up.
_OPEN = -1


class _Loader(_Safe):  # type: ignore[misc]
    """Reads what JSON can say: a date is a string, as it is there."""

    yaml_implicit_resolvers = {
        first: [(tag, pattern) for tag, pattern in resolvers if tag != _TAG + "timestamp"]
        for first, resolvers in _Safe.yaml_implicit_resolvers.items()}


class _Values:
    """From the nodes of YAML to values. PyYAML's own way takes several times as long, and the last of double keys."""

    def __init__(self, loader: Any) -> None:
        self._scalars: dict[str, Callable[[Any], Any]] = {
            _TAG + "str": lambda node: node.value, _TAG + "null": lambda _node: None,
            _TAG + "int": loader.construct_yaml_int, _TAG + "float": loader.construct_yaml_float,
            _TAG + "bool": loader.construct_yaml_bool}

    def of(self, node: Any) -> Any:
        """The value of a node."""
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.of(each) for each in node.value]
        scalar = self._scalars.get(node.tag)
        if scalar is None:
            raise _problem(node, f"{shown(node.tag)} is nothing that JSON knows")
        value = scalar(node)
        if isinstance(value, float) and not math.isfinite(value):
            raise _problem(node, f"{shown(node.value)} is no number that JSON knows")
        return value

    def _mapping(self, node: Any) -> dict[str, Any]:
        value: dict[str, Any] = {}
        for key_node, value_node in node.value:
            if key_node.tag != _TAG + "str":
                raise _problem(key_node, f"key {shown(key_node.value)} is not a string")
            if key_node.value in value:
                raise _problem(key_node, f"key {shown(key_node.value)} is there twice")
            value[key_node.value] = self.of(value_node)
        return value


def _problem(node: Any, text: str) -> Exception:
    return yaml.constructor.ConstructorError(None, None, text, node.start_mark)


def _check_aliases(root: Any, most: int) -> None:
    """Refuse what a few aliases would make endless or huge, before it is made: sizes are added up, once per node."""
    sizes: dict[int, int] = {}

    def size(node: Any) -> int:
        known = sizes.get(id(node))
        if known == _OPEN:
            raise _problem(node, "an alias is inside of what it stands for")
        if known is not None:
            return known
        sizes[id(node)] = _OPEN
        if isinstance(node, yaml.MappingNode):
            found = 1 + sum(size(key) + size(value) for key, value in node.value)
        elif isinstance(node, yaml.SequenceNode):
            found = 1 + sum(map(size, node.value))
        else:
            found = 1 + len(node.value)
        sizes[id(node)] = found
        return found

    whole = size(root)
    if whole > most:
        raise _problem(root, f"its aliases would make {shown(whole)} characters of it; more than {most} are refused")


def _documents(data: bytes) -> list[Any]:
    has_aliases = b"&" in data and b"*" in data
    loader = _Loader(data)
    values = _Values(loader)
    found = []
    try:
        while loader.check_node():
            node = loader.get_node()
            if has_aliases:
                _check_aliases(node, _ALIAS_FREE + _ALIAS_FACTOR * len(data))
            found.append(values.of(node))
    finally:
        loader.dispose()
    return [document for document in found if document is not None]


def load_items(path: str) -> list[Any]:
    """The objects in a cluster file, JSON or YAML, also with gzip. Raises ``ClusterFileError``."""
    with no_garbage_collection():
        data = unpacked(path, read_bytes(path))
        if data.lstrip()[:1] in (b"{", b"["):
            return items_of(path, json_document(path, data))
        try:
            documents = _documents(data)
        except (yaml.YAMLError, ValueError, TypeError, RecursionError) as error:
            raise ClusterFileError(f"cluster: {path} is not whole YAML: {one_line(error)}") from None
    if not documents:
        raise ClusterFileError(f"cluster: {path} is empty")
    return items_of(path, documents)


@contextmanager
def no_garbage_collection() -> Iterator[None]:
    """Millions of objects come and none goes: looking for garbage among them takes longer than reading them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()
