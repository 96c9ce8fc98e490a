# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The results of modules on many hosts, and which hosts are equal."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

#: The order in which modules run and are shown.
MODULES = ("kube_nat_chains", "calico_masq", "floating_ip", "service_loop_block", "calico_host_ips")

_names_chain = re.compile(r"(?::|-A |add |create )(\S+)").match


class ReportError(Exception):
    """The results cannot be read."""


@dataclass(frozen=True)
class ModulePlan:
    """What one module would change, or has changed, on a host."""

    name: str
    changed: bool
    #: The hash of the plan, empty if nothing changes.
    sha256: str
    #: What (``chains``, ``rules``, ``set_members``, ``flows``) to how many are ``added``, ``changed`` and ``removed``.
    counts: Mapping[str, Mapping[str, int]]
    #: Ansible's diff entries.
    diff: Sequence[Mapping[str, str]]
    warnings: Sequence[str]
    #: Whether the document that the node keeps changes.
    remembered: bool = False
    #: Why the module failed, empty if it did not.
    error: str = ""

    def chains(self) -> dict[str, list[str]]:
        """By family and table (``ipv4 nat``), the chains and sets with a difference, or a summary in their place."""
        return {entry.get("before_header", ""): _differing(entry) for entry in self.diff}


@dataclass
class Group:
    """Hosts on which the same would change."""

    hosts: list[str]
    modules: Sequence[ModulePlan]

    @property
    def changed(self) -> bool:
        """Whether anything changes on them."""
        return any(module.changed for module in self.modules)


@dataclass
class Fleet:
    """All hosts, sorted out."""

    groups: list[Group] = field(default_factory=list)
    #: Host to why there is no plan for it.
    failed: dict[str, str] = field(default_factory=dict)
    #: Text to the hosts and modules that gave it.
    warnings: dict[str, list[str]] = field(default_factory=dict)

    def plans(self) -> dict[str, dict[str, str]]:
        """Host to module to the hash of its plan."""
        return {host: {module.name: module.sha256 for module in group.modules}
                for group in self.groups for host in group.hosts}

    @property
    def changed_hosts(self) -> list[str]:
        """The hosts on which anything changes."""
        return [host for group in self.groups if group.changed for host in group.hosts]


def read_fleet(results: Path, hosts: Iterable[str], errors: Mapping[str, str]) -> Fleet:
    """Read ``<results>/<host>/<module>.json`` of all hosts. Raises ``ReportError`` for a file that is damaged."""
    fleet = Fleet()
    groups: dict[str, Group] = {}
    for host in hosts:
        if errors.get(host):
            fleet.failed[host] = errors[host]
            continue
        modules = _read_host(results / host)
        broken = [f"{module.name}: {module.error}" for module in modules if module.error]
        if broken:
            fleet.failed[host] = "; ".join(broken)
            continue
        if not modules:
            fleet.failed[host] = "no module has given a result"
            continue
        for module in modules:
            for warning in module.warnings:
                fleet.warnings.setdefault(f"{module.name}: {warning}", []).append(host)
        groups.setdefault(_key(modules), Group([], modules)).hosts.append(host)
    fleet.groups = sorted(groups.values(), key=lambda group: (not group.changed, -len(group.hosts), group.hosts[0]))
    return fleet


def _read_host(folder: Path) -> list[ModulePlan]:
    return [_read_module(name, folder / f"{name}.json") for name in MODULES if (folder / f"{name}.json").exists()]


def _read_module(name: str, path: Path) -> ModulePlan:
    try:
        result: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ReportError(f"{path}: the result of {name} cannot be read: {error}") from error
    return ModulePlan(name, bool(result.get("changed")), str(result.get("plan_sha256") or ""), result.get("plan") or {},
                      result.get("diff") or [], result.get("warnings") or [], bool(result.get("remembered")),
                      str(result.get("msg") or "failed") if result.get("failed") else "")


def _key(modules: Iterable[ModulePlan]) -> str:
    """Equal for hosts on which the same would change; warnings are told apart from that."""
    parts = [[module.name, module.changed, module.sha256, module.remembered, list(map(dict, module.diff))]
             for module in modules]
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def _differing(entry: Mapping[str, str]) -> list[str]:
    before, after = (entry.get(side, "").splitlines() for side in ("before", "after"))
    old, new = set(before), set(after)
    lines = [line for line in before if line not in new] + [line for line in after if line not in old]
    named = [found[1] for found in map(_names_chain, lines) if found]
    # A table that is too large is summed up in one comment. A mere change of order shows in no line of its own.
    rest = [line.removeprefix("# ") for line in lines if line.startswith("#")] or [
        found[1] for found in map(_names_chain, after) if found]
    return list(dict.fromkeys(named or rest))
