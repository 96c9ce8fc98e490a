# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""On a real kernel and both backends: what the real kube-proxy left is what we want, and what we write is what it left.

Audit, apply, update and idempotence for every recorded cluster and version.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from conformance.cases import Case, all_cases, shared_folder
from conformance.conntrack import covered
from conformance.normal import normal_form, only_ours
from support.node import Node, node

FAMILIES = ("ipv4", "ipv6")


@pytest.fixture(scope="session", autouse=True)
def _say_which_cases() -> None:
    if shared_folder() is None:
        print("\nconformance: only the project's own cases; a larger collection was not found (NODENET_CONFORMANCE)")


def _parameters(second_only: bool = False) -> list[Any]:
    return [pytest.param(case, version, backend, id=f"{case.name}-{version}-{backend}")
            for case in all_cases() for version in case.versions for backend in ("nft", "legacy")
            if case.has_second or not second_only]


def _recorded_calls() -> list[Any]:
    """Those of which the calls of conntrack were recorded, if only that there were none."""
    return [one for one in _parameters(second_only=True) if one.values[0].conntrack(one.values[1]) is not None]


@pytest.fixture
def kube_node(backend: str, case: Case) -> Iterator[Node]:
    """A node with the interfaces of the recorded one."""
    with node(backend) as one:
        for name, addresses in case.config["interfaces"].items():
            one.add_interface(name, addresses)
        yield one


def _arguments(case: Case, version: str, folder: Path, second: bool = False) -> dict[str, Any]:
    """The module's options for the recorded kube-proxy's."""
    config = case.config
    mode = config["detect_local"]
    path = folder / f"cluster{second:d}.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": case.objects(second)}))
    return {
        # Two recorded clusters lose their last Service, which a module must be told to believe.
        "allow_empty": not any(item["kind"] == "Service" for item in case.objects(second)),
        "cluster": str(path), "remote_src": True, "node_name": config["node"], "layout": version,
        "detect_local": {"mode": mode, "cidrs": config["cluster_cidrs"] if mode == "cluster_cidr" else [],
                         "interface": config.get(mode)},
        **{name: config[name] for name in ("masquerade_all", "masquerade_bit", "nodeport_addresses",
                                           "localhost_nodeports")},
    }


def _load(one: Node, case: Case, version: str, second: bool = False) -> None:
    """Load a dump as it was recorded; the counters that it names have to be there first."""
    texts = {family: case.dump(version, family, second).read_text() for family in FAMILIES}
    if any("nfacct" in text for text in texts.values()):
        for counter in ("ct_state_invalid_dropped_pkts", "localhost_nps_accepted_pkts"):
            one.exec("nfacct", "add", counter)
    for family, text in texts.items():
        one.load(family, text, flush=True)


@pytest.mark.parametrize(("case", "version", "backend"), _parameters())
def test_audit_of_the_recorded_state_reports_nothing(kube_node: Node, case: Case, version: str, tmp_path: Path) -> None:
    _load(kube_node, case, version)
    before = kube_node.saves()
    result = kube_node.module(check=True, **_arguments(case, version, tmp_path))
    assert not result.get("failed"), result["msg"]
    assert result["diff"] == []
    assert not result["changed"]
    assert kube_node.saves() == before


@pytest.mark.parametrize(("case", "version", "backend"), _parameters())
def test_apply_in_an_empty_node_gives_the_recorded_state(kube_node: Node, case: Case, version: str, backend: str,
                                                         tmp_path: Path) -> None:
    arguments = {**_arguments(case, version, tmp_path), "backend": backend}
    result = kube_node.four_ways(**arguments)
    assert result["changed"]
    for family in FAMILIES:
        assert normal_form(kube_node.save(family)) == normal_form(case.dump(version, family).read_text())
    gone = kube_node.four_ways(state="absent", backend=backend)
    assert gone["changed"]
    for family in FAMILIES:
        assert only_ours(kube_node.save(family)) == []


@pytest.mark.parametrize(("case", "version", "backend"), _parameters(second_only=True))
def test_update_gives_the_second_state_and_writes_only_what_differs(kube_node: Node, case: Case, version: str,
                                                                    tmp_path: Path) -> None:
    _load(kube_node, case, version)
    result = kube_node.four_ways(**_arguments(case, version, tmp_path, second=True))
    for family in FAMILIES:
        before, after = (normal_form(case.dump(version, family, second).read_text()) for second in (False, True))
        assert normal_form(kube_node.save(family)) == after
        changing = {(table, chain) for table in after for chain in before[table].keys() | after[table].keys()
                    if before[table].get(chain) != after[table].get(chain)}
        assert _shown(result, family) == changing


def test_calls_of_conntrack_were_recorded() -> None:
    calls = [one.values[0].conntrack(one.values[1]) for one in _recorded_calls()]
    assert len([some for some in calls if some]) >= 20
    assert [] in calls


@pytest.mark.parametrize(("case", "version", "backend"), _recorded_calls())
def test_update_asks_for_at_least_the_flows_that_were_deleted(kube_node: Node, case: Case, version: str,
                                                              tmp_path: Path) -> None:
    _load(kube_node, case, version)
    result = kube_node.module(check=True, **_arguments(case, version, tmp_path, second=True))
    calls = case.conntrack(version)
    assert calls is not None
    assert [call for call in calls if not covered(call, result["stale_flows"])] == []
    if not calls:
        assert result["stale_flows"] == []
    assert all(asked["reason"] for asked in result["stale_flows"])


def _shown(result: dict[str, Any], family: str) -> set[tuple[str, str]]:
    """Table and chain of every section of the diff: what was written, as the module says."""
    found = set()
    for entry in result["diff"]:
        name, table = entry["after_header"].split(" ")
        if name == family:
            found |= {(table, line[2:].split(" ")[0].rstrip(":")) for line in entry["after"].splitlines()
                      if line.startswith("# ")}
    return found
