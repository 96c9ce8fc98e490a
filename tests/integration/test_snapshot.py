# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""``cluster_snapshot`` in plays: what it accepts goes to the nodes, what it refuses ends the play before that."""

from __future__ import annotations

import gzip
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.metal.nodenet.plugins.modules import cluster_snapshot
from support.builders import endpoint_slice, service
from support.node import Node, node
from support.plays import Done, changed, failure, run_plays

SNAPSHOT, MODULE = "metal.nodenet.cluster_snapshot", "metal.nodenet.kube_nat_chains"
RUN_MODULE = {MODULE: {"cluster": "{{ snapshot.path }}", "node_name": "node-1"}}
POOL = {"apiVersion": "crd.projectcalico.org/v1", "kind": "IPPool", "metadata": {"name": "pods"},
        "spec": {"cidr": "10.96.0.0/16"}}


#: What a run changes that takes a snapshot and writes down the result.
ONCE = {"node-1": 2}


@pytest.fixture(scope="module")
def nodes() -> Iterator[dict[str, Node]]:
    with node("nft") as one, node("nft") as two:
        yield {"node-1": one, "node-2": two}


def services(count: int, start: int = 0) -> list[dict[str, Any]]:
    return [service(f"web-{number}", clusterIP=f"10.96.{number >> 8 & 255}.{number & 255}")
            for number in range(start, start + count)]


def listed(*items: Any) -> bytes:
    return json.dumps({"apiVersion": "v1", "kind": "List", "items": items}).encode()


def snapshot(**arguments: Any) -> dict[str, Any]:
    return {SNAPSHOT: {"dest": "snapshots", **arguments}, "run_once": True, "register": "snapshot"}


def run(folder: Path, hosts: dict[str, Node], *flags: str, then: list[dict[str, Any]] | None = None,
        **arguments: Any) -> Done:
    arguments.setdefault("dest", str(folder / "snapshots"))
    if not {"objects", "api"} & set(arguments):
        arguments.setdefault("file", "cluster")
    tasks = [snapshot(**arguments), *([RUN_MODULE] if then is None else then),
             {"ansible.builtin.copy": {"content": "{{ snapshot }}", "dest": str(folder / "result.json")},
              "run_once": True, "delegate_to": "localhost", "check_mode": False}]
    return run_plays(folder, [{"hosts": "all", "tasks": tasks}], hosts, "-vv", *flags)


def result(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "result.json").read_text())
    return found


def test_a_snapshot_goes_to_the_nodes_as_it_is(nodes: dict[str, Node], tmp_path: Path) -> None:
    (tmp_path / "cluster").write_bytes(listed(*services(3), endpoint_slice("10.244.1.5"), POOL,
                                              {"kind": "Secret", "metadata": {"name": "x"}, "data": "hidden"}))
    done = run(tmp_path, nodes, "--check", overlaps="warn")
    assert changed(done)["node-2"] == 1
    assert "nodenet: reducing" not in done.stdout
    assert done.stdout.count("was sent") == 2
    found = result(tmp_path)
    path = Path(found["path"])
    assert path.name == f"cluster-{found['sha256']}.json.gz"
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert found["counts"] == {"Service": 3, "EndpointSlice": 1, "IPPool": 1}
    assert (found["services"], found["lost_services"]) == (3, {"count": 0, "names": []})
    assert "hidden" not in gzip.decompress(path.read_bytes()).decode()
    assert found["source"] == str(tmp_path / "cluster")
    assert set(found) <= {"changed", "source", "path", "sha256", "counts", "services", "lost_services", "overlaps",
                          "failed", "warnings", "exception", "deprecations"}


REFUSED = {
    "absent": (None, "was not found"),
    "empty file": (b"", "is empty"),
    "truncated": (listed(*services(3))[:-30], "is not whole JSON"),
    "truncated gzip": (gzip.compress(listed(*services(3)))[:-20], "cannot be read"),
    "invalid JSON": (b'{"kind": "List", "items": [}', "is not whole JSON"),
    "empty list": (listed(), "holds no Service at all"),
    "no service left": (listed(endpoint_slice("10.0.0.1")), "allow_empty"),
    "a key twice in YAML": (b"kind: List\nitems:\n- kind: Service\n  kind: Service\n", "key 'kind' is there twice"),
    "an object without a name": (listed(service(), {"kind": "Service", "metadata": {}}), "has no metadata.name"),
    "what is no object": (listed(service(), "text"), "items[1] is not an object"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_a_broken_source_ends_the_play_before_the_first_node(nodes: dict[str, Node], tmp_path: Path, kind: str) -> None:
    content, expected = REFUSED[kind]
    if content is not None:
        (tmp_path / "cluster").write_bytes(content)
    done = run(tmp_path, nodes)
    assert expected in failure(done)
    assert f"TASK [{MODULE}]" not in done.stdout
    assert not list((tmp_path / "snapshots").glob("*"))
    assert not (tmp_path / "state").exists()


def test_half_of_the_services_gone_ends_the_play_and_the_baseline_stays(nodes: dict[str, Node], tmp_path: Path) -> None:
    (tmp_path / "cluster").write_bytes(listed(*services(10)))
    assert changed(run(tmp_path, nodes, then=[])) == ONCE
    (tmp_path / "cluster").write_bytes(listed(*services(5)))
    for _time in range(2):
        done = run(tmp_path, nodes)
        assert ("5 of 10 services are gone since the last snapshot, which is more than max_service_loss_percent (20) "
                "allows: default/web-5, default/web-6") in failure(done)
        assert f"TASK [{MODULE}]" not in done.stdout
    assert len(list((tmp_path / "snapshots").glob("cluster-*"))) == 1
    assert changed(run(tmp_path, nodes, then=[], max_service_loss_percent=50)) == ONCE
    assert result(tmp_path)["lost_services"]["count"] == 5
    (tmp_path / "cluster").write_bytes(listed(*services(4)))
    assert changed(run(tmp_path, nodes, then=[])) == ONCE
    assert result(tmp_path)["lost_services"] == {"count": 1, "names": ["default/web-4"]}


def test_check_mode_moves_no_baseline(nodes: dict[str, Node], tmp_path: Path) -> None:
    (tmp_path / "cluster").write_bytes(listed(*services(10)))
    changed(run(tmp_path, nodes, then=[]))
    (tmp_path / "cluster").write_bytes(listed(*services(8)))
    for _time in range(2):
        changed(run(tmp_path, nodes, "--check", then=[]))
        assert result(tmp_path)["lost_services"]["count"] == 2
        assert os.path.exists(result(tmp_path)["path"])


def test_a_damaged_baseline_is_named(nodes: dict[str, Node], tmp_path: Path) -> None:
    (tmp_path / "cluster").write_bytes(listed(*services(1)))
    (tmp_path / "snapshots").mkdir(mode=0o700)
    (tmp_path / "snapshots" / "last.json").write_text('{"services": [')
    assert "last.json cannot be read" in failure(run(tmp_path, nodes))


@pytest.mark.parametrize("spoil", [lambda folder: folder.chmod(0o777), lambda folder: folder.chmod(0o770),
                                   lambda folder: os.chown(folder, 1234, 1234)])
def test_a_directory_that_others_can_write_to_is_refused(nodes: dict[str, Node], tmp_path: Path,
                                                         spoil: Callable[[Path], None]) -> None:
    (tmp_path / "cluster").write_bytes(listed(*services(1)))
    (tmp_path / "snapshots").mkdir(mode=0o700)
    spoil(tmp_path / "snapshots")
    assert "others can write to" in failure(run(tmp_path, nodes))


def test_a_file_that_cannot_be_written_is_named(nodes: dict[str, Node], tmp_path: Path) -> None:
    (tmp_path / "cluster").write_bytes(listed(*services(1)))
    changed(run(tmp_path, nodes, then=[]))
    path = Path(result(tmp_path)["path"])
    path.unlink()
    path.mkdir()
    assert f"dest: {path}: Is a directory" in failure(run(tmp_path, nodes))


def test_old_snapshots_go(nodes: dict[str, Node], tmp_path: Path) -> None:
    for number in range(1, 8):
        (tmp_path / "snapshots").mkdir(mode=0o700, exist_ok=True)
        (tmp_path / "snapshots" / f"cluster-{number:064x}.json.gz").write_bytes(b"")
        os.utime(tmp_path / "snapshots" / f"cluster-{number:064x}.json.gz", (number, number))
    (tmp_path / "cluster").write_bytes(listed(*services(1)))
    changed(run(tmp_path, nodes, then=[]))
    left = {path.name for path in (tmp_path / "snapshots").glob("cluster-*")}
    newest = {f"cluster-{number:064x}.json.gz" for number in range(4, 8)}
    assert left == newest | {os.path.basename(result(tmp_path)["path"])}


def test_overlaps_end_the_play_unless_told_otherwise(nodes: dict[str, Node], tmp_path: Path) -> None:
    (tmp_path / "cluster").write_bytes(listed(*services(1), POOL))
    options = {"service_cidrs": ["10.96.0.0/12"], "then": []}
    said = failure(run(tmp_path, nodes, **options))
    text = "pool 10.96.0.0/16 (IPPool pods) is inside of service CIDR 10.96.0.0/12 (service_cidrs[0])"
    assert text in said
    warned = run(tmp_path, nodes, overlaps="warn", **options)
    assert changed(warned) == ONCE
    assert text in re.sub(r"\s+", " ", warned.stdout + warned.stderr)
    assert result(tmp_path)["overlaps"] == [text]
    assert changed(run(tmp_path, nodes, overlaps="ignore", **options)) == {"node-1": 1}  # the result, not the snapshot
    assert result(tmp_path)["overlaps"] == []


def test_objects_and_a_selection(nodes: dict[str, Node], tmp_path: Path) -> None:
    done = run(tmp_path, nodes, "--check", objects=services(3), select={"Service": "metadata.name != 'web-1'"})
    assert changed(done)["node-2"] == 1
    assert result(tmp_path)["counts"] == {"Service": 2}


def test_exactly_one_source(nodes: dict[str, Node], tmp_path: Path) -> None:
    assert "mutually exclusive" in failure(run(tmp_path, nodes, objects=[], file="cluster"))
    assert "one of the following is required" in failure(
        run_plays(tmp_path, [{"hosts": "all", "tasks": [{SNAPSHOT: {"dest": str(tmp_path)}}]}], nodes))


def test_what_objects_say_is_never_a_template(nodes: dict[str, Node], tmp_path: Path) -> None:
    evil = "{{ lookup('ansible.builtin.pipe', 'touch " + str(tmp_path / "pwned") + "') }}"
    for name in ({"name": evil}, {"namespace": evil}):
        (tmp_path / "cluster").write_bytes(listed(*services(3), service(**name)))
        said = failure(run(tmp_path, nodes, then=[]))
        assert "lookup('ansible.builtin.pipe'" in said
        assert "of an object" in said
    assert not (tmp_path / "pwned").exists()


def test_a_tampered_snapshot_is_refused(nodes: dict[str, Node], tmp_path: Path) -> None:
    (tmp_path / "cluster").write_bytes(listed(*services(1)))
    changed(run(tmp_path, nodes, then=[]))
    path = Path(result(tmp_path)["path"])
    path.write_bytes(gzip.compress(listed(*services(2))))
    done = run_plays(tmp_path, [{"hosts": "all", "tasks": [{MODULE: {"cluster": str(path)}}]}], nodes)
    assert "is not the snapshot that its name says" in failure(done)


def test_ten_thousand_services(nodes: dict[str, Node], tmp_path: Path) -> None:
    slices = [endpoint_slice(f"10.{128 + (number >> 16)}.{number >> 8 & 255}.{number & 255}",
                             name=f"web-{number}", service_name=f"web-{number}")
              for number in range(10000)]
    (tmp_path / "cluster").write_bytes(listed(*services(10000), *slices))
    done = run(tmp_path, {"node-1": nodes["node-1"]}, "--check")
    assert changed(done) == {"node-1": 3}
    assert result(tmp_path)["services"] == 10000
    assert os.path.getsize(result(tmp_path)["path"]) < 2_000_000


def test_the_examples_of_the_page_are_valid() -> None:
    for example in yaml.safe_load(cluster_snapshot.EXAMPLES):
        name = next(key for key in example if key.startswith("metal.nodenet."))
        if name == SNAPSHOT:
            assert set(example[name]) <= set(yaml.safe_load(cluster_snapshot.DOCUMENTATION)["options"])
