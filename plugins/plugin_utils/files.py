# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files on the controller that are nobody else's business."""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError

_snapshot = re.compile(r"cluster-([0-9a-f]{64})\.json\.gz").fullmatch


def sha256_of(path: str) -> str:
    """The SHA-256 of a file."""
    with open(path, "rb") as file:
        return hashlib.sha256(file.read()).hexdigest()


def claimed_hash(path: str) -> str | None:
    """The SHA-256 that the name of a snapshot says; None for a file of another name."""
    name = _snapshot(os.path.basename(path))
    return name[1] if name else None


def write_private(path: str, data: bytes) -> None:
    """Write a file for nobody else, in one step."""
    # A name that nobody can have put a file or a link at before.
    handle, temporary = tempfile.mkstemp(prefix=".nodenet-", dir=os.path.dirname(path))
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


@contextmanager
def failing(what: str) -> Iterator[None]:
    """Turns an error of a file into a ``ClusterFileError`` that names the option ``what`` and the file."""
    try:
        yield
    except OSError as error:
        raise ClusterFileError(f"{what}: {error.filename or 'a file'}: {error.strerror or error}") from None
