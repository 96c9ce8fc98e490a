# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A plan as before and after texts that a reviewer can read: one entry per family and table that changes.

Only what changes is shown. A chain whose order matters is shown whole, with a heading that names the service behind a
hashed name; a chain without order, and a chain of others, show the rules of ours that differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.compare import changed_rules
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import (
    ChainWrite,
    FamilyPlan,
    ParentEdit,
    TablePlan,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import append_line
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.set_plan import SetChange
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import parent_edit


class _Section(NamedTuple):
    """What one chain contributes to a table's diff."""

    chain: str
    heading: str
    before: list[str]
    after: list[str]


def differences(plan: FamilyPlan, titles: dict[str, str] | None = None, label: str = "",
                limit: int = 0) -> list[dict[str, str]]:
    """Ansible diff entries: ``before_header``, ``after_header``, ``before``, ``after``, per table that changes.

    ``titles`` names chains that go (those that stay or come carry their own title); ``label`` is the family as the
    headers call it. A table with more than ``limit`` lines of difference (0: any number) is summed up.
    """
    out = []
    for table in plan.tables:
        if not table:
            continue
        name = f"{label or plan.family} {table.table}"
        lines = _size(table)
        if limit and lines > limit:
            new = sum(write.before is None for write in table.writes)
            out.append(_summary(name, lines, limit, f"{new} chains come, {len(table.writes) - new} change, "
                                                    f"{len(table.removals)} go"))
            continue
        sections = sorted(_sections(table, titles or {}), key=lambda section: section.chain)
        out.append({"before_header": name, "after_header": name,
                    "before": "".join(_text(section.heading, section.before) for section in sections),
                    "after": "".join(_text(section.heading, section.after) for section in sections)})
    return out


def _size(table: TablePlan) -> int:
    """About how many lines the difference of a table has."""
    return (sum(len(write.chain.rules) + len(write.before or ()) for write in table.writes if write.chain.ordered)
            + sum(map(len, table.removals.values())) + len(table.writes) + len(table.removals))


def _summary(name: str, lines: int, limit: int, text: str) -> dict[str, str]:
    return {"before_header": name, "after_header": name, "before": "",
            "after": f"# {text}: {lines} lines are more than diff_limit ({limit}) and not shown\n"}


def set_differences(changes: Sequence[SetChange], label: str, limit: int = 0) -> list[dict[str, str]]:
    """One diff entry for the sets of a family: the members that come and go; summed up beyond ``limit`` lines."""
    if not changes:
        return []
    lines = sum(len(change.added) + len(change.removed) for change in changes)
    if limit and lines > limit:
        coming, going = (sum(len(part) for part in parts) for parts in (
            [change.added for change in changes], [change.removed for change in changes]))
        return [_summary(f"{label} sets", lines, limit, f"{coming} members come, {going} go")]
    before, after = "", ""
    for change in changes:
        heading = f"# set {change.name}" + (" (only the members that differ)" if change.how == "members" else "")
        old, new = change.before, change.after
        create_old = [f"create {change.name} {old.type} maxelem {old.maxelem}"] if old and not old.unreadable else []
        create_new = [f"create {change.name} {new.type} maxelem {new.maxelem}"] if new else []
        if change.how == "members":
            create_old = create_new = []
        before += _text(heading, [*create_old, *(f"add {change.name} {member}" for member in change.removed)])
        after += _text(heading, [*create_new, *(f"add {change.name} {member}" for member in change.added)])
    return [{"before_header": f"{label} sets", "after_header": f"{label} sets", "before": before, "after": after}]


def _text(heading: str, lines: Sequence[str]) -> str:
    # The heading is on both sides, so that it stands as context above the lines that change.
    return "\n".join([heading, *lines]) + "\n"


def _sections(table: TablePlan, titles: dict[str, str]) -> Iterator[_Section]:
    for edit in table.parents:
        yield _parent(edit)
    for write in table.writes:
        yield _write(write)
    for name, rules in table.removals.items():
        yield _Section(name, _heading(name, titles.get(name, "")), _declared(name, rules), [])


def _write(write: ChainWrite) -> _Section:
    chain = write.chain
    heading = _heading(chain.name, chain.title)
    if write.before is None:
        return _Section(chain.name, heading, [], _declared(chain.name, chain.rules))
    if chain.ordered:
        return _Section(chain.name, heading, _rules(chain.name, write.before), _rules(chain.name, chain.rules))
    gone, new = changed_rules(write.before, chain.rules)
    if not gone and not new:
        # Only the place of the last rules is wrong: show the chain as it is and as it should be.
        return _Section(chain.name, heading, _rules(chain.name, write.before), _rules(chain.name, chain.rules))
    return _Section(chain.name, heading + " (only the rules that differ)",
                    _rules(chain.name, gone), _rules(chain.name, new))


def _parent(edit: ParentEdit) -> _Section:
    _deleted, inserted = parent_edit(edit)
    before = [_placed(edit.parent, rule, at) for at, rule in enumerate(edit.before, 1) if rule in edit.going]
    after = [_placed(edit.parent, rule, at) for at, rule in inserted]
    return _Section(edit.parent, f"# {edit.parent}: our jumps (rules of others stay as they are)", before, after)


def _placed(parent: str, rule: str, position: int) -> str:
    return f"{append_line(parent, rule)}  # position {position}"


def _heading(name: str, title: str) -> str:
    return f"# {name}: {title}" if title else f"# {name}"


def _declared(chain: str, rules: Sequence[str]) -> list[str]:
    return [f":{chain} - [0:0]", *_rules(chain, rules)]


def _rules(chain: str, rules: Sequence[str]) -> list[str]:
    return [append_line(chain, rule) for rule in rules]
