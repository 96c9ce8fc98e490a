# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for all tests."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

# How fast this machine is today says nothing about the code.
settings.register_profile("nodenet", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("nodenet")
