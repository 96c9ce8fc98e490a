# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What travels to a node for each module, and how long it takes to start: ``python tests/bench/payload.py``.

The payload is what Ansible sends for a task: the module, what it imports, and Ansible's own part, which is all that
``ping`` has. Starting is a Python that imports the module. Two modules are there for their documentation:
their work is done on the controller.
"""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

from ansible.executor.module_common import modify_module
from ansible.parsing.dataloader import DataLoader
from ansible.plugins.loader import init_plugin_loader, module_loader
from ansible.template import Templar

_COLLECTION = "ansible_collections.metal.nodenet.plugins.modules"
_MODULES = Path(__file__).resolve().parents[2] / "plugins/modules"
_ROUNDS = 5


def main() -> None:
    """Print a row for each module."""
    init_plugin_loader()
    print(f"{'module':>20} {'kB':>6} {'start':>6}")
    print(f"{'ping':>20} {_payload('ansible.builtin.ping') / 1024:>6.0f} {_start('ansible.modules.ping'):>6.2f}")
    for name in sorted(path.stem for path in _MODULES.glob("*.py") if path.stem != "__init__"):
        size = _payload(f"metal.nodenet.{name}")
        print(f"{name:>20} {size / 1024:>6.0f} {_start(f'{_COLLECTION}.{name}'):>6.2f}")


def _payload(full: str) -> int:
    """Bytes."""
    loader = DataLoader()
    built = modify_module(module_name=full, module_path=module_loader.find_plugin(full), module_args={},
                          templar=Templar(loader), task_vars={"ansible_python_interpreter": "python3"},
                          module_compression="ZIP_DEFLATED")
    return len(built.b_module_data)


def _start(module: str) -> float:
    """Seconds, the best of some."""
    times = []
    for _round in range(_ROUNDS):
        started = time.monotonic()
        subprocess.run([sys.executable, "-c", f"import {module}"], check=True)
        times.append(time.monotonic() - started)
    return min(times)


if __name__ == "__main__":
    main()
