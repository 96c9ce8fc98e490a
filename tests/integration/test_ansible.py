# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The module as a user runs it: through Ansible, its action plugin and a connection, and the examples of its page."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from ansible_collections.metal.nodenet.plugins.modules import (
    calico_host_ips,
    calico_masq,
    floating_ip,
    kube_nat_chains,
    service_loop_block,
)
from support import plays
from support.builders import endpoint_slice, service
from support.node import Node
from support.plays import Done, failure, run_plays

OBJECTS = [
    {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "node-1"},
     "spec": {"podCIDRs": ["10.244.1.0/24", "fd00:10:244:1::/64"]}},
    service(),
    endpoint_slice("10.244.1.5", "10.244.2.5"),
]
CLUSTER = {"apiVersion": "v1", "kind": "List", "items": OBJECTS}
MODULE = "metal.nodenet.kube_nat_chains"


def play(one: Node, folder: Path, tasks: list[dict[str, Any]], name: str = "node-1") -> Done:
    """Run tasks on the node, whose namespace is a host of another name."""
    return run_plays(folder, [{"hosts": "all", "tasks": tasks}], {name: one}, "--diff")


def task(**arguments: Any) -> dict[str, Any]:
    return {MODULE: {"node_name": "node-1", **arguments}}


def changed(done: Done) -> int:
    return plays.changed(done)["node-1"]


def as_json(objects: dict[str, Any]) -> bytes:
    return json.dumps(objects).encode()


def as_yaml(objects: dict[str, Any]) -> bytes:
    return yaml.safe_dump(objects).encode()


def as_documents(objects: dict[str, Any]) -> bytes:
    return yaml.safe_dump_all(objects["items"], explicit_start=True).encode()


def as_typed_lists(objects: dict[str, Any]) -> bytes:
    """Lists of one kind each, whose items leave out their kind, as kubectl gives them for one resource."""
    lists = [{"kind": item["kind"] + "List", "items": [{key: value for key, value in item.items() if key != "kind"}]}
             for item in objects["items"]]
    return yaml.safe_dump_all(lists).encode()


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress], ids=["plain", "gzip"])
@pytest.mark.parametrize("form", [as_json, as_yaml, as_documents, as_typed_lists])
def test_every_form_of_a_cluster_file_gives_the_same_state(nft_node: Node, tmp_path: Path, form: Any,
                                                           pack: Any) -> None:
    nft_node.module(services=[service()], endpoint_slices=[endpoint_slice("10.244.1.5", "10.244.2.5")],
                    node_name="node-1")
    (tmp_path / "cluster").write_bytes(pack(form(CLUSTER)))
    done = play(nft_node, tmp_path, [task(cluster="cluster")])
    assert changed(done) == 0, done.stdout


FILES: dict[str, dict[str, Any]] = {
    "ippools.json": {"kind": "List", "items": [
        {"apiVersion": "projectcalico.org/v3", "kind": "IPPool", "metadata": {"name": "pods"},
         "spec": {"cidr": "10.244.0.0/16", "natOutgoing": True}}]},
    "pods.json": {"kind": "List", "items": [
        {"kind": "Pod", "metadata": {"name": "web", "namespace": "default", "annotations": {
            "cni.projectcalico.org/floatingIPs": '["198.51.100.10"]'}},
         "spec": {"nodeName": "node-1"}, "status": {"podIPs": [{"ip": "10.244.1.5"}]}}]},
    "bgpconfigurations.json": {"kind": "List", "items": [
        {"apiVersion": "projectcalico.org/v3", "kind": "BGPConfiguration", "metadata": {"name": "default"},
         "spec": {"serviceClusterIPs": [{"cidr": "10.96.0.0/12"}]}}]},
}
FILES["cluster.json"] = {**CLUSTER, "items": [*OBJECTS, *(item for one in FILES.values() for item in one["items"])]}


@pytest.mark.parametrize(("page", "changes", "shown"), [
    pytest.param(kube_nat_chains, 4, "default/web:http (tcp)", id="kube_nat_chains"),
    pytest.param(calico_masq, 4, "add cali40masq-ipam-pools 10.244.0.0/16", id="calico_masq"),
    pytest.param(floating_ip, 2, "--to-destination 10.244.1.5", id="floating_ip"),
    pytest.param(service_loop_block, 3, "-A cali-cidr-block -d 10.96.0.0/12", id="service_loop_block"),
    pytest.param(calico_host_ips, 3, "add cali40this-host 192.0.2.11", id="calico_host_ips"),
])
def test_the_examples_of_the_page_run(nft_node: Node, tmp_path: Path, page: ModuleType, changes: int,
                                      shown: str) -> None:
    (tmp_path / "files").mkdir()
    for name, content in FILES.items():
        (tmp_path / "files" / name).write_bytes(as_json(content))
    tasks: list[dict[str, Any]] = []
    for example in yaml.safe_load(page.EXAMPLES):
        if "failed_when" in example:
            # An audit, of what the agent of that version would have left there.
            tasks.append({key: example[key] for key in example if key.startswith("metal.nodenet.")})
        tasks.append(example)
    done = play(nft_node, tmp_path, tasks)
    assert changed(done) == changes, done.stdout
    assert shown in done.stdout
    left = "".join(nft_node.saves().values())
    assert "KUBE-" not in left
    assert "cali-" not in left


BROKEN = {
    "absent": (None, "was not found"),
    "empty": (b"", "is empty"),
    "truncated JSON": (as_json(CLUSTER)[:-40], "is not whole JSON"),
    "truncated gzip": (gzip.compress(as_json(CLUSTER))[:-30], "cannot be read"),
    "truncated YAML": (b"kind: List\nitems: [{kind: Service, metadata: {name: a", "is not whole YAML"),
    "duplicate key in YAML": (b"kind: List\nitems: []\nitems: []\n", "'items' is there twice"),
    "duplicate key in JSON": (b'{"kind": "List", "items": [], "items": []}', "'items' is there twice"),
    "not a List": (b'{"hello": "world"}', "is not a List of Kubernetes objects"),
    "no items": (b'{"kind": "List"}', "has no list of items"),
    "no service": (b'{"kind": "List", "items": []}', "allow_empty"),
    "a bad port": (as_json({"kind": "List", "items": [service(ports=[{"port": 99999}])]}),
                   "Service default/web: spec.ports[0].port: 99999"),
    "a hostile name": (as_json({"kind": "List", "items": [service(name='x" -j ACCEPT\n-A INPUT')]}), "metadata.name"),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_a_broken_cluster_file_is_refused_before_anything_is_touched(nft_node: Node, tmp_path: Path, kind: str) -> None:
    nft_node.module(services=[service()], endpoint_slices=[endpoint_slice("10.244.1.5")])
    before = nft_node.saves()
    content, expected = BROKEN[kind]
    if content is not None:
        (tmp_path / "cluster").write_bytes(content)
    assert expected in failure(play(nft_node, tmp_path, [task(cluster="cluster")]))
    assert nft_node.saves() == before


def test_the_cluster_is_gone_from_the_node_after_the_run(nft_node: Node, tmp_path: Path) -> None:
    (tmp_path / "cluster").write_bytes(as_json(CLUSTER))
    remote = tmp_path / "remote"
    remote.mkdir()
    tasks = [{**task(cluster="cluster"), "vars": {"ansible_remote_tmp": str(remote)}}]
    assert changed(play(nft_node, tmp_path, tasks)) == 1
    assert list(remote.iterdir()) == []


def test_a_file_on_the_node_is_read_there(nft_node: Node, tmp_path: Path) -> None:
    (tmp_path / "elsewhere.json.gz").write_bytes(gzip.compress(as_json(CLUSTER)))
    assert changed(play(nft_node, tmp_path, [task(cluster=str(tmp_path / "elsewhere.json.gz"), remote_src=True)])) == 1
