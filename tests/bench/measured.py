# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs the module once in this network namespace, as a fresh process, and prints what that took.

``python measured.py ARGUMENTS.json``: one JSON object with seconds, megabytes and counts on standard output.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.testing import patch_module_args
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.iptables import Iptables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import Transaction
from ansible_collections.metal.nodenet.plugins.modules import kube_nat_chains


def main(arguments: dict[str, Any]) -> dict[str, Any]:
    """The figures of one run."""
    restores: list[tuple[str, str]] = []
    real = Iptables.restore

    def counted(self: Iptables, transaction: Transaction) -> None:
        restores.append((self.family, transaction.text))
        real(self, transaction)

    Iptables.restore = counted
    AnsibleModule.warn = lambda _self, _text, **_options: None
    output = io.StringIO()
    with contextlib.suppress(SystemExit), contextlib.redirect_stdout(output), patch_module_args(arguments):
        kube_nat_chains.main()
    result = json.loads(output.getvalue())
    if result.get("failed"):
        raise SystemExit(result["msg"])
    own, tools = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "wall": _age(), "own_cpu": own.ru_utime + own.ru_stime,
        "tools_cpu": tools.ru_utime + tools.ru_stime, "memory": _peak_memory(), "restores": len(restores),
        "chains": sum(line.startswith(":") for _family, text in restores for line in text.splitlines()),
        "edits": sum(line.startswith(("-I ", "-D ")) for _family, text in restores for line in text.splitlines()),
        "payload": restores, "changed": result["changed"], "result_kb": len(output.getvalue()) / 1024,
        "timings": result["timings"],
    }


def _age() -> float:
    """Seconds since this process was started, the start of Python included; in steps of a clock tick."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    return time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK")


def _peak_memory() -> float:
    """Megabytes; what ``getrusage`` says would include the process that started this one."""
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


if __name__ == "__main__":
    json.dump(main(json.loads(Path(sys.argv[1]).read_text())), sys.stdout)
