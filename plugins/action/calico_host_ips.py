# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's half of ``calico_host_ips``."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.plugin_utils.cluster_action import ClusterAction as ActionModule

__all__ = ["ActionModule"]
