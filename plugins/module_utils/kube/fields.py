# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading the fields of Services and what belongs to them: ports, their names and protocols."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils import objects

_port_name = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?").fullmatch

_PROTOCOLS = {"TCP": "tcp", "UDP": "udp", "SCTP": "sctp"}


class Item(objects.Item):
    """One object on its way in, which may have ports."""

    __slots__ = ()

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
