# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report on a fleet: which hosts are equal, and how it reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.plugin_utils.report.fleet import ReportError, read_fleet
from ansible_collections.metal.nodenet.plugins.plugin_utils.report.host_ranges import compact
from ansible_collections.metal.nodenet.plugins.plugin_utils.report.texts import data, page, summary, table


@pytest.mark.parametrize(("hosts", "text"), [
    ([], ""),
    (["gateway"], "gateway"),
    (["node1"], "node1"),
    (["node2", "node1", "node3"], "node[1-3]"),
    (["node1", "node3", "node4", "node5"], "node[1,3-5]"),
    ([f"node{at:03d}" for at in range(1, 201)], "node[001-200]"),
    (["node9", "node10", "node11"], "node[9-11]"),
    (["node01", "node1"], "node01, node1"),
    (["r1-n1", "r1-n2", "r2-n1"], "r1-n[1-2], r2-n1"),
    (["n1.example", "n2.example", "gw"], "gw, n[1-2].example"),
    (["192.0.2.1", "192.0.2.2"], "192.0.2.[1-2]"),
])
def test_names_are_compact(hosts: list[str], text: str) -> None:
    assert compact(hosts) == text


SERVICE = {"before_header": "ipv4 nat", "after_header": "ipv4 nat", "before": "# KUBE-SERVICES\n",
           "after": "# KUBE-SERVICES\n-A KUBE-SERVICES -d 10.96.0.1/32 -j KUBE-SVC-A\n# KUBE-SVC-A: default/web (tcp)\n"
                    ":KUBE-SVC-A - [0:0]\n-A KUBE-SVC-A -j KUBE-SEP-B\n"}
POOLS = {"before_header": "ipv4 sets", "after_header": "ipv4 sets",
         "before": "# set cali40all-ipam-pools (only the members that differ)\n",
         "after": "# set cali40all-ipam-pools (only the members that differ)\nadd cali40all-ipam-pools 10.1.0.0/16\n"}
COUNTS = {"chains": {"added": 1, "changed": 1, "removed": 0}, "rules": {"added": 2, "changed": 0, "removed": 0},
          "flows": {"added": 0, "changed": 0, "removed": 3}}


def record(folder: Path, host: str, module: str = "kube_nat_chains", **result: Any) -> None:
    (folder / host).mkdir(exist_ok=True)
    whole = {"changed": False, "plan": {}, "plan_sha256": "", **result}
    (folder / host / f"{module}.json").write_text(json.dumps(whole))


def changed(*diff: dict[str, str], sha: str = "a1") -> dict[str, Any]:
    return {"changed": True, "plan": COUNTS, "plan_sha256": sha, "diff": list(diff)}


def test_equal_hosts_are_one_line(tmp_path: Path) -> None:
    hosts = [f"node{at:03d}" for at in range(1, 201)]
    for host in hosts:
        record(tmp_path, host, **changed(SERVICE))
        record(tmp_path, host, "calico_masq")
    record(tmp_path, "node201", **changed(SERVICE, POOLS, sha="b2"))
    record(tmp_path, "node202")
    fleet = read_fleet(tmp_path, [*hosts, "node201", "node202", "node203"], {"node203": "Host is\nunreachable"})
    lines = table(fleet, details=False)
    assert lines == [
        "nodes          module           changes",
        "node[001-200]  kube_nat_chains  chains +1 ~1, rules +2, flows -3",
        "node201        kube_nat_chains  chains +1 ~1, rules +2, flows -3",
        "node202        kube_nat_chains  nothing",
        "node203        FAILED           Host is unreachable",
    ]
    assert summary(fleet) == "203 nodes: 201 to change, 1 as they should be, 1 failed"


def test_details_name_chains_and_sets(tmp_path: Path) -> None:
    record(tmp_path, "a", **changed(SERVICE, POOLS))
    text = "\n".join(table(read_fleet(tmp_path, ["a"], {}), details=True))
    assert "  ipv4 nat: KUBE-SERVICES, KUBE-SVC-A\n" in text
    assert text.endswith("  ipv4 sets: cali40all-ipam-pools")


def test_details_of_a_large_table_are_its_summary(tmp_path: Path) -> None:
    large = {**SERVICE, "before": "", "after": "# 9000 chains come, 1 change, 0 go: 40000 lines are more than shown\n"}
    record(tmp_path, "a", **changed(large))
    assert "ipv4 nat: 9000 chains come" in "\n".join(table(read_fleet(tmp_path, ["a"], {}), details=True))


def test_details_of_a_mere_change_of_order_name_the_chain(tmp_path: Path) -> None:
    swapped = {**SERVICE, "before": "# C\n-A C -j A\n-A C -j B\n", "after": "# C\n-A C -j B\n-A C -j A\n"}
    record(tmp_path, "a", **changed(swapped))
    assert "ipv4 nat: C" in "\n".join(table(read_fleet(tmp_path, ["a"], {}), details=True))


def test_many_chains_are_counted(tmp_path: Path) -> None:
    many = {**SERVICE, "after": "".join(f":C{at} - [0:0]\n" for at in range(10))}
    record(tmp_path, "a", **changed(many))
    assert "ipv4 nat: C0, C1, C2, C3, C4, C5 and 4 more" in "\n".join(table(read_fleet(tmp_path, ["a"], {}), True))


def test_the_same_counts_with_another_difference_are_two_groups(tmp_path: Path) -> None:
    record(tmp_path, "a", **changed(SERVICE))
    record(tmp_path, "b", **changed({**SERVICE, "after": "-A KUBE-SERVICES -j OTHER\n"}))
    assert len(read_fleet(tmp_path, ["a", "b"], {}).groups) == 2


def test_warnings_do_not_split_groups_and_are_shown_once(tmp_path: Path) -> None:
    record(tmp_path, "a1", **changed(SERVICE), warnings=["default/web: no ports"])
    record(tmp_path, "a2", **changed(SERVICE), warnings=["default/web: no ports"])
    record(tmp_path, "a3", **changed(SERVICE))
    fleet = read_fleet(tmp_path, ["a1", "a2", "a3"], {})
    assert len(fleet.groups) == 1
    assert table(fleet, False)[-1] == "warning (a[1-2]): kube_nat_chains: default/web: no ports"


def test_a_host_without_results_has_failed(tmp_path: Path) -> None:
    assert read_fleet(tmp_path, ["a"], {}).failed == {"a": "no module has given a result"}


def test_a_host_whose_module_failed_has_failed(tmp_path: Path) -> None:
    record(tmp_path, "a", failed=True, msg="no iptables")
    assert read_fleet(tmp_path, ["a"], {"a": ""}).failed == {"a": "kube_nat_chains: no iptables"}


def test_a_damaged_result_is_named(tmp_path: Path) -> None:
    record(tmp_path, "a")
    (tmp_path / "a/kube_nat_chains.json").write_text('{"changed": tr')
    with pytest.raises(ReportError, match=r"a/kube_nat_chains\.json"):
        read_fleet(tmp_path, ["a"], {})


def test_the_page_has_one_difference_per_group(tmp_path: Path) -> None:
    for host in ("n1", "n2"):
        record(tmp_path, host, **changed(SERVICE))
    record(tmp_path, "n3")
    text = page(read_fleet(tmp_path, ["n1", "n2", "n3"], {}), {"source": "cluster.yml"})
    assert "- source: cluster.yml\n" in text
    assert "| n[1-2] | kube_nat_chains | chains +1 ~1, rules +2, flows -3 |\n" in text
    assert text.count("```diff") == 1
    assert "\n+-A KUBE-SVC-A -j KUBE-SEP-B\n" in text


def test_a_difference_cannot_end_its_block(tmp_path: Path) -> None:
    record(tmp_path, "a", **changed({**SERVICE, "after": "```\n# heading\n"}))
    assert "````diff" in page(read_fleet(tmp_path, ["a"], {}), {})


def test_the_data_have_a_hash_per_host_and_module(tmp_path: Path) -> None:
    record(tmp_path, "a", **changed(SERVICE))
    record(tmp_path, "a", "calico_masq")
    found = data(read_fleet(tmp_path, ["a", "b"], {"b": "no"}), {"format": 1})
    assert found["hosts"] == {"a": {"kube_nat_chains": "a1", "calico_masq": ""}}
    assert found["failed"] == {"b": "no"}
    assert json.loads(json.dumps(found))["groups"][0]["modules"]["kube_nat_chains"]["plan"] == COUNTS
