# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Accepted states of a cluster, in a directory of the controller: one file each, and what the last one held."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Collection
from contextlib import suppress
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.shown import one_line
from ansible_collections.metal.nodenet.plugins.plugin_utils.files import (
    claimed_hash,
    failing,
    sha256_of,
    write_private,
)

#: How many snapshots stay.
_KEPT = 5
_LAST = "last.json"


class Written(NamedTuple):
    """Where a snapshot is."""

    path: str
    sha256: str
    #: Whether it was not there yet.
    new: bool


class Folder:
    """The directory of snapshots. It is made where it is missing, and nobody else may write there."""

    def __init__(self, path: str) -> None:
        self.path = os.path.abspath(path)
        try:
            os.makedirs(self.path, mode=0o700, exist_ok=True)
            status = os.stat(self.path)
        except OSError as error:
            raise ClusterFileError(f"dest: {self.path} cannot be used: {error.strerror}") from None
        if status.st_mode & 0o022 or status.st_uid not in (0, os.geteuid()):
            raise ClusterFileError(f"dest: others can write to {self.path} (mode {status.st_mode & 0o7777:04o}, owner "
                                   f"{status.st_uid}); give a directory that is for this alone, or let it be made")

    def last_services(self) -> set[str]:
        """The services of the last accepted snapshot; none where there is no such."""
        path = os.path.join(self.path, _LAST)
        try:
            with open(path, encoding="utf-8") as file:
                names = json.load(file)["services"]
            if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
                raise ValueError("services is not a list of names")
        except FileNotFoundError:
            return set()
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ClusterFileError(f"{path} cannot be read: {error}. It tells which services were there last; "
                                   "remove it to start anew without that check") from None
        return set(names)

    def accept(self, services: Collection[str], sha256: str) -> None:
        """From now on, these services are those of the last snapshot."""
        content = {"services": sorted(services), "sha256": sha256}
        with failing("dest"):
            write_private(os.path.join(self.path, _LAST), json.dumps(content).encode())

    def write(self, data: bytes) -> Written:
        """Write a snapshot where it is not there yet, and remove old ones."""
        sha256 = hashlib.sha256(data).hexdigest()
        path = os.path.join(self.path, f"cluster-{sha256}.json.gz")
        with failing("dest"):
            new = not os.path.exists(path) or sha256_of(path) != sha256
            if new:
                write_private(path, data)
            else:
                os.utime(path)
            self._clean(path)
        return Written(path, sha256, new)

    def _clean(self, current: str) -> None:
        found = [(entry.stat().st_mtime_ns, entry.path) for entry in os.scandir(self.path) if claimed_hash(entry.name)]
        for _age, path in sorted(found, reverse=True)[_KEPT:]:
            if path != current:
                with suppress(FileNotFoundError):
                    os.unlink(path)


def check_loss(before: Collection[str], now: Collection[str], percent: int) -> list[str]:
    """The services that are gone, sorted. Raises ``ClusterFileError`` if that is a larger share than ``percent``."""
    lost = sorted(set(before).difference(now))
    if len(lost) * 100 > percent * len(before):
        raise ClusterFileError(f"{len(lost)} of {len(before)} services are gone since the last snapshot, which is more "
                               f"than max_service_loss_percent ({percent}) allows: {few(lost)}. Raise that if it is "
                               "what you expect")
    return lost


def few(names: Collection[str], most: int = 10) -> str:
    """Some of the names, for a message."""
    more = f", … ({len(names) - most} more)" if len(names) > most else ""
    return ", ".join(one_line(name) for name in list(names)[:most]) + more
