# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fleet's plan as a table for the screen, as a page to read and as data."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ansible_collections.metal.nodenet.plugins.plugin_utils.report.fleet import Fleet, Group, ModulePlan
from ansible_collections.metal.nodenet.plugins.plugin_utils.report.host_ranges import compact

#: How many chains of a table to name before the rest is only counted.
NAMED_CHAINS = 6
_HEAD = ("nodes", "module", "changes")
#: Names of many hosts would push the table off the screen.
_WIDEST = 40


def changes(module: ModulePlan) -> str:
    """Such as ``chains +4 ~2, rules +9 -1``: added, changed, removed."""
    parts = []
    for what, counts in module.counts.items():
        signs = [f"{sign}{counts.get(key, 0)}" for key, sign in (("added", "+"), ("changed", "~"), ("removed", "-"))
                 if counts.get(key)]
        if signs:
            parts.append(f"{what} {' '.join(signs)}")
    if module.remembered:
        parts.append("document")
    return ", ".join(parts) or ("changes" if module.changed else "nothing")


def table(fleet: Fleet, details: bool) -> list[str]:
    """The lines for the screen. With ``details`` also the chains and sets that differ."""
    rows = [_HEAD, *_rows(fleet, details)]
    widths = [min(_WIDEST, max(len(row[column]) for row in rows)) for column in (0, 1)]
    lines = [f"{nodes:<{widths[0]}}  {module:<{widths[1]}}  {text}".rstrip() for nodes, module, text in rows]
    return lines + [f"warning ({compact(hosts)}): {text}" for text, hosts in fleet.warnings.items()]


def summary(fleet: Fleet) -> str:
    """One line about the whole fleet."""
    equal = sum(len(group.hosts) for group in fleet.groups if not group.changed)
    parts = [f"{len(fleet.changed_hosts)} to change", f"{equal} as they should be"]
    if fleet.failed:
        parts.append(f"{len(fleet.failed)} failed")
    total = equal + len(fleet.changed_hosts) + len(fleet.failed)
    return f"{total} node{'' if total == 1 else 's'}: {', '.join(parts)}"


def named(module: ModulePlan) -> Iterator[str]:
    """A line for each table with the chains and sets that differ."""
    for place, chains in module.chains().items():
        more = len(chains) - NAMED_CHAINS
        yield f"{place}: {', '.join(chains[:NAMED_CHAINS])}" + (f" and {more} more" if more > 0 else "")


def page(fleet: Fleet, about: Mapping[str, Any]) -> str:
    """``plan.md``: the table, and what would change on each group of equal hosts."""
    lines = ["# Plan", "", summary(fleet) + ".", ""]
    lines += [f"- {name}: {value}" for name, value in about.items()]
    lines += ["", "| nodes | module | changes |", "|---|---|---|"]
    lines += [f"| {' | '.join(_cell(cell) for cell in row)} |" for row in _rows(fleet, details=False)]
    if fleet.warnings:
        lines += ["", "## Warnings", ""]
        lines += [f"- {compact(hosts)}: {text}" for text, hosts in fleet.warnings.items()]
    for group in fleet.groups:
        if group.changed:
            lines += ["", f"## {compact(group.hosts)}", *_group_diff(group)]
    return "\n".join(lines) + "\n"


def data(fleet: Fleet, about: Mapping[str, Any]) -> dict[str, Any]:
    """``plan.json``."""
    return {**about, "hosts": fleet.plans(), "failed": fleet.failed, "groups": groups(fleet),
            "warnings": [{"text": text, "hosts": hosts} for text, hosts in fleet.warnings.items()]}


def groups(fleet: Fleet) -> list[dict[str, Any]]:
    """The groups of equal hosts, without the differences themselves."""
    return [{"nodes": compact(group.hosts), "hosts": group.hosts, "changed": group.changed,
             "modules": {module.name: {"changed": module.changed, "plan": dict(module.counts),
                                       "plan_sha256": module.sha256, "chains": module.chains()}
                         for module in group.modules}}
            for group in fleet.groups]


def _rows(fleet: Fleet, details: bool) -> Iterator[tuple[str, str, str]]:
    for group in fleet.groups:
        nodes = compact(group.hosts)
        if not group.changed:
            yield nodes, "all modules" if len(group.modules) > 1 else group.modules[0].name, "nothing"
            continue
        for module in group.modules:
            if not module.changed:
                continue
            yield nodes, module.name, changes(module)
            nodes = ""
            if details:
                yield from (("", "", f"  {line}") for line in named(module))
    for text, hosts in _by_text(fleet.failed).items():
        yield compact(hosts), "FAILED", text


def _by_text(failed: Mapping[str, str]) -> dict[str, list[str]]:
    out: dict[str, list[str]] = {}
    for host, text in failed.items():
        out.setdefault(" ".join(text.split()), []).append(host)
    return out


def _group_diff(group: Group) -> Iterator[str]:
    for module in group.modules:
        if not module.changed:
            continue
        yield from ("", f"### {module.name}: {changes(module)}")
        for entry in module.diff:
            text = _unified(entry)
            fence = "`" * max(3, 1 + max((len(run) for run in re.findall("`+", "\n".join(text))), default=0))
            yield from ("", f"{fence}diff", *text, fence)


def _unified(entry: Mapping[str, str]) -> Sequence[str]:
    before, after = (entry.get(side, "").splitlines() for side in ("before", "after"))
    return list(difflib.unified_diff(before, after, f"before: {entry.get('before_header', '')}",
                                     f"after: {entry.get('after_header', '')}", lineterm=""))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
