# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the fields of Kubernetes objects, with errors that say where.

A field that cannot be what it must be is an :class:`ObjectError`. A value that kube-proxy itself leaves out is left
out here too, with a warning.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_name = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,251}[A-Za-z0-9])?").fullmatch
_port_name = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?").fullmatch

_PROTOCOLS = {"TCP": "tcp", "UDP": "udp", "SCTP": "sctp"}


class ObjectError(ValueError):
    """An object that is not what its kind must be.

    Attributes: ``kind``, ``namespace``, ``name`` (empty where the object does not say), ``field`` (a path such as
    ``spec.ports[0].port``), ``value``.
    """

    def __init__(self, kind: str, namespace: str, name: str, field: str, value: object, problem: str) -> None:
        where = f"{namespace}/{name}" if namespace else name
        super().__init__(f"{kind} {where}: {field}: {value!r} {problem}" if where else
                         f"{kind}: {field}: {value!r} {problem}")
        self.kind = kind
        self.namespace = namespace
        self.name = name
        self.field = field
        self.value = value


class Item:
    """One object on its way in: who it is, and where warnings about it go."""

    __slots__ = ("kind", "namespace", "name", "raw", "labels", "annotations", "_warnings")

    def __init__(self, kind: str, raw: Mapping[str, Any], warnings: list[str], namespaced: bool = True) -> None:
        self.kind = kind
        self.raw = raw
        self._warnings = warnings
        self.namespace = self.name = ""
        meta = self.mapping(raw, "metadata", "metadata")
        name = meta.get("name")
        if not isinstance(name, str) or not _name(name):
            raise self.error("metadata.name", name, "is not the name of an object")
        self.name = name
        if namespaced:
            namespace = meta.get("namespace") or "default"
            if not isinstance(namespace, str) or not _name(namespace):
                raise self.error("metadata.namespace", namespace, "is not the name of a namespace")
            self.namespace = namespace
        self.labels = self.mapping(meta, "labels", "metadata.labels")
        self.annotations = self.mapping(meta, "annotations", "metadata.annotations")

    def error(self, field: str, value: object, problem: str) -> ObjectError:
        """An error about a field of this object, for the caller to raise."""
        return ObjectError(self.kind, self.namespace, self.name, field, value, problem)

    def warn(self, field: str, value: object, problem: str) -> None:
        """Say what was done about a value of this object."""
        where = f"{self.namespace}/{self.name}" if self.namespace else self.name
        self._warnings.append(f"{self.kind} {where}: {field}: {value!r} {problem}")

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
        if type(value) is not int or not (least <= value <= most or value == 0):
            raise self.error(field, value, f"is not an integer from {least} to {most}")
        return value

    def port(self, parent: Mapping[str, Any], key: str, field: str) -> int:
        """A port number, 0 where it is absent, null or 0."""
        return self.number(parent, key, field, 1, 65535)

    def port_name(self, parent: Mapping[str, Any], field: str) -> str:
        """The name of a port, empty where it has none."""
        name = self.text(parent, "name", field)
        if name and not _port_name(name):
            raise self.error(field, name, "is not the name of a port")
        return name

    def protocol(self, parent: Mapping[str, Any], field: str) -> str:
        """``tcp``, ``udp`` or ``sctp``."""
        value = parent.get("protocol") or "TCP"
        protocol = _PROTOCOLS.get(value) if isinstance(value, str) else None
        if protocol is None:
            raise self.error(field, value, "is not one of TCP, UDP, SCTP")
        return protocol
