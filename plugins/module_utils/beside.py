# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work for the time in which Python waits for tools."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import TypeVar

_Result = TypeVar("_Result")


class Beside:
    """A thread, and work that is put by for it until tools run. What is put by must start none and write nothing."""

    def __init__(self) -> None:
        self._worker = ThreadPoolExecutor(max_workers=1)
        self._put_by: list[Callable[[], None]] = []

    def __enter__(self) -> Beside:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._worker.shutdown()

    def later(self, work: Callable[[], _Result]) -> Callable[[], _Result]:
        """Put something by. What comes back gives the result, and does now what has not been begun."""
        begun: list[Future[_Result]] = []
        self._put_by.append(lambda: begun.append(self._worker.submit(work)))

        def result() -> _Result:
            self.start()
            return begun[0].result()

        return result

    def start(self) -> None:
        """Begin with everything that was put by."""
        while self._put_by:
            self._put_by.pop(0)()
