# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is cut out of a cluster, and that equal clusters are equal bytes."""

from __future__ import annotations

import gzip
import json
import multiprocessing
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError, items_in
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.reduce import packed, reduce_items
from ansible_collections.metal.nodenet.plugins.plugin_utils.cluster_source import load_items
from ansible_collections.metal.nodenet.plugins.plugin_utils.reduction import Reduced, reduced
from support.builders import endpoint_slice, service

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "web", "namespace": "shop"},
       "spec": {"nodeName": "node-1", "containers": [{"image": "secret"}]}, "status": {"podIPs": [{"ip": "10.0.0.1"}]}}
FLOATING = {"cni.projectcalico.org/floatingIPs": '["198.51.100.1"]'}


def pod(**annotations: Any) -> dict[str, Any]:
    return {**POD, "metadata": {**POD["metadata"], "annotations": annotations}}  # type: ignore[dict-item]


def test_what_nobody_reads_goes() -> None:
    noisy = service()
    noisy["metadata"] |= {"managedFields": [{}], "annotations": {"kubectl.kubernetes.io/last-applied": "x"}}
    [kept] = reduce_items([{"kind": "Secret", "data": {"password": "x"}}, noisy])
    assert set(kept["metadata"]) == {"name", "namespace", "labels", "annotations"}
    assert kept["metadata"]["annotations"] == {}


def test_only_pods_with_floating_ips_stay() -> None:
    kept = reduce_items([POD, pod(other="x"), pod(**FLOATING, other="x")])
    assert kept == [{**POD, "metadata": {"name": "web", "namespace": "shop", "annotations": FLOATING},
                     "spec": {"nodeName": "node-1"}}]


def test_what_is_malformed_stays_to_be_named() -> None:
    broken = {**POD, "metadata": {"name": "web", "annotations": "x"}}
    kept = reduce_items([broken, "text", {"kind": "Node", "metadata": 3}])
    assert kept[:2] == ["text", {"kind": "Node", "metadata": 3}]
    assert kept[2]["metadata"]["annotations"] == "x"


def test_the_order_and_a_second_reduction_change_nothing() -> None:
    items = [endpoint_slice("10.0.0.1"), service("b"), service("a"), service("a", namespace="other"), pod(**FLOATING)]
    data = packed(reduce_items(items))
    assert packed(reduce_items(reversed(items))) == data
    assert packed(reduce_items(items_in("again", data))) == data


# --- once per run ---


def write(path: Path, *items: Any) -> str:
    path.write_text(json.dumps({"kind": "List", "items": items}))
    return str(path)


def test_a_file_is_reduced_once_and_again_when_it_was_replaced(tmp_path: Path) -> None:
    said: list[str] = []
    source = write(tmp_path / "cluster.json", service())
    first = reduced(source, str(tmp_path), said.append)
    assert reduced(source, str(tmp_path), said.append) == first
    assert len(said) == 1
    assert os.stat(first.path).st_mode & 0o777 == 0o600
    write(tmp_path / "other.json", service("other"))
    os.replace(tmp_path / "other.json", source)
    assert reduced(source, str(tmp_path), said.append).sha256 != first.sha256
    assert len(said) == 2


def _worker(source: str, folder: str, queue: Any) -> None:
    said: list[str] = []
    queue.put((reduced(source, folder, said.append), len(said)))


def test_forks_wait_for_the_one_that_reduces(tmp_path: Path) -> None:
    source = write(tmp_path / "cluster.json", *(service(f"web-{number}") for number in range(2000)))
    fork = multiprocessing.get_context("fork")
    queue: Any = fork.SimpleQueue()
    workers = [fork.Process(target=_worker, args=(source, str(tmp_path), queue)) for _one in range(6)]
    for worker in workers:
        worker.start()
    outcomes: list[tuple[Reduced, int]] = [queue.get() for _one in workers]
    for worker in workers:
        worker.join()
    assert len({result for result, _count in outcomes}) == 1
    assert sum(count for _result, count in outcomes) == 1


def test_a_broken_file_is_read_once_and_refused_every_time(tmp_path: Path) -> None:
    said: list[str] = []
    (tmp_path / "cluster.json").write_text('{"kind": "List"')
    for _one in range(2):
        with pytest.raises(ClusterFileError, match="is not whole JSON"):
            reduced(str(tmp_path / "cluster.json"), str(tmp_path), said.append)
    assert len(said) == 1


# --- YAML says more than JSON ---


def _as(text: str) -> Callable[[Path], list[Any]]:
    def load(folder: Path) -> list[Any]:
        (folder / "cluster.yml").write_bytes(gzip.compress(text.encode()))
        return load_items(str(folder / "cluster.yml"))
    return load


def test_a_date_in_yaml_is_a_string_as_in_json(tmp_path: Path) -> None:
    [item] = _as("kind: Pod\nmetadata: {name: a, deletionTimestamp: 2026-01-01T00:00:00Z}\n")(tmp_path)
    assert item["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"


def test_a_key_that_is_no_string_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ClusterFileError, match="key .yes. is not a string"):
        _as("kind: Service\nmetadata: {labels: {yes: x}}\n")(tmp_path)


def test_aliases_that_stand_for_billions_are_refused_at_once(tmp_path: Path) -> None:
    lines = ["kind: List", "a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    lines += [f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]" for before, name in zip("abcdefghi", "bcdefghij")]
    with pytest.raises(ClusterFileError, match="aliases would make [0-9]+ characters"):
        _as("\n".join([*lines, "items: []", ""]))(tmp_path)


def test_aliases_of_one_long_text_are_refused_where_they_would_make_gigabytes(tmp_path: Path) -> None:
    text = f"kind: Service\na: &a {'x' * 100_000}\nb: [{'*a, ' * 10_000}]\n"
    with pytest.raises(ClusterFileError, match="aliases would make 10[0-9]+ characters"):
        _as(text)(tmp_path)


def test_aliases_as_programs_write_them_are_read(tmp_path: Path) -> None:
    labels = {"app": "web"}
    services = [{"kind": "Service", "metadata": {"name": f"web-{number}", "labels": labels}} for number in range(500)]
    text = yaml.safe_dump({"kind": "List", "items": services})
    assert "*id001" in text
    assert _as(text)(tmp_path) == services


def test_yaml_that_holds_itself_is_refused(tmp_path: Path) -> None:
    (tmp_path / "cluster.yml").write_text("kind: Service\nmetadata: {name: a, labels: &x {a: *x}}\n")
    with pytest.raises(ClusterFileError):
        reduced(str(tmp_path / "cluster.yml"), str(tmp_path), lambda _text: None)


def test_yaml_reads_as_pyyaml_does(tmp_path: Path) -> None:
    text = ("kind: Service\nmetadata: {name: a, labels: {x: 'yes', y: \"0x10\", z: 2026-01-01}}\n"
            "spec: {i: [1, -2, 0o17, 0x10], f: [1.5, 1e3], b: [yes, false], n: [~, null]}\n"
            "again: {k: &s {deep: text}, l: *s}\nlong: |-\n  two\n  lines\n")
    expected = yaml.safe_load(text.replace("2026-01-01", "'2026-01-01'"))
    assert _as(text)(tmp_path) == [expected]


@pytest.mark.parametrize("text", [
    "kind: !!python/name:os.system x\n", "kind: Pod\n<<: {a: 1}\n", "kind: !!binary aGk=\n",
    "kind: Pod\nspec: .inf\n", "kind: Pod\nspec: {a: .nan}\n"])
def test_what_json_cannot_say_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ClusterFileError, match="is not whole YAML"):
        _as(text)(tmp_path)
