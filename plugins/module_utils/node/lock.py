# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""One writer at a time on a node: runs of modules, guards, restores and the healer wait for each other."""

from __future__ import annotations

import contextlib
import fcntl
import os
import time
from collections.abc import Iterator

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter import tools
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import LOCK, StateDir, StateError

#: Seconds to wait for another writer: a first load of a very large cluster takes some.
WAIT = 60.0
_PAUSE = 0.05


class LockedError(StateError):
    """Another writer is at work."""


@contextlib.contextmanager
def locked(state: StateDir, what: str, wait: float = WAIT) -> Iterator[None]:
    """Hold the lock of a state directory, which is made if it is not there. Raises ``LockedError``.

    The kernel lets go of it when the process ends, however it ends. Tools that were started meanwhile hold it, too: a
    restore that outlives a killed run is over before anybody else looks at the node.
    """
    handle = _taken(state, time.monotonic() + wait, wait)
    try:
        # Only for messages of others: a full disk must not keep a roll-back from writing to the kernel.
        with contextlib.suppress(OSError):
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{what}, process {os.getpid()}\n".encode(), 0)
        with tools.keeping(handle):
            yield
    finally:
        os.close(handle)


def _taken(state: StateDir, end: float, wait: float) -> int:
    """The lock's file, open and locked."""
    path = state.file(LOCK)
    while True:
        state.create()
        try:
            handle = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise StateError(f"{path} cannot be opened: {error.strerror}") from None
        try:
            _take(handle, path, end, wait)
            if _is(path, handle):
                return handle
        except BaseException:
            os.close(handle)
            raise
        # Who held it has removed the directory; others may have locked the file that is there now.
        os.close(handle)


def _is(path: str, handle: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(handle))
    except OSError:
        return False


def _take(handle: int, path: str, end: float, wait: float) -> None:
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except OSError:
            if time.monotonic() >= end:
                holder = os.pread(handle, 200, 0).decode("utf-8", "replace").strip() or "somebody"
                raise LockedError(f"{path} is held by {holder}, for more than {wait:g} s") from None
        time.sleep(_PAUSE)
