# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""plan.yml and verify.yml on namespaces: what they say, and that no node is touched."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.fleet import Fleet, cluster, make_nodes
from support.foreign import load_foreign

HOSTS = ["node1", "node2", "node3"]


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[Fleet]:
    nodes = make_nodes(HOSTS)
    try:
        yield Fleet(tmp_path, nodes, nodenet_cluster_file="cluster.json", node_name="{{ inventory_hostname }}")
    finally:
        for one in nodes.values():
            one.close()


def kept(fleet: Fleet) -> set[str]:
    """The files that the nodes' state directories hold, without the names of hosts and hashes."""
    found = [path.relative_to(fleet.folder / "state") for path in (fleet.folder / "state").rglob("*") if path.is_file()]
    return {re.sub(r"[0-9a-f]{64}", "HASH", "/".join(path.parts[1:])) for path in found}


def test_plan_says_what_would_change_and_touches_nothing(fleet: Fleet) -> None:
    fleet.write("cluster.json", cluster(["10.244.1.5"], nodes=HOSTS))
    for one in fleet.nodes.values():
        load_foreign(one)
    fleet.role("kube_nat", "--limit", "node3", kube_nat_cluster=str(fleet.folder / "cluster.json"),
               kube_nat_node_name="node3").ok()
    before = fleet.saves()
    planned = fleet.playbook("plan").ok()
    assert fleet.saves() == before
    # The only thing that was written is the input.
    assert kept(fleet) == {"cache/HASH.json.gz"}
    assert re.search(r"^node\[1-2\]  kube_nat_chains  chains \+\d+ ~\d+, rules \+\d+, document$", planned.stdout, re.M)
    assert "3 nodes: 3 to change, 0 as they should be" in planned.stdout
    # Differences are in the page, not on the screen.
    assert "--dport 80" not in planned.text

    plan = fleet.read(".nodenet/plan.json")
    assert plan["plan_format"] == 1
    assert plan["hosts"].keys() == set(HOSTS)
    assert plan["hosts"]["node1"] == plan["hosts"]["node2"]
    assert re.fullmatch("[0-9a-f]{64}", plan["hosts"]["node1"]["kube_nat_chains"])
    # There, only the document is missing.
    assert plan["hosts"]["node3"] == {"kube_nat_chains": ""}
    assert plan["snapshot"]["sha256"] in planned.text
    page = (fleet.folder / ".nodenet/plan.md").read_text()
    assert page.count("\n## node") == 2
    assert "+-A KUBE-SERVICES -d 10.96.0.1/32" in page


def test_a_node_that_is_not_reached_is_in_the_table_and_others_are_planned(fleet: Fleet) -> None:
    fleet.write("cluster.json", cluster(["10.244.1.5"], nodes=HOSTS))
    fleet.nodes["node2"].close()
    try:
        planned = fleet.playbook("plan").failed("node2: no plan")
        assert re.search(r"^node2 +FAILED +unreachable: .*no network namespace", planned.stdout, re.M)
        assert re.search(r"^node\[1,3\] +kube_nat_chains  chains", planned.stdout, re.M)
        plan = fleet.read(".nodenet/plan.json")
        assert (plan["hosts"].keys(), plan["failed"].keys()) == ({"node1", "node3"}, {"node2"})
    finally:
        fleet.nodes["node2"].open()


def broken() -> dict[str, tuple[bytes, str]]:
    whole = json.dumps(cluster(["10.244.1.5"])).encode()
    return {
        "truncated": (whole[:-50], "not whole JSON"),
        "truncated gzip": (gzip.compress(whole)[:-30], "cannot be read"),
        "empty list": (b'{"kind": "List", "items": []}', "allow_empty"),
        "duplicate keys": (b"kind: List\nitems: []\nitems: []\n", "'items' is there twice"),
    }


@pytest.mark.parametrize("fault", broken())
def test_a_source_that_is_refused_stops_before_any_node(fleet: Fleet, fault: str) -> None:
    content, said = broken()[fault]
    (fleet.folder / "cluster.json").write_bytes(content)
    before = fleet.saves()
    run = fleet.playbook("apply").failed(said)
    assert "Reach the node" not in run.stdout
    assert not (fleet.folder / "state").exists()
    assert fleet.saves() == before


def test_half_of_the_services_gone_stops_before_any_node(fleet: Fleet) -> None:
    fleet.write("cluster.json", cluster(["10.244.1.5"], services=10, nodes=HOSTS))
    fleet.playbook("plan").ok()
    fleet.write("cluster.json", cluster(["10.244.1.5"], services=5, nodes=HOSTS))
    run = fleet.playbook("plan").failed("max_service_loss_percent")
    assert "Reach the node" not in run.stdout
    fleet.playbook("plan", nodenet_max_service_loss_percent=50).ok()


def test_verify_fails_on_drift_and_names_it(fleet: Fleet) -> None:
    objects: dict[str, Any] = cluster(["10.244.1.5"], nodes=HOSTS)
    fleet.write("cluster.json", objects)
    fleet.role("kube_nat", kube_nat_cluster=str(fleet.folder / "cluster.json")).ok()
    # The role has left no document; an audit does not ask for one.
    assert "3 nodes: 0 to change, 3 as they should be" in fleet.playbook("verify").ok().stdout
    fleet.nodes["node2"].iptables("-t", "nat", "-D", "KUBE-SERVICES", "1")
    before = fleet.saves()
    run = fleet.playbook("verify").failed("Drift on: node2. Not verified: no node")
    assert re.search(r"^node2 +kube_nat_chains  chains ~1, rules \+1\n +ipv4 nat: KUBE-SERVICES$", run.stdout, re.M)
    assert fleet.saves() == before


def test_fifty_nodes_reduced_once_sent_once(tmp_path: Path) -> None:
    names = [f"node{at:03d}" for at in range(1, 51)]
    nodes = make_nodes(names)
    try:
        fleet = Fleet(tmp_path, nodes, nodenet_cluster_file="cluster.json", node_name="{{ inventory_hostname }}")
        fleet.write("cluster.json", cluster(["10.244.1.5"], services=20, nodes=names))
        first = fleet.playbook("plan", "-vv").ok()
        assert re.search(r"^node\[001-050\]  kube_nat_chains", first.stdout, re.M)
        assert first.stdout.count("was sent") == 50
        assert first.stdout.count("nodenet: reducing") == 0
        second = fleet.playbook("plan", "-vv").ok()
        assert (second.stdout.count("was sent"), second.stdout.count("is there")) == (0, 50)
    finally:
        for one in nodes.values():
            one.close()
