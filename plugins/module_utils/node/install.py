# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Puts the agent on a node, and takes everything that the collection keeps on it away again."""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil

from ansible_collections.metal.nodenet.plugins.module_utils.node import guard
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import (
    AGENT,
    APPLIED,
    CACHE,
    GUARD,
    LOCK,
    LOG,
    PENDING,
    PREVIOUS,
    StateDir,
    StateError,
    write_whole,
)

#: The name that units call it by.
LINK = "nodenet.pyz"
#: How many agents stay: one that is at work may still load parts of itself from the one before.
_KEPT = 2


def agent_path(state: StateDir) -> str:
    """Where units find the agent, whichever is installed."""
    return state.file(AGENT, LINK)


def own_path(state: StateDir, sha256: str) -> str:
    """Where this very agent is, whichever is the newest."""
    return state.file(AGENT, sha256 + ".pyz")


def installed(state: StateDir, sha256: str) -> bool:
    """Whether this very agent is the one that units call."""
    try:
        with open(agent_path(state), "rb") as file:
            return hashlib.sha256(file.read()).hexdigest() == sha256
    except OSError:
        return False


def install(state: StateDir, source: str, sha256: str) -> str:
    """Put the agent in its place; its path. Needs the lock. Raises ``StateError``."""
    path = own_path(state, sha256)
    try:
        with open(source, "rb") as file:
            data = file.read()
    except OSError as error:
        raise StateError(f"the agent {source} cannot be read: {error.strerror}") from None
    if hashlib.sha256(data).hexdigest() != sha256:
        raise StateError(f"the agent {source} is not the one that was sent: its sha256 is not {sha256}")
    state.create(AGENT)
    write_whole(path, data, 0o700)
    temporary = state.file(AGENT, ".new-link")
    with contextlib.suppress(FileNotFoundError):
        os.unlink(temporary)
    try:
        os.symlink(os.path.basename(path), temporary)
        os.replace(temporary, agent_path(state))
    except OSError as error:
        raise StateError(f"{agent_path(state)} cannot be made: {error.strerror}") from None
    _clean(state, path)
    return path


def _clean(state: StateDir, newest: str) -> None:
    armed = guard.read_armed(state)
    stay = {newest, agent_path(state), armed.agent if armed else newest}
    paths = [state.file(AGENT, name) for name in state.names(AGENT)]
    state.remove_unfinished(AGENT)
    # What cannot be removed is no reason to fail: the new one is in its place.
    with contextlib.suppress(OSError):
        old = sorted((path for path in paths if path not in stay), key=os.path.getmtime, reverse=True)
        for path in old[_KEPT - 1:]:
            os.unlink(path)


def remove_all(state: StateDir) -> list[str]:
    """Remove what the collection keeps, and nothing else; names of strange files that stay. Needs the lock."""
    for folder in (AGENT, CACHE, APPLIED, PENDING, GUARD, PREVIOUS):
        shutil.rmtree(state.file(folder), ignore_errors=True)
    for name in (LOG, LOCK):
        state.remove(name)
    try:
        strange = sorted(os.listdir(state.path))
        if not strange:
            os.rmdir(state.path)
    except OSError as error:
        raise StateError(f"state_dir: {state.path} cannot be removed: {error.strerror}") from None
    return strange
