# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter ``metal.nodenet.compact_hosts``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ansible_collections.metal.nodenet.plugins.plugin_utils.report.host_ranges import compact


class FilterModule:
    """What Ansible asks a filter file for."""

    def filters(self) -> dict[str, Callable[..., Any]]:
        """The filters by name."""
        return {"compact_hosts": compact}
