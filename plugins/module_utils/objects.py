# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the fields of objects of the cluster's API and of options, with errors that say where.

A field that cannot be what it must be is an :class:`ObjectError`. A value that the original agent itself leaves out is
left out here too, with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.shown import shown

#: Lists in Lists are not nested deeper than this.
_DEEPEST = 8

_name = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?").fullmatch


class ObjectError(ValueError):
    """An object that is not what its kind must be.

    Attributes: ``kind``, ``namespace``, ``name`` (empty where the object does not say), ``field`` (a path such as
    ``spec.ports[0].port``), ``value``.
    """

    def __init__(self, kind: str, namespace: str, name: str, field: str, value: object, problem: str) -> None:
        super().__init__(f"{_where(kind, namespace, name)}{field}: {shown(value)} {problem}")
        self.kind = kind
        self.namespace = namespace
        self.name = str(name)
        self.field = field
        self.value = value


def is_name(value: object) -> bool:
    """Whether an object or a namespace can have this name."""
    return isinstance(value, str) and bool(_name(value))


def plain(name: object) -> str:
    """What is called a name, as it is if it can be one, and shown as a value if not."""
    return str(name) if is_name(name) else shown(name)


def _where(kind: str, namespace: str, name: str) -> str:
    """``Service default/web: ``, ``Service: `` where it has no name, nothing where it is no object at all."""
    full = f"{namespace}/{name}" if namespace else name
    return f"{kind} {full}: " if full else f"{kind}: " if kind else ""


class Fields:
    """A mapping on its way in: who it is, and where warnings about it go.

    ``kind`` is the kind of an object, or what else to call it (``pools[0]``); empty where ``field`` says it all.
    """

    __slots__ = ("kind", "namespace", "name", "raw", "_warnings")

    def __init__(self, kind: str, raw: Mapping[str, Any], warnings: list[str]) -> None:
        self.kind = kind
        self.raw = raw
        self.namespace = self.name = ""
        self._warnings = warnings

    def error(self, field: str, value: object, problem: str) -> ObjectError:
        """An error about a field of this object, for the caller to raise."""
        return ObjectError(self.kind, self.namespace, self.name, field, value, problem)

    def warn(self, field: str, value: object, problem: str) -> None:
        """Say what was done about a value of this object."""
        self._warnings.append(f"{_where(self.kind, self.namespace, self.name)}{field}: {shown(value)} {problem}")

    def only(self, known: Collection[str]) -> None:
        """Refuse keys that mean nothing. Objects of the API may have any, options may not."""
        for key in self.raw:
            if key not in known:
                raise self.error(plain(key), self.raw[key], f"is not known here; there are {', '.join(known)}")

    def mapping(self, parent: Mapping[str, Any], key: str, field: str) -> dict[str, Any]:
        """A mapping of the object, empty where it is absent or null."""
        value = parent.get(key)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self.error(field, value, "is not a mapping")
        return value

    def mappings(self, parent: Mapping[str, Any], key: str, field: str) -> list[dict[str, Any]]:
        """A list of mappings, empty where it is absent or null."""
        value = self.sequence(parent, key, field)
        for index, entry in enumerate(value):
            if not isinstance(entry, dict):
                raise self.error(f"{field}[{index}]", entry, "is not a mapping")
        return value

    def texts(self, parent: Mapping[str, Any], key: str, field: str) -> list[str]:
        """A list of strings, empty where it is absent or null."""
        value = self.sequence(parent, key, field)
        for index, entry in enumerate(value):
            if not isinstance(entry, str):
                raise self.error(f"{field}[{index}]", entry, "is not a string")
        return value

    def sequence(self, parent: Mapping[str, Any], key: str, field: str) -> list[Any]:
        """A list of anything, empty where it is absent or null."""
        value = parent.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            raise self.error(field, value, "is not a list")
        return value

    def text(self, parent: Mapping[str, Any], key: str, field: str) -> str:
        """A string, empty where it is absent or null."""
        value = parent.get(key)
        if value is None:
            return ""
        if not isinstance(value, str):
            raise self.error(field, value, "is not a string")
        return value

    def choice(self, parent: Mapping[str, Any], key: str, field: str, allowed: tuple[str, ...]) -> str:
        """One of the allowed words; the first of them where the field is absent, null or empty."""
        value = parent.get(key) or allowed[0]
        if value not in allowed:
            raise self.error(field, value, f"is not one of {', '.join(allowed)}")
        return str(value)

    def flag(self, parent: Mapping[str, Any], key: str, field: str, default: bool) -> bool:
        """A boolean."""
        value = parent.get(key)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.error(field, value, "is not true or false")
        return value

    def number(self, parent: Mapping[str, Any], key: str, field: str, least: int, most: int) -> int:
        """An integer in a range, or 0 where it is absent, null or 0 and the range begins after that."""
        value = parent.get(key)
        if value is None:
            return 0
        # bool is an int in Python, and no port.
        if not isinstance(value, int) or isinstance(value, bool) or not (least <= value <= most or value == 0):
            raise self.error(field, value, f"is not an integer from {least} to {most}")
        return value


class Item(Fields):
    """One object of the cluster's API: its fields and what its metadata says."""

    __slots__ = ("labels", "annotations")

    def __init__(self, kind: str, raw: Mapping[str, Any], warnings: list[str], namespaced: bool = True) -> None:
        super().__init__(kind, raw, warnings)
        meta = self.mapping(raw, "metadata", "metadata")
        name = meta.get("name")
        if not is_name(name):
            raise self.error("metadata.name", name, "is not the name of an object")
        self.name = str(name)
        if namespaced:
            namespace = meta.get("namespace") or "default"
            if not is_name(namespace):
                raise self.error("metadata.namespace", namespace, "is not the name of a namespace")
            self.namespace = str(namespace)
        self.labels = self.mapping(meta, "labels", "metadata.labels")
        self.annotations = self.mapping(meta, "annotations", "metadata.annotations")


def flatten(option: str, raws: Iterable[object], depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """The mappings of a list and of the Lists in it, each with the place it stands at: ``pools[0].items[2]``.

    Items of a typed list such as IPPoolList have its kind and version where they leave out their own.

    Raises :class:`ObjectError` for anything else.
    """
    for index, raw in enumerate(raws):
        place = f"{option}[{index}]"
        if not isinstance(raw, dict):
            raise ObjectError("", "", "", place, raw, "is not a mapping")
        kind = raw.get("kind")
        if isinstance(kind, str) and kind.endswith("List"):
            if depth == _DEEPEST:
                raise ObjectError("", "", "", place, kind, f"is a List in {_DEEPEST} others, and no cluster has that")
            items = Fields(place, raw, []).sequence(raw, "items", "items")
            if kind != "List":
                common = {"apiVersion": raw.get("apiVersion"), "kind": kind[:-len("List")]}
                items = [{**common, **item} if isinstance(item, dict) else item for item in items]
            yield from flatten(f"{place}.items", items, depth + 1)
        else:
            yield place, raw
