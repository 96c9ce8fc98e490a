# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller's Python packages, imported where they are needed: who does not have one learns which, and where."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError


@contextlib.contextmanager
def on_the_controller() -> Iterator[None]:
    """Around an import. Raises ``ClusterFileError`` with the name of a package that is not there."""
    try:
        yield
    except ImportError as error:
        raise ClusterFileError(f"the controller's Python, {sys.executable}, has no package {error.name}: "
                               f"pip install {error.name}") from error
