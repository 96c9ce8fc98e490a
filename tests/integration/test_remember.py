# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a node remembers of a run, the plan that a run may be held to, and runs that a guard keeps out."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import StateDir
from ansible_collections.metal.nodenet.plugins.module_utils.node.lock import locked
from ansible_collections.metal.nodenet.plugins.modules import calico_masq
from support.builders import endpoint_slice, service
from support.calico import MASQ
from support.node import Node
from support.shims import Shims

CLUSTER: dict[str, Any] = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5")]}
LARGER: dict[str, Any] = {"services": [service(), service(name="new", clusterIP="10.96.0.11")],
                          "endpoint_slices": [endpoint_slice("10.244.1.5"),
                                              endpoint_slice("10.244.1.9", name="n", service_name="new")]}


def files(folder: Path) -> dict[str, bytes]:
    """Every file below a folder and its content, the lock left out."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*"))
            if path.is_file() and path.name != "lock"}


def arm(folder: Path, run_id: str = "run-1", seconds: float = 600) -> None:
    """A guard as ``commit_guard`` would leave it."""
    StateDir(str(folder)).write_json({"run_id": run_id, "since": time.time(), "deadline": time.time() + seconds,
                                      "timer": "process", "agent": "", "controller": "tests"}, "guard", "armed.json")


def test_a_run_is_remembered_and_what_is_remembered_is_predicted(kube_node: Node, tmp_path: Path) -> None:
    options = {**CLUSTER, "state_dir": str(tmp_path / "state"), "remember": True}
    assert kube_node.module(check=True, **options)["remembered"]
    assert not (tmp_path / "state").exists()
    assert kube_node.four_ways(**options, backend=kube_node.backend)["remembered"]
    document = json.loads((tmp_path / "state/applied/kube_nat_chains.json").read_text())
    assert document["module"] == "kube_nat_chains"
    assert document["params"]["services"] == CLUSTER["services"]
    assert not {"remember", "guard", "expect_plan", "state_dir"} & document["params"].keys()
    assert (tmp_path / "state").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "state/applied/kube_nat_chains.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("spoil", [lambda folder: folder.chmod(0o777), lambda folder: folder.chmod(0o770),
                                   lambda folder: os.chown(folder, 1234, 1234)])
def test_a_state_directory_that_others_can_write_to_is_refused(nft_node: Node, tmp_path: Path,
                                                               spoil: Callable[[Path], None]) -> None:
    state = tmp_path / "state"
    options = {**CLUSTER, "state_dir": str(state), "remember": True}
    nft_node.module(**options)
    before, kept = nft_node.saves(), files(state)
    spoil(state)
    for check in (True, False):
        result = nft_node.module(check=check, **{**options, **LARGER})
        assert result["failed"]
        assert f"state_dir: {state} belongs to user" in result["msg"]
    assert nft_node.saves() == before
    assert files(state) == kept


def test_other_options_are_a_change_even_where_the_rules_stay(nft_node: Node, tmp_path: Path) -> None:
    options = {**CLUSTER, "state_dir": str(tmp_path), "remember": True}
    nft_node.module(**options)
    for check in (True, False):
        result = nft_node.module(check=check, **options, takeover=True)
        assert (result["changed"], result["remembered"], result["diff"]) == (True, True, [])
    assert not nft_node.module(**options, takeover=True)["changed"]


def test_absent_forgets(nft_node: Node, tmp_path: Path) -> None:
    nft_node.module(**CLUSTER, state_dir=str(tmp_path), remember=True)
    nft_node.module(module=calico_masq, **MASQ, state_dir=str(tmp_path), remember=True)
    result = nft_node.four_ways(state="absent", state_dir=str(tmp_path), remember=True)
    assert result["remembered"]
    assert set(files(tmp_path)) == {"applied/calico_masq.json"}


def test_nothing_is_remembered_unless_told_so_and_no_directory_is_made(nft_node: Node, tmp_path: Path) -> None:
    assert "remembered" not in nft_node.module(**CLUSTER, state_dir=str(tmp_path / "state"))
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize("packed", [False, True])
def test_a_cluster_file_is_kept_under_the_name_of_its_content(nft_node: Node, tmp_path: Path, packed: bool) -> None:
    text = json.dumps({"kind": "List", "items": [*CLUSTER["services"], *CLUSTER["endpoint_slices"]]}).encode()
    source = tmp_path / "cluster"
    source.write_bytes(gzip.compress(text) if packed else text)
    options = {"cluster": str(source), "remote_src": True, "state_dir": str(tmp_path / "state"), "remember": True}
    nft_node.four_ways(**options)
    document = json.loads((tmp_path / "state/applied/kube_nat_chains.json").read_text())
    kept = tmp_path / "state/cache" / (document["input"] + ".json.gz")
    assert document["params"]["cluster"] == str(kept)
    assert hashlib.sha256(kept.read_bytes()).hexdigest() == document["input"]
    assert gzip.decompress(kept.read_bytes()) == text


def test_a_run_that_fails_is_not_remembered(nft_node: Node, tmp_path: Path, shims: Shims) -> None:
    options = {"state_dir": str(tmp_path / "state"), "remember": True}
    nft_node.module(**CLUSTER, **options)
    before = files(tmp_path / "state")
    for name in ("iptables", "iptables-nft"):
        shims.add(name + "-restore", "echo no >&2; exit 1")
    assert nft_node.module(**LARGER, **options, environment=shims.environment)["failed"]
    assert files(tmp_path / "state") == before


@pytest.mark.parametrize("content", ["", "{", "[]", '{"version": 9}', '{"version": 1, "module": "other"}',
                                     '{"version": 1, "module": "kube_nat_chains", "params": 1}'])
def test_a_damaged_document_is_an_error_that_names_it(nft_node: Node, tmp_path: Path, content: str) -> None:
    (tmp_path / "applied").mkdir()
    (tmp_path / "applied/kube_nat_chains.json").write_text(content)
    result = nft_node.module(**CLUSTER, state_dir=str(tmp_path), remember=True)
    assert result["failed"]
    assert str(tmp_path / "applied/kube_nat_chains.json") in result["msg"]


def test_plan_sha256_stands_for_the_plan_and_not_for_how_much_is_shown(kube_node: Node) -> None:
    one = kube_node.module(check=True, **CLUSTER, backend=kube_node.backend)["plan_sha256"]
    assert len(one) == 64
    assert kube_node.module(check=True, **CLUSTER, diff_limit=1, backend=kube_node.backend)["plan_sha256"] == one
    assert kube_node.module(check=True, **LARGER, backend=kube_node.backend)["plan_sha256"] != one
    assert kube_node.module(**CLUSTER, backend=kube_node.backend)["plan_sha256"] == one
    assert kube_node.module(**CLUSTER)["plan_sha256"] == ""


def test_plan_sha256_knows_what_was_there_before_and_sets(nft_node: Node) -> None:
    empty = nft_node.module(check=True, module=calico_masq, **MASQ)["plan_sha256"]
    nft_node.iptables("-t", "nat", "-A", "POSTROUTING", "-s", "10.9.0.0/16", "-j", "MASQUERADE")
    assert nft_node.module(check=True, module=calico_masq, **MASQ)["plan_sha256"] != empty
    nft_node.module(module=calico_masq, **MASQ)
    nft_node.exec("ipset", "del", "cali40masq-ipam-pools", "10.244.0.0/16")
    assert nft_node.module(check=True, module=calico_masq, **MASQ)["plan_sha256"]


def test_a_run_that_is_not_the_planned_one_is_refused(kube_node: Node) -> None:
    planned = kube_node.module(check=True, **CLUSTER, backend=kube_node.backend)["plan_sha256"]
    before = kube_node.saves()
    for check in (True, False):
        result = kube_node.module(check=check, **LARGER, expect_plan=planned, backend=kube_node.backend)
        assert result["failed"]
        assert "changed since the plan" in result["msg"]
        assert planned in result["msg"]
    assert kube_node.saves() == before
    assert kube_node.module(**CLUSTER, expect_plan=planned, backend=kube_node.backend)["changed"]
    # Nothing to do is always fine; an empty plan allows nothing else.
    assert not kube_node.module(**CLUSTER, expect_plan=planned).get("failed")
    assert kube_node.module(**LARGER, expect_plan="")["failed"]


def test_under_a_guard_documents_wait_and_the_write_is_marked(nft_node: Node, tmp_path: Path) -> None:
    options = {"state_dir": str(tmp_path), "remember": True}
    nft_node.module(**CLUSTER, **options)
    applied = (tmp_path / "applied/kube_nat_chains.json").read_bytes()
    arm(tmp_path)
    assert not nft_node.module(**CLUSTER, **options, guard="run-1")["changed"]
    assert not (tmp_path / "guard/written.json").exists()
    assert not (tmp_path / "pending").exists()
    nft_node.four_ways(**LARGER, **options, guard="run-1")
    assert (tmp_path / "guard/written.json").exists()
    assert (tmp_path / "applied/kube_nat_chains.json").read_bytes() == applied
    assert (tmp_path / "pending/kube_nat_chains.json").exists()
    nft_node.four_ways(state="absent", **options, guard="run-1")
    tombstone = json.loads((tmp_path / "pending/kube_nat_chains.json").read_text())
    assert tombstone == {"version": 1, "module": "kube_nat_chains", "removed": True}
    assert (tmp_path / "applied/kube_nat_chains.json").read_bytes() == applied


@pytest.mark.parametrize(("armed", "seconds", "given", "words"), [
    ("run-1", 600, None, ["run-1", "commit_guard", "tests", "until"]),
    ("run-1", 600, "run-2", ["run-1", "rolled_back"]),
    ("run-1", -1, "run-1", ["run-1", "over"]),
    (None, 0, "run-1", ["run-1", "no guard armed"]),
    ("run-1", 600, "../x", ["../x", "run id"]),
])
def test_a_run_is_kept_out_by_the_guard_of_another(nft_node: Node, tmp_path: Path, armed: str | None, seconds: float,
                                                   given: str | None, words: list[str]) -> None:
    nft_node.module(**CLUSTER)
    before = nft_node.saves()
    if armed:
        arm(tmp_path, armed, seconds)
    arguments = {"state_dir": str(tmp_path), "remember": True, **({"guard": given} if given else {})}
    result = nft_node.module(**LARGER, **arguments)
    assert result["failed"]
    for word in words:
        assert word in result["msg"]
    assert nft_node.saves() == before
    assert not {"applied", "pending"} & {path.name for path in tmp_path.iterdir()}


def test_check_mode_is_kept_out_by_nobody(nft_node: Node, tmp_path: Path) -> None:
    arm(tmp_path)
    before = files(tmp_path)
    with locked(StateDir(str(tmp_path)), "a test"):
        assert nft_node.module(check=True, **CLUSTER, state_dir=str(tmp_path), remember=True)["changed"]
    assert files(tmp_path) == before


def test_a_run_waits_for_another_writer(nft_node: Node, tmp_path: Path) -> None:
    let_go = tmp_path / "let-go"
    with subprocess.Popen(["flock", tmp_path / "lock", "sh", "-c", 'echo; sleep 1; echo >"$0"', let_go],
                          stdout=subprocess.PIPE) as holder:
        assert holder.stdout
        holder.stdout.readline()
        assert not let_go.exists()
        assert nft_node.module(**CLUSTER, state_dir=str(tmp_path))["changed"]
        assert let_go.exists()
