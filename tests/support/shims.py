# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stand-ins for single iptables tools, for faults that the real ones cannot be made to have."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

_SBIN = "/usr/sbin:/sbin:/usr/local/sbin"


class Shims:
    """A folder of shell scripts that come first in ``PATH``; ``$REAL`` in a script is the tool it stands for."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        """What ``Node.module`` needs to find them."""
        return {"PATH": f"{self.folder}:{os.environ['PATH']}:{_SBIN}"}

    def add(self, tool: str, script: str) -> None:
        """Stand in for ``tool``."""
        real = shutil.which(tool, path=os.environ["PATH"] + ":" + _SBIN)
        assert real, f"{tool} is not installed"
        path = self.folder / tool
        path.write_text(f"#!/bin/sh\nREAL={real}\nHERE={self.folder}\n{script}\n")
        path.chmod(0o755)

    def log(self, name: str) -> list[str]:
        """The lines that scripts wrote to ``$HERE/name``."""
        path = self.folder / name
        return path.read_text().splitlines() if path.exists() else []
