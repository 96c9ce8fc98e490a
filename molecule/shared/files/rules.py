#!/usr/bin/env python3
"""Prints the whole netfilter state of a node, without counters and without what is chosen anew each time.

    rules.py print
    rules.py save NAME           keep it on this host under that name
    rules.py compare NAME        show what differs now; the exit code is 1 if anything does
    rules.py compare NAME NAME   the same of two that were saved
    rules.py foreign NAME        as compare, but what is kube-proxy's and Calico's is left out of both

The state is both families, both backends, and all sets, as text that is equal where the state is.
"""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
import sys
from pathlib import Path

#: Where it survives a restart.
KEPT = Path("/var/lib/nodenet-rules")
#: What the kernel chooses for a set, and counters.
CHANGING = re.compile(r" (?:hashsize \d+|bucketsize \d+|initval 0x[0-9a-f]+)|\[\d+:\d+\]")
OURS = re.compile(r"(?::|-A )(?:KUBE-|cali-)| -[jg] (?:KUBE-|cali-)[A-Za-z0-9-]+$|(?:create|add) cali[46]0")
TABLE = re.compile(r"(?ms)^\*.*?^COMMIT\n")
TOOL_OF_NOTHING = re.compile(r"[a-z0-9]+tables-[a-z]+-save\n\*\w+\n(?::[A-Z]+ ACCEPT \n)*COMMIT\n")
EMPTY_TABLE = re.compile(r"\*\w+\n(?::[A-Z]+ ACCEPT \n)*COMMIT\n")


def printed(*argv: str) -> list[str]:
    if shutil.which(argv[0]) is None:
        return []
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(argv)}: exit code {done.returncode}: {done.stderr.strip()}")
    return [CHANGING.sub("", line) for line in done.stdout.splitlines() if not line.startswith("#")]


def tables() -> list[tuple[str, str]]:
    """Tool and table. Legacy tables only where they exist: looking at one would make it."""
    found = [(f"ip{six}tables-nft-save", "") for six in ("", "6")]
    for six in ("", "6"):
        names = Path(f"/proc/net/ip{six}_tables_names")
        if names.exists():
            found += [(f"ip{six}tables-legacy-save", table) for table in sorted(names.read_text().split())]
    return found


def state() -> str:
    parts = []
    for tool, table in tables():
        text = EMPTY_TABLE.sub("", "\n".join(printed(tool, *(["-t", table] if table else []))) + "\n")
        # tables have no order among each other
        parts += [f"{tool}\n{one}" for one in sorted(TABLE.findall(text))]
    return "".join(parts) + "".join(line + "\n" for line in sorted(printed("ipset", "save")))


def foreign(text: str) -> str:
    kept = "".join(line for line in text.splitlines(keepends=True) if not OURS.search(line))
    return TOOL_OF_NOTHING.sub("", kept)


def compare(before: str, after: str) -> None:
    difference = list(difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "after", "", "", 1, ""))
    print("\n".join(difference[:200]))
    sys.exit(bool(difference))


def main() -> None:
    what, names = sys.argv[1] if len(sys.argv) > 1 else "", [KEPT / name for name in sys.argv[2:]]
    if what == "print":
        print(state(), end="")
    elif what == "save" and len(names) == 1:
        KEPT.mkdir(parents=True, exist_ok=True)
        names[0].write_text(state())
    elif what == "compare" and names:
        compare(names[0].read_text(), names[1].read_text() if len(names) > 1 else state())
    elif what == "foreign" and len(names) == 1:
        compare(foreign(names[0].read_text()), foreign(state()))
    else:
        sys.exit((__doc__ or "").strip())


if __name__ == "__main__":
    main()
