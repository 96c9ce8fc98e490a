#!/usr/bin/env python3
"""Prints the whole netfilter state of a node, without counters and without what is chosen anew each time.

    rules.py print
    rules.py save NAME...        keep it on this host under these names
    rules.py compare NAME        show what differs now; the exit code is 1 if anything does
    rules.py foreign NAME        as compare, but what is kube-proxy's and Calico's is left out of both
    rules.py unused              show chains of services that nothing leads to; the exit code is 1 if there is one

The state is both families, both backends, all sets, and all tables of nft's own, as text that is equal where the state
is. Two commands judge a run that said that it changed something, or nothing; they need "before", the state before the
first run, and "last", which is that of the run before:

    rules.py predicted changed|unchanged    check mode: nothing was written; a change is predicted only the first time
    rules.py applied changed|unchanged      something changed if that was said, and only then; becomes "last"
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
#: How many lines of a difference are shown.
SHOWN = 200
#: What the kernel chooses for a set, and counters.
CHANGING = re.compile(r" (?:hashsize \d+|bucketsize \d+|initval 0x[0-9a-f]+)|\[\d+:\d+\]")
IPTABLES = ("filter", "nat", "mangle", "raw", "security")
OURS = re.compile(r"(?::|-A )(?:KUBE-|cali-)| -[jg] (?:KUBE-|cali-)[A-Za-z0-9-]+$|(?:create|add) cali[46]0")
#: What kube-proxy makes for a service, a port or an endpoint has a name with a hash in it.
HASHED = re.compile(r"(?m)^:(KUBE-[A-Z]+-[A-Z2-7]{16}) ")
TARGET = re.compile(r"(?m) -j (KUBE-[A-Z]+-[A-Z2-7]{16})$")
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


def native_tables() -> list[str]:
    """What nft shows of tables that no iptables has made."""
    if shutil.which("nft") is None:
        return []
    names = [line.split()[1:3] for line in printed("nft", "list", "tables")]
    native = sorted(name for name in names if not (name[0] in ("ip", "ip6") and name[1] in IPTABLES))
    return [line + "\n" for name in native for line in printed("nft", "--stateless", "list", "table", *name)]


def state() -> str:
    parts = []
    for tool, table in tables():
        text = EMPTY_TABLE.sub("", "\n".join(printed(tool, *(["-t", table] if table else []))) + "\n")
        # tables have no order among each other
        parts += [f"{tool}\n{one}" for one in sorted(TABLE.findall(text))]
    return "".join([*parts, *native_tables(), *(line + "\n" for line in sorted(printed("ipset", "save")))])


def foreign(text: str) -> str:
    kept = "".join(line for line in text.splitlines(keepends=True) if not OURS.search(line))
    return TOOL_OF_NOTHING.sub("", kept)


def difference(before: str, after: str) -> str:
    lines = difflib.unified_diff(before.splitlines(), after.splitlines(), "before", "now", "", "", 1, "")
    return "\n".join(list(lines)[:SHOWN])


def compare(before: str, after: str) -> None:
    found = difference(before, after)
    print(found)
    sys.exit(bool(found))


def judge(what: str, said: bool) -> None:
    """Whether what a run said fits to what is there."""
    before, last, now = kept("before"), kept("last"), state()
    if what == "predicted" and now != last:
        sys.exit("check mode wrote something:\n" + difference(last, now))
    if what == "predicted" and said != (before == last):
        sys.exit(f"check mode predicted {'a' if said else 'no'} change, and so far there is applied:\n"
                 + difference(before, last))
    if what == "applied" and said != (now != last):
        sys.exit(f"{'a' if said else 'no'} change was told, and this is what changed:\n" + difference(last, now))
    if foreign(before) != foreign(now):
        sys.exit("something changed that is not ours:\n" + difference(foreign(before), foreign(now)))
    save("last", now)


def unused(text: str) -> list[str]:
    """The chains of services that no rule of their table leads to. Fails where there is no such chain at all."""
    tables = TABLE.findall(text)
    if not any(HASHED.search(table) for table in tables):
        sys.exit("there is no chain of a service")
    return [name for table in tables for name in sorted(set(HASHED.findall(table)) - set(TARGET.findall(table)))]


def kept(name: str) -> str:
    return (KEPT / name).read_text()


def save(name: str, text: str) -> None:
    KEPT.mkdir(parents=True, exist_ok=True)
    (KEPT / name).write_text(text)


def main() -> None:
    what, words = sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:]
    if what == "print":
        print(state(), end="")
    elif what == "save" and words:
        for name in words:
            save(name, state())
    elif what == "compare" and len(words) == 1:
        compare(kept(words[0]), state())
    elif what == "foreign" and len(words) == 1:
        compare(foreign(kept(words[0])), foreign(state()))
    elif what == "unused" and not words:
        found = unused(state())
        print("\n".join(found))
        sys.exit(bool(found))
    elif what in ("predicted", "applied") and words in (["changed"], ["unchanged"]):
        judge(what, words == ["changed"])
    else:
        sys.exit((__doc__ or "").strip())


if __name__ == "__main__":
    main()
