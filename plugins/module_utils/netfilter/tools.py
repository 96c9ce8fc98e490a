# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the node's tools are, and how they are run: nothing else starts a process."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator, Sequence
from typing import IO, NoReturn

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError, ToolError

#: Besides ``PATH``: an unprivileged login shell often has no sbin.
_SBIN = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin"

#: How often something that is killed is started again.
_LIVES = 10

#: Open files that a tool keeps open as long as it runs.
_kept: list[int] = []


@contextlib.contextmanager
def keeping(handle: int) -> Iterator[None]:
    """Have the tools that are run meanwhile hold an open file, too: a lock, even if this process is killed."""
    _kept.append(handle)
    try:
        yield
    finally:
        _kept.remove(handle)


def find_tool(name: str) -> str | None:
    """The path of a tool, None if the node does not have it."""
    return shutil.which(name, path=_path())


def run_tool(argv: Sequence[str], text: str | None = None) -> subprocess.CompletedProcess[str]:
    """Run a tool with ``text`` on its standard input and messages in English. Raises ``ToolError`` if it fails."""
    try:
        with _in_memory("input", text or "") as given, _in_memory("output") as printed:
            done = subprocess.run(argv, stdin=given, stdout=printed, stderr=subprocess.PIPE, check=False,
                                  env=dict(os.environ, LC_ALL="C", PATH=_path()), encoding="utf-8",
                                  errors="surrogateescape", pass_fds=_kept)
            done.stdout = _content(printed)
    except OSError as error:
        raise ToolError(f"{argv[0]} could not be run: {error}", argv) from None
    if done.returncode != 0:
        stderr = done.stderr.strip()
        raise ToolError(f"{' '.join(argv)} failed with exit code {done.returncode}: {stderr or 'no message'}",
                        argv, done.returncode, stderr)
    return done


def _in_memory(name: str, text: str = "") -> IO[bytes]:
    """A file that is only in memory. Of many megabytes, a pipe passes on a few kilobytes at a time."""
    file = os.fdopen(os.memfd_create(f"nodenet-{name}"), "w+b", buffering=0)
    data = memoryview(text.encode("utf-8", "surrogateescape"))
    while data:
        data = data[file.write(data):]
    file.seek(0)
    return file


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode("utf-8", "surrogateescape")


def start_detached(argv: Sequence[str], log: str) -> None:
    """Start a program that outlives this one and its session; what it prints goes to the end of ``log``.

    It has none of this process's open files, and stays in its network namespace. Raises ``ToolError``.
    """
    try:
        with open(log, "ab", opener=lambda path, flags: os.open(path, flags, 0o600)) as output:
            # The parent ends soon and leaves the child to init; nobody waits for it.
            subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=output, stderr=output, cwd="/",
                             env=dict(os.environ, LC_ALL="C", PATH=_path()), start_new_session=True)
    except OSError as error:
        raise ToolError(f"{argv[0]} could not be started: {error}", argv) from None


def survive(action: Callable[[Callable[[str], None]], bool], log: Callable[[str], None]) -> bool:
    """Do something in a process beside this one, so that killing either of them does not stop it half-way.

    ``action`` gets a function to log with, and must be one that can be done again from the start: if it is killed, it
    is. Returns what it returns. Raises ``NetfilterError`` with the message of one that it raises.
    """
    for _try in range(_LIVES):
        read_end, write_end = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(read_end)
            _in_child(action, write_end)
        os.close(write_end)
        with os.fdopen(read_end, encoding="utf-8", errors="surrogateescape") as lines:
            error = ""
            for line in lines:
                kind, text = json.loads(line)
                if kind == "log":
                    log(text)
                else:
                    error = text
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        if error:
            raise NetfilterError(error)
        if code >= 0:
            return code == 0
        log(f"killed by signal {-code}; starting again")
    raise NetfilterError(f"killed {_LIVES} times, and given up")


def _in_child(action: Callable[[Callable[[str], None]], bool], pipe: int) -> NoReturn:
    code = 1
    # Nobody may be left to read it; the work goes on all the same.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)

    def tell(kind: str, text: str) -> None:
        with contextlib.suppress(OSError):
            os.write(pipe, json.dumps([kind, text]).encode() + b"\n")

    try:
        code = 0 if action(lambda text: tell("log", text)) else 1
    except BaseException as error:
        tell("error", str(error) if isinstance(error, NetfilterError) else repr(error))
    os._exit(code)


def _path() -> str:
    # An empty part would be the current directory.
    return ":".join(filter(None, [*os.environ.get("PATH", "").split(":"), _SBIN]))
