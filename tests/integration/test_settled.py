# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A question that was answered with "nothing to do" is answered from memory, and from nothing else but the same."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from support.builders import endpoint_slice, service
from support.node import Node

#: The ranges of one family only, which is worth a warning.
CLUSTER: dict[str, Any] = {
    "services": [service(), service(name="lb", clusterIP="10.96.0.20", type="LoadBalancer",
                                    loadBalancerSourceRanges=["2001:db8::/32"])],
    "endpoint_slices": [endpoint_slice("10.244.1.5"), endpoint_slice("10.244.1.6", name="lb", service_name="lb")],
}
CLUSTER["services"][1]["status"] = {"loadBalancer": {"ingress": [{"ip": "198.51.100.5"}]}}


@pytest.fixture
def folder(tmp_path: Path) -> str:
    (tmp_path / "cache").mkdir()
    return str(tmp_path)


def ask(node: Node, folder: str, **arguments: Any) -> dict[str, Any]:
    return dict(node.module(state_dir=folder, backend=node.backend, **arguments))


def settle(node: Node, folder: str, **arguments: Any) -> dict[str, Any]:
    """Apply, and find nothing to do; what that second run said."""
    ask(node, folder, **arguments)
    result = ask(node, folder, check=True, **arguments)
    assert (result["changed"], from_memory(result)) == (False, False)
    return result


def from_memory(result: dict[str, Any]) -> bool:
    assert not result.get("failed"), result["msg"]
    return "render" not in result["timings"]


@pytest.mark.parametrize("check", [True, False])
def test_the_third_run_renders_nothing_and_says_the_same(kube_node: Node, folder: str, check: bool) -> None:
    second = settle(kube_node, folder, **CLUSTER)
    third = ask(kube_node, folder, check=check, **CLUSTER)
    assert from_memory(third)
    assert second["warnings"], "this cluster was to have a warning"
    assert {key: third[key] for key in third if key != "timings"} == {
        key: second[key] for key in second if key != "timings"}


def _flush(node: Node) -> None:
    node.iptables("-t", "nat", "-F", "KUBE-SERVICES")


def _foreign(node: Node) -> None:
    node.iptables("-t", "filter", "-A", "INPUT", "-s", "2001:db8::5", "-j", "ACCEPT", family="ipv6")


def _address(node: Node) -> None:
    node.add_interface("eth9", ["192.0.2.77/24"])


@pytest.mark.parametrize(("happens", "changed"), [(_flush, True), (_foreign, False), (_address, False)])
def test_what_happens_on_the_node_is_noticed(kube_node: Node, folder: str, happens: Callable[[Node], None],
                                             changed: bool) -> None:
    settle(kube_node, folder, **CLUSTER)
    happens(kube_node)
    for check in (True, False):
        result = ask(kube_node, folder, check=check, **CLUSTER)
        assert result["changed"] == changed
        if check:
            assert not from_memory(result)
    assert not ask(kube_node, folder, **CLUSTER)["changed"]


@pytest.mark.parametrize("other", [
    {"masquerade_all": True, "detect_local": {"cidrs": ["10.244.0.0/16"]}}, {"layout": "1.30"},
    {"services": CLUSTER["services"][:1], "endpoint_slices": CLUSTER["endpoint_slices"][:1]},
    {"node_name": "another"}, {"state": "absent"},
], ids=str)
def test_another_question_is_another_answer(kube_node: Node, folder: str, other: dict[str, Any]) -> None:
    settle(kube_node, folder, **CLUSTER)
    asked = {**CLUSTER, **other}
    if other == {"state": "absent"}:
        asked = other
    result = ask(kube_node, folder, check=True, **asked)
    assert not from_memory(result)
    assert result["changed"] == ask(kube_node, f"{folder}/none", check=True, **asked)["changed"]


def test_where_a_node_has_no_cache_nothing_is_written(kube_node: Node, tmp_path: Path) -> None:
    folder = str(tmp_path / "none")
    ask(kube_node, folder, **CLUSTER)
    for _round in range(2):
        assert not from_memory(ask(kube_node, folder, check=True, **CLUSTER))
    assert not (tmp_path / "none").exists()


@pytest.mark.parametrize("text", ["", "{", "[]", '{"key": 1}'])
def test_a_damaged_memory_is_none(nft_node: Node, folder: str, text: str) -> None:
    settle(nft_node, folder, **CLUSTER)
    (Path(folder) / "cache/settled-kube_nat_chains.json").write_text(text)
    assert not from_memory(ask(nft_node, folder, check=True, **CLUSTER))
    assert from_memory(ask(nft_node, folder, check=True, **CLUSTER))


def test_a_document_that_is_missing_is_written_in_full(nft_node: Node, folder: str) -> None:
    settle(nft_node, folder, **CLUSTER)
    assert ask(nft_node, folder, remember=True, **CLUSTER)["remembered"]
    document = json.loads((Path(folder) / "applied/kube_nat_chains.json").read_text())
    assert document["witnesses"]["rules"]
    again = ask(nft_node, folder, remember=True, **CLUSTER)
    assert (from_memory(again), again["changed"], again["remembered"]) == (True, False, False)
