# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster file on its way to the nodes: reduced once, sent once, kept by content, also in check mode."""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from support.builders import endpoint_slice, service
from support.node import Node, node
from support.plays import Done, changed, failure, run_plays, state_dir

MODULE = "metal.nodenet.kube_nat_chains"


def write_cluster(folder: Path, address: str = "10.244.1.5") -> None:
    items = [service(), endpoint_slice(address)]
    (folder / "cluster.json").write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": items}))


def run(folder: Path, nodes: dict[str, Node], *flags: str, tasks: int = 1, arguments: dict[str, Any] | None = None,
        **variables: Any) -> Done:
    call = {MODULE: {"cluster": "cluster.json", "node_name": "node-1", **(arguments or {})}}
    return run_plays(folder, [{"hosts": "all", "tasks": [call] * tasks}], nodes, "-vv", *flags, **variables)


def said(done: Done) -> tuple[int, int, int]:
    """How often the file was reduced, sent, and found on a node."""
    reduced, sent, there = (len(re.findall(text, done.stdout)) for text in (
        "nodenet: reducing ", r"nodenet: [0-9a-f]{64}\.json\.gz was sent", r"nodenet: [0-9a-f]{64}\.json\.gz is there"))
    return reduced, sent, there


def copies(folder: Path, host: str = "node-1") -> list[Path]:
    """The copies on the node, oldest first."""
    cache = state_dir(folder, host) / "cache"
    return sorted(cache.glob("*.json.gz"), key=lambda path: path.stat().st_mtime_ns) if cache.exists() else []


def test_a_second_run_sends_nothing(nft_node: Node, tmp_path: Path) -> None:
    write_cluster(tmp_path)
    first = run(tmp_path, {"node-1": nft_node})
    assert changed(first) == {"node-1": 1}
    assert said(first) == (1, 1, 0)
    [copy] = copies(tmp_path)
    before = copy.stat()
    assert copy.name == hashlib.sha256(copy.read_bytes()).hexdigest() + ".json.gz"
    assert (before.st_mode & 0o777, copy.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    second = run(tmp_path, {"node-1": nft_node})
    assert changed(second) == {"node-1": 0}
    assert said(second) == (1, 0, 1)
    assert (copy.stat().st_ino, copy.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_the_same_objects_in_another_order_and_with_other_noise_are_not_sent_again(nft_node: Node,
                                                                                   tmp_path: Path) -> None:
    write_cluster(tmp_path)
    changed(run(tmp_path, {"node-1": nft_node}))
    document = json.loads((tmp_path / "cluster.json").read_text())
    document["items"].reverse()
    document["items"][0]["metadata"]["resourceVersion"] = "4711"
    document["items"].append({"kind": "Pod", "metadata": {"name": "any"}, "spec": {}})
    (tmp_path / "cluster.json").write_text(json.dumps(document, indent=1))
    assert said(run(tmp_path, {"node-1": nft_node})) == (1, 0, 1)


def test_check_mode_works_where_the_file_is_not_yet(nft_node: Node, tmp_path: Path) -> None:
    write_cluster(tmp_path)
    before = nft_node.saves()
    planned = run(tmp_path, {"node-1": nft_node}, "--check")
    assert changed(planned) == {"node-1": 1}
    assert nft_node.saves() == before
    assert len(copies(tmp_path)) == 1
    assert [path.name for path in state_dir(tmp_path, "node-1").iterdir()] == ["cache"]
    applied = run(tmp_path, {"node-1": nft_node})
    assert (changed(applied), said(applied)) == ({"node-1": 1}, (1, 0, 1))


@pytest.mark.parametrize("damage", [b"", b"\x1f\x8bhalf of it", None], ids=["empty", "broken", "flipped"])
def test_a_damaged_copy_is_replaced(nft_node: Node, tmp_path: Path, damage: bytes | None) -> None:
    write_cluster(tmp_path)
    changed(run(tmp_path, {"node-1": nft_node}))
    [copy] = copies(tmp_path)
    right = copy.read_bytes()
    copy.write_bytes(right[:-1] + bytes([right[-1] ^ 1]) if damage is None else damage)
    done = run(tmp_path, {"node-1": nft_node})
    assert (changed(done), said(done)) == ({"node-1": 0}, (1, 1, 0))
    assert copy.read_bytes() == right


def test_old_copies_go_but_for_those_that_documents_name(nft_node: Node, tmp_path: Path) -> None:
    names = []
    for last in range(1, 6):
        write_cluster(tmp_path, f"10.244.1.{last}")
        changed(run(tmp_path, {"node-1": nft_node}))
        names.append(copies(tmp_path)[-1].name)
        if last == 1:
            documents = state_dir(tmp_path, "node-1") / "applied"
            documents.mkdir()
            (documents / "kube_nat_chains.json").write_text(json.dumps({"input": names[0].partition(".")[0]}))
    assert [path.name for path in copies(tmp_path)] == [names[0], names[3], names[4]]


def test_forks_share_one_reduction(tmp_path: Path) -> None:
    with ExitStack() as stack:
        nodes = {f"node-{number}": stack.enter_context(node("nft")) for number in range(1, 5)}
        write_cluster(tmp_path)
        first = run(tmp_path, nodes, "--check", "--forks", "4", tasks=2)
        assert set(changed(first).values()) == {2}
        assert said(first) == (1, 4, 4)
        again = run(tmp_path, nodes, "--check", "--forks", "4")
        assert said(again) == (1, 0, 4)
    assert len({path.name for name in nodes for path in copies(tmp_path, name)}) == 1


def test_pipelining_makes_no_difference(nft_node: Node, tmp_path: Path) -> None:
    write_cluster(tmp_path)
    assert said(run(tmp_path, {"node-1": nft_node}, ansible_pipelining=True)) == (1, 1, 0)
    assert said(run(tmp_path, {"node-1": nft_node}, ansible_pipelining=True)) == (1, 0, 1)


def test_without_a_state_directory_the_run_works_and_warns(nft_node: Node, tmp_path: Path) -> None:
    write_cluster(tmp_path)
    (tmp_path / "file").write_text("")
    for changes in (1, 0):
        done = run(tmp_path, {"node-1": nft_node}, arguments={"state_dir": str(tmp_path / "file" / "below")})
        assert (changed(done), said(done)) == ({"node-1": changes}, (1, 1, 0))
        assert "not kept on this node" in done.stdout + done.stderr


def test_a_relative_state_directory_is_refused(nft_node: Node, tmp_path: Path) -> None:
    write_cluster(tmp_path)
    assert "state_dir: 'state' is not the absolute path of a directory" in failure(
        run(tmp_path, {"node-1": nft_node}, arguments={"state_dir": "state"}))


def test_a_path_is_nothing_but_a_path_to_the_shell(nft_node: Node, tmp_path: Path) -> None:
    write_cluster(tmp_path)
    odd = tmp_path / "a b; touch `id` 'x'"
    for changes, expected in ((1, (1, 1, 0)), (0, (1, 0, 1))):
        done = run(tmp_path, {"node-1": nft_node}, arguments={"state_dir": str(odd)})
        assert (changed(done), said(done)) == ({"node-1": changes}, expected)
    assert len(list((odd / "cache").glob("*.gz"))) == 1


@pytest.mark.parametrize("state", ["absent", "gathered"])
def test_a_state_that_reads_no_cluster_is_sent_none(nft_node: Node, tmp_path: Path, state: str) -> None:
    done = run(tmp_path, {"node-1": nft_node}, arguments={"state": state, "cluster": "not-there.json"})
    assert (changed(done), said(done)) == ({"node-1": 0}, (0, 0, 0))


# --- results for reports ---


@pytest.fixture
def results(tmp_path: Path) -> Iterator[Path]:
    old = os.umask(0o022)
    yield tmp_path / "results"
    os.umask(old)


@pytest.mark.parametrize("hide", [False, True])
def test_the_result_is_kept_on_the_controller(nft_node: Node, tmp_path: Path, results: Path, hide: bool) -> None:
    write_cluster(tmp_path)
    done = run(tmp_path, {"node-1": nft_node}, "--check", "--diff", nodenet_results_dir=str(results),
               nodenet_results_hide_diff=hide)
    assert changed(done) == {"node-1": 1}
    path = results / "node-1" / "kube_nat_chains.json"
    kept = json.loads(path.read_text())
    assert (kept["changed"], "invocation" in kept) == (True, False)
    assert "default/web:http" in "".join(entry["after"] for entry in kept["diff"])
    assert ("--to-destination 10.244.1.5:80" in done.stdout) is not hide
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


def test_a_failure_is_kept_too_and_an_old_result_goes(nft_node: Node, tmp_path: Path, results: Path) -> None:
    write_cluster(tmp_path)
    path = results / "node-1" / "kube_nat_chains.json"
    run(tmp_path, {"node-1": nft_node}, "--check", nodenet_results_dir=str(results))
    failure(run(tmp_path, {"node-1": nft_node}, nodenet_results_dir=str(results), arguments={"lock_timeout": 0}))
    assert "lock_timeout" in json.loads(path.read_text())["msg"]
    failure(run(tmp_path, {"node-1": nft_node}, nodenet_results_dir=str(results), arguments={"cluster": "nowhere"}))
    assert not path.exists()
