# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The directory in which a node remembers what it should be: small files, each written as a whole or not at all.

``docs/architecture.md`` lists what is in it. A file that cannot be understood is an error that names it, never a guess.
"""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError

DEFAULT_PATH = "/var/lib/nodenet"

CACHE = "cache"
AGENT = "agent"
APPLIED = "applied"
PENDING = "pending"
GUARD = "guard"
PREVIOUS = "previous"
LOCK = "lock"
LOG = "guard.log"

#: How the name of a file begins that is being written.
_UNFINISHED = ".new-"


class StateError(NetfilterError):
    """The directory or a file in it cannot be used, or forbids what was asked for."""


class StateDir:
    """The files of one state directory. Parts of a path are given as words: ``("guard", "armed.json")``.

    ``elsewhere``: it is on another machine, and only paths are asked for.
    """

    def __init__(self, path: str, elsewhere: bool = False) -> None:
        if not os.path.isabs(path) or os.path.normpath(path) == "/":
            raise StateError(f"state_dir: {path!r} is not the absolute path of a directory of its own")
        self.path = os.path.normpath(path)
        if not elsewhere:
            _refuse_open_to_others(self.path)

    def file(self, *parts: str) -> str:
        """The path of a file in the directory."""
        return os.path.join(self.path, *parts)

    def there(self, *parts: str) -> bool:
        """Whether the directory, or a file in it, exists."""
        return os.path.lexists(self.file(*parts))

    def create(self, *parts: str) -> None:
        """Make the directory, or one in it. Only root can look into it."""
        try:
            os.makedirs(self.file(*parts), mode=0o700, exist_ok=True)
        except OSError as error:
            raise StateError(f"state_dir: {self.file(*parts)} cannot be made: {error.strerror}") from None

    def names(self, folder: str) -> list[str]:
        """What is in a folder, sorted; nothing where there is none. Unfinished files of a crash are left out."""
        try:
            return sorted(name for name in os.listdir(self.file(folder)) if not name.startswith("."))
        except FileNotFoundError:
            return []
        except OSError as error:
            raise StateError(f"state_dir: {self.file(folder)} cannot be read: {error.strerror}") from None

    def remove_unfinished(self, folder: str) -> None:
        """Remove what a writer that was killed has left in a folder. Nobody else may be writing there."""
        try:
            left = [name for name in os.listdir(self.file(folder)) if name.startswith(_UNFINISHED)]
        except OSError:
            return
        for name in left:
            self.remove(folder, name)

    def read_json(self, *parts: str) -> dict[str, Any] | None:
        """A JSON object; None where the file is not there. Raises ``StateError`` for anything else."""
        path = self.file(*parts)
        try:
            with open(path, encoding="utf-8", errors="surrogateescape") as file:
                value = json.load(file)
        except (FileNotFoundError, NotADirectoryError):
            return None
        except OSError as error:
            raise StateError(f"{path} cannot be read: {error.strerror}") from None
        except ValueError as error:
            raise StateError(f"{path} is damaged ({error}); see the runbook before you remove it") from None
        if not isinstance(value, dict):
            raise StateError(f"{path} is damaged: it does not hold an object; see the runbook before you remove it")
        return value

    def write_json(self, value: dict[str, Any], *parts: str) -> None:
        """Write a JSON object: all of it or nothing, and on the disk when this returns."""
        self.write(json.dumps(value, sort_keys=True, separators=(",", ":")).encode() + b"\n", *parts)

    def write(self, data: bytes, *parts: str) -> None:
        """Write a file in the same way."""
        self.create(*parts[:-1])
        write_whole(self.file(*parts), data)

    def move(self, source: tuple[str, ...], target: tuple[str, ...]) -> None:
        """Rename a file: one step that happens or does not."""
        self.create(*target[:-1])
        try:
            os.replace(self.file(*source), self.file(*target))
        except OSError as error:
            raise StateError(f"{self.file(*source)} cannot be moved to {self.file(*target)}: "
                             f"{error.strerror}") from None
        for folder in sorted({source[:-1], target[:-1]}):
            _sync(self.file(*folder))

    def remove(self, *parts: str) -> bool:
        """Remove a file; whether it was there."""
        try:
            os.unlink(self.file(*parts))
        except (FileNotFoundError, NotADirectoryError):
            return False
        except OSError as error:
            raise StateError(f"{self.file(*parts)} cannot be removed: {error.strerror}") from None
        _sync(self.file(*parts[:-1]))
        return True


def _refuse_open_to_others(path: str) -> None:
    """Whoever writes into the directory decides what root does on this node."""
    try:
        found = os.stat(path)
    except OSError:
        return
    if found.st_uid not in (0, os.geteuid()) or found.st_mode & 0o022:
        raise StateError(f"state_dir: {path} belongs to user {found.st_uid} and has mode {found.st_mode & 0o7777:04o}; "
                         "it must be root's, and nobody else may write there")


def write_whole(path: str, data: bytes, mode: int = 0o600) -> None:
    """Write a file so that its name always stands for the old content or the new one, also after a power failure."""
    folder = os.path.dirname(path)
    temporary = ""
    try:
        handle, temporary = tempfile.mkstemp(prefix=_UNFINISHED, dir=folder)
        with os.fdopen(handle, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
        _sync(folder)
    except OSError as error:
        if temporary:
            with contextlib.suppress(OSError):
                os.unlink(temporary)
        raise StateError(f"{path} cannot be written: {error.strerror}") from None


def _sync(folder: str) -> None:
    """Have the names of a folder on the disk."""
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
