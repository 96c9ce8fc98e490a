# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""How many examples a property gets: a few that are always the same in a normal run, any number in ``make fuzz``."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, settings

#: Examples per property in a normal run.
_FEW = 60

LONG = "FUZZ_EXAMPLES" in os.environ
EXAMPLES = int(os.environ.get("FUZZ_EXAMPLES") or _FEW)

#: Test to number of examples that were run.
counts: Counter[str] = Counter()


def fuzzed(share: float = 1) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Goes above ``given``. ``share``: of the usual number of examples, less than 1 for what takes long."""

    def with_settings(test: Callable[..., None]) -> Callable[..., None]:
        return settings(
            max_examples=max(1, round(EXAMPLES * share)), derandomize=not LONG, database=None, deadline=None,
            suppress_health_check=list(HealthCheck), print_blob=True)(test)

    return with_settings


def counted(test: Callable[..., None]) -> Callable[..., None]:
    """Goes below ``given``: one more example."""

    @functools.wraps(test)
    def run(*arguments: Any, **named: Any) -> None:
        counts[test.__name__] += 1
        test(*arguments, **named)

    return run
