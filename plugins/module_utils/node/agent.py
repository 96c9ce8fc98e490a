# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The program that does a node's own part: it runs without Ansible, from a boot unit, a timer or by hand.

    python3 nodenet.pyz --state-dir DIR restore | heal | roll-back --run ID [--wait] | status

What it finds and does goes to standard error, one line each. Exit code 0: the node is as it should be; 1: it is not, or
that cannot be told, and the last lines say why; 2: the command line is wrong.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import DEFAULT_PATH, StateDir


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out one command; the exit code."""
    options = _parser().parse_args(argv)
    try:
        return 0 if _run(options) else 1
    except (NetfilterError, ValueError) as error:
        log(f"FAILED: {error}")
        return 1


def log(text: str) -> None:
    """One line for the journal."""
    sys.stderr.write("nodenet: " + " ".join(text.splitlines()) + "\n")
    sys.stderr.flush()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="nodenet", description="Rebuilds and rolls back this node's own chains.")
    parser.add_argument("--state-dir", default=DEFAULT_PATH, help="default: %(default)s")
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("restore", help="roll back what is not confirmed, or rebuild the last confirmed state")
    commands.add_parser("heal", help="rebuild what somebody took away; quick where nothing is missing")
    back = commands.add_parser("roll-back", help="roll back a run that is not confirmed")
    back.add_argument("--run", required=True, help="its run id")
    back.add_argument("--wait", action="store_true", help="until its deadline; end if it is confirmed before")
    commands.add_parser("status", help="print what is armed and remembered, as JSON")
    return parser


def _run(options: argparse.Namespace) -> bool:
    state = StateDir(options.state_dir)
    if options.command == "status":
        from ansible_collections.metal.nodenet.plugins.module_utils.node.status import status

        sys.stdout.write(json.dumps(status(state), indent=2, sort_keys=True) + "\n")
        return True
    if options.command == "roll-back":
        from ansible_collections.metal.nodenet.plugins.module_utils.node.rollback import fire

        return fire(state, options.run, log, wait=options.wait)
    from ansible_collections.metal.nodenet.plugins.module_utils.node.heal import heal, restore

    return restore(state, log) if options.command == "restore" else heal(state, log)
