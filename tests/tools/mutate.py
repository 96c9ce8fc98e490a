"""Breaks a copy of this checkout, one mutation after the other, and sees whether the scenarios notice.

    mutate.py [WORD ...]      those of a scenario of that name, or with that text in their description; all if none

molecule/mutations.yml has the mutations. The containers of a scenario stay for its mutations as long as the next
converge puts right what one left; after one that is noticed in the middle of a change, they are made anew. Prints
the rows of the table in docs/testing.md: which step noticed. The exit code is 1 if a mutation went by unnoticed.
Called by the Makefile, which sets the environment.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from itertools import groupby
from pathlib import Path

import yaml

TOP = Path(__file__).resolve().parents[2]
#: What a scenario runs to notice something, as molecule's commands.
STEPS = ("converge", "idempotence", "verify", "side-effect")

Mutation = dict[str, str]


def molecule(command: str, scenario: str, checkout: Path) -> int:
    # the copy is metal.nodenet, the collections of others are those of this checkout
    paths = f"{checkout.parents[2]}:{os.environ['ANSIBLE_COLLECTIONS_PATH']}"
    done = subprocess.run(["molecule", command, "--scenario-name", scenario], cwd=checkout, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
                          env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": paths,
                               "ANSIBLE_HOME": str(checkout / ".ansible"), "ANSIBLE_NOCOLOR": "1"})
    (checkout.parents[2] / "last.log").write_text(done.stdout)
    return done.returncode


def noticed(scenario: str, checkout: Path) -> str | None:
    """The step that failed; None if all went well."""
    return next((step for step in STEPS if molecule(step, scenario, checkout) != 0), None)


def try_one(mutation: Mutation, checkout: Path) -> bool:
    file = checkout / mutation["file"]
    text = file.read_text()
    if text.count(mutation["old"]) != 1:
        print(f"| {mutation['what']} | {mutation['scenario']} | STALE: its text occurs {text.count(mutation['old'])} "
              f"times in {mutation['file']} | |", flush=True)
        return False
    started = time.monotonic()
    file.write_text(text.replace(mutation["old"], mutation["new"]))
    try:
        step = noticed(mutation["scenario"], checkout)
    finally:
        file.write_text(text)
    print(f"| {mutation['what']} | {mutation['scenario']} | {step or 'NOBODY'} | {time.monotonic() - started:.0f} |",
          flush=True)
    # Other steps leave a node as the next mutation wants it; one that nobody notices has gone through all of them.
    if step not in ("idempotence", "verify"):
        molecule("destroy", mutation["scenario"], checkout)
    return step is not None


def try_scenario(scenario: str, mutations: list[Mutation], checkout: Path) -> bool:
    molecule("destroy", scenario, checkout)
    try:
        step = noticed(scenario, checkout)
        if step:
            print((checkout.parents[2] / "last.log").read_text()[-20_000:])
            print(f"{scenario} fails at {step} without any mutation", flush=True)
            return False
        # a scenario leaves its nodes with another state than the one that it begins with
        molecule("destroy", scenario, checkout)
        results = [try_one(mutation, checkout) for mutation in mutations]
        return all(results)
    finally:
        molecule("destroy", scenario, checkout)


def copy_of_checkout(directory: str) -> Path:
    checkout = Path(directory) / "ansible_collections/metal/nodenet"
    shutil.copytree(TOP, checkout, symlinks=True, ignore=shutil.ignore_patterns(
        ".git", ".venv*", "venv", ".*_cache", "__pycache__", "conformance", ".hypothesis"))
    # molecule looks for .config at the root of the repository
    subprocess.run(["git", "init", "--quiet", str(checkout)], check=True)
    return checkout


def main() -> None:
    everything: list[Mutation] = yaml.safe_load((TOP / "molecule/mutations.yml").read_text())
    words = sys.argv[1:]
    chosen = [one for one in everything
              if not words or any(word == one["scenario"] or word in one["what"] for word in words)]
    if not chosen:
        sys.exit("no mutation is of such a scenario or has such a text")
    print("| what is broken | scenario | noticed by | seconds |\n|---|---|---|---|", flush=True)
    by_scenario = sorted(chosen, key=lambda one: one["scenario"])
    with tempfile.TemporaryDirectory(prefix="nodenet-mutations-") as directory:
        checkout = copy_of_checkout(directory)
        results = [try_scenario(scenario, list(group), checkout)
                   for scenario, group in groupby(by_scenario, key=lambda one: one["scenario"])]
    sys.exit(not all(results))


if __name__ == "__main__":
    main()
