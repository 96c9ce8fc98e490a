# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What must be written for sets to become what they should be. Pure.

Members of a live set change one by one, added before others are removed: what is in both never leaves. A set of
another ``maxelem``, or one that cannot be read, is built anew under a temporary name and swapped, which rules that name
it do not notice. The kernel swaps only sets of one type; a set of another type is replaced if nothing refers to it, and
an error otherwise.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import PlanError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ipset import SetState
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, Desired, IpSet
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import FamilyPlan

SET_NAME_BYTES = 31


class SetChange(NamedTuple):
    """One set that changes."""

    name: str
    #: None where the set is new.
    before: SetState | None
    #: None where the set goes.
    after: IpSet | None
    #: How: ``create``, ``members``, ``swap``, ``replace`` or ``destroy``.
    how: str

    @property
    def added(self) -> list[str]:
        """Members that come."""
        return sorted((self.after.members if self.after else frozenset()) - _members(self.before))

    @property
    def removed(self) -> list[str]:
        """Members that go."""
        return sorted(_members(self.before) - (self.after.members if self.after else frozenset()))


def _members(state: SetState | None) -> frozenset[str]:
    return state.members if state else frozenset()


def set_family(family: str) -> str:
    """The family as ipset calls it."""
    return "inet" if family == IPV4 else "inet6"


def plan_sets(current: Mapping[str, SetState], desired: Desired) -> list[SetChange]:
    """Compare one family's sets with what they should be. Raises ``PlanError`` for one that cannot be written."""
    family = set_family(desired.family)
    changes = []
    for wanted in desired.sets:
        _validate(wanted)
        change = _plan_set(wanted, current.get(wanted.name), family)
        if change is not None:
            changes.append(change)
    wanted_names = {wanted.name for wanted in desired.sets}
    leftovers = desired.owned_sets - wanted_names
    # A crash may have left a temporary set; a swap takes it away itself.
    leftovers |= {temporary_name(name) for name in wanted_names | desired.owned_sets} - {
        temporary_name(change.name) for change in changes if change.how == "swap"}
    changes += [SetChange(name, current[name], None, "destroy") for name in sorted(leftovers) if name in current]
    return changes


def _validate(wanted: IpSet) -> None:
    if len(wanted.name.encode()) > SET_NAME_BYTES:
        raise PlanError(f"set name {wanted.name} is longer than {SET_NAME_BYTES} bytes")
    if len(wanted.members) > wanted.maxelem:
        raise PlanError(f"set {wanted.name} would have {len(wanted.members)} members, and its maxelem is "
                        f"{wanted.maxelem}")


def _plan_set(wanted: IpSet, found: SetState | None, family: str) -> SetChange | None:
    if found is None:
        return SetChange(wanted.name, None, wanted, "create")
    if found.unreadable:
        return SetChange(wanted.name, found, wanted, "swap")
    if (found.type, found.family) != (wanted.type, family):
        if found.references:
            raise PlanError(f"set {wanted.name} is a {found.type} of {found.family} and should be a {wanted.type} of "
                            f"{family}; the kernel cannot change that while {found.references} rules name it. Remove "
                            "them first (state absent)")
        return SetChange(wanted.name, found, wanted, "replace")
    if found.maxelem != wanted.maxelem:
        return SetChange(wanted.name, found, wanted, "swap")
    if found.members == wanted.members:
        return None
    # While old and new members are both in, the set must not overflow.
    return SetChange(wanted.name, found, wanted,
                     "members" if len(found.members | wanted.members) <= wanted.maxelem else "swap")


def session(changes: Sequence[SetChange], family: str, existing: frozenset[str] = frozenset()) -> str:
    """The restore session for all changes but ``destroy``; ``existing``: names of temporary sets left by a crash."""
    lines: list[str] = []
    for change in changes:
        if change.after is not None:
            lines += _lines(change, change.after, set_family(family), existing)
    return "".join(line + "\n" for line in lines)


def _lines(change: SetChange, wanted: IpSet, family: str, existing: frozenset[str]) -> Iterator[str]:
    if change.how == "members":
        yield from (f"add {wanted.name} {member}" for member in change.added)
        yield from (f"del {wanted.name} {member}" for member in change.removed)
        return
    temporary = temporary_name(wanted.name)
    name = temporary if change.how == "swap" else wanted.name
    if change.how == "replace":
        yield f"destroy {wanted.name}"
    if change.how == "swap" and temporary in existing:
        yield f"destroy {temporary}"
    yield f"create {name} {wanted.type} family {family} maxelem {wanted.maxelem}"
    yield from (f"add {name} {member}" for member in sorted(wanted.members))
    if change.how == "swap":
        yield f"swap {temporary} {wanted.name}"
        yield f"destroy {temporary}"


def release(changes: Sequence[SetChange], plan: FamilyPlan, warnings: list[str]) -> list[SetChange]:
    """The changes without the sets that somebody else's rule still names; those stay, and a warning says so."""
    out = []
    for change in changes:
        if change.after is None and change.before is not None:
            others = change.before.references - _mentions(change.name, plan)
            if others > 0:
                warnings.append(f"set {change.name} is no longer needed but stays: {others} rules of others name it")
                continue
        out.append(change)
    return out


def _mentions(name: str, plan: FamilyPlan) -> int:
    """How many rules that name the set go with the plan."""
    words = f"--match-set {name} "
    gone = 0
    for table in plan.tables:
        for write in table.writes:
            gone += _count(words, write.before or ()) - _count(words, write.chain.rules)
        for rules in table.removals.values():
            gone += _count(words, rules)
    return gone


def _count(words: str, rules: Sequence[str]) -> int:
    return sum(rule.count(words) for rule in rules)


def count_members(changes: Sequence[SetChange]) -> dict[str, int]:
    """How many members are added and removed. None is changed: a member has nothing but its name."""
    return {"added": sum(len(change.added) for change in changes), "changed": 0,
            "removed": sum(len(change.removed) for change in changes)}


def temporary_name(name: str) -> str:
    """The name under which a set is built anew."""
    return f"nodenet-{zlib.crc32(name.encode()):08x}"


def undo_sets(changes: Sequence[SetChange], now: Mapping[str, SetState]) -> list[SetChange]:
    """The changes that lead from ``now`` back to what was there before ``changes``."""
    back = []
    for change in changes:
        found = now.get(change.name)
        before = change.before
        if before is None:
            if found is not None:
                back.append(SetChange(change.name, found, None, "destroy"))
            continue
        if before.unreadable or before == found:
            continue
        family_set = IpSet(change.name, before.type, before.maxelem, before.members)
        undone = _plan_set(family_set, found, before.family)
        if undone is not None:
            back.append(undone)
    return back
