# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster read from an API server over HTTP, with the faults that servers have: all of it, or an error."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.modules import cluster_snapshot
from ansible_collections.metal.nodenet.plugins.plugin_utils.api_source import DEFAULT_KINDS, KINDS, read_api
from support.api_server import TOKEN, ApiServer, api_server
from support.builders import endpoint_slice, service
from support.plays import changed, failure, run_plays

SERVICES, NODES = "/api/v1/services", "/api/v1/nodes"
CRD, V3 = "/apis/crd.projectcalico.org/v1", "/apis/projectcalico.org/v3"


def bare(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    """An item as it is in a list, which says kind and version once."""
    return {"metadata": {"name": name, "managedFields": [{"manager": "kubectl"}]}, **fields}


def as_item(item: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in item.items() if key not in ("kind", "apiVersion")}


def lists() -> dict[str, tuple[str, str, list[dict[str, Any]]]]:
    return {
        SERVICES: ("v1", "Service", [as_item(service(f"web-{number}")) for number in range(7)]),
        "/apis/discovery.k8s.io/v1/endpointslices": (
            "discovery.k8s.io/v1", "EndpointSlice", [as_item(endpoint_slice("10.244.1.5"))]),
        NODES: ("v1", "Node", [bare("Node", "node-1")]),
        "/api/v1/pods": ("v1", "Pod", [bare("Pod", "a")]),
    }


@pytest.fixture
def server() -> Iterator[ApiServer]:
    with api_server(lists()) as one:
        yield one


def options(server: ApiServer, **changes: Any) -> dict[str, Any]:
    return {"host": server.host, "api_key": TOKEN, "kinds": list(DEFAULT_KINDS), "page_size": 3, "timeout": 5,
            **changes}


def names(items: list[Any], kind: str) -> list[str]:
    return [item["metadata"]["name"] for item in items if item["kind"] == kind]


def test_every_page_is_read_and_what_a_cluster_may_lack_is_none(server: ApiServer) -> None:
    address, items = read_api(options(server))
    assert address == server.host
    assert names(items, "Service") == [f"web-{number}" for number in range(7)]
    assert [asked for asked in server.asked if asked[0] == SERVICES] == [
        (SERVICES, "3", ""), (SERVICES, "3", "3"), (SERVICES, "3", "6")]
    assert {item["kind"]: item["apiVersion"] for item in items} == {
        "Service": "v1", "EndpointSlice": "discovery.k8s.io/v1", "Node": "v1"}
    assert not any("managedFields" in item["metadata"] for item in items)


@pytest.mark.parametrize(("place", "version"), [(CRD, "crd.projectcalico.org/v1"), (V3, "projectcalico.org/v3")])
def test_pools_are_found_where_they_are_served(server: ApiServer, place: str, version: str) -> None:
    server.lists[place + "/ippools"] = (version, "IPPool", [bare("IPPool", "pods", spec={"cidr": "10.244.0.0/16"})])
    _address, items = read_api(options(server))
    assert [item["apiVersion"] for item in items if item["kind"] == "IPPool"] == [version]


def test_pods_are_read_where_they_are_asked_for(server: ApiServer) -> None:
    assert names(read_api(options(server, kinds=["Service", "Pod"]))[1], "Pod") == ["a"]
    assert [path for path, _limit, _token in server.asked if path == "/api/v1/pods"]


def test_a_list_that_expired_under_way_begins_anew(server: ApiServer) -> None:
    server.faults[SERVICES] = [None, 410, None, None, 410]
    _address, items = read_api(options(server))
    assert names(items, "Service") == [f"web-{number}" for number in range(7)]
    server.faults[SERVICES] = [None, 410] * 3
    with pytest.raises(ClusterFileError, match=r"expired under way 3 times \(410\); give a larger page_size"):
        read_api(options(server))


@pytest.mark.parametrize(("path", "faults", "message"), [
    pytest.param(SERVICES, [400], "api/v1/services: 400 fault 400 of the test", id="400"),
    pytest.param(SERVICES, [403], "403 fault 403 of the test. All of Service is read or nothing", id="403"),
    pytest.param(SERVICES, [None, 403], "403 fault 403", id="403 in the middle"),
    pytest.param(SERVICES, [500], "500 fault 500", id="500"),
    pytest.param(SERVICES, [None, None, 500], "500 fault 500", id="500 on the last page"),
    pytest.param(SERVICES, [410], "410 fault 410", id="410 on the first page"),
    pytest.param(SERVICES, [404], r"does not serve Service at /api/v1/services \(404\)", id="404"),
    pytest.param(SERVICES, [None, 404], "404 .* in the middle of the list", id="404 in the middle"),
    pytest.param(SERVICES, ["cut", "cut", "cut", "cut"], "did not arrive in full|is not whole JSON", id="cut"),
    pytest.param(SERVICES, [None, "cut"], "did not arrive in full|is not whole JSON", id="cut in the middle"),
    pytest.param(SERVICES, ["half"], "the answer is not whole JSON", id="half of an answer"),
    pytest.param(CRD + "/ippools", [403], "403 fault 403 .* leave it out of kinds", id="403 for what may be missing"),
    pytest.param(CRD + "/ippools", [503], "503 fault 503", id="503 for what may be missing"),
])
def test_anything_unusual_ends_the_read(server: ApiServer, path: str, faults: list[Any], message: str) -> None:
    server.faults[path] = faults
    with pytest.raises(ClusterFileError, match=message) as error:
        read_api(options(server))
    assert TOKEN not in str(error.value)
    assert server.host in str(error.value)


@pytest.mark.parametrize(("answer", "message"), [
    (("v1", "Pod", []), "the answer is a 'PodList', not a ServiceList"),
    (("v1", "Status", []), "the answer is a 'StatusList'"),
])
def test_an_answer_of_another_kind_is_refused(server: ApiServer, answer: Any, message: str) -> None:
    server.lists[SERVICES] = answer
    with pytest.raises(ClusterFileError, match=message):
        read_api(options(server))


def test_who_is_not_let_in_and_who_is_not_there(server: ApiServer) -> None:
    with pytest.raises(ClusterFileError, match="refused.*401") as error:
        read_api(options(server, api_key="another-secret"))
    assert "another-secret" not in str(error.value)
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with pytest.raises(ClusterFileError, match="there is no way to the server"):
            read_api(options(server, host=f"http://127.0.0.1:{nobody.getsockname()[1]}"))


def test_every_kind_of_the_option_can_be_read() -> None:
    kinds = yaml.safe_load(cluster_snapshot.DOCUMENTATION)["options"]["api"]["suboptions"]["kinds"]
    assert set(kinds["choices"]) == set(KINDS)
    assert kinds["default"] == list(DEFAULT_KINDS)


# --- in a play ---


def kubeconfig(server: ApiServer) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": server.host}}],
            "users": [{"name": "test", "user": {"token": TOKEN}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}]}


@pytest.mark.parametrize("how", ["token", "kubeconfig as a file", "kubeconfig inline"])
def test_a_snapshot_of_an_api(server: ApiServer, tmp_path: Path, how: str) -> None:
    (tmp_path / "kubeconfig").write_text(yaml.safe_dump(kubeconfig(server)))
    api = {"token": {"host": server.host, "api_key": TOKEN},
           "kubeconfig as a file": {"kubeconfig": str(tmp_path / "kubeconfig"), "context": "test"},
           "kubeconfig inline": {"kubeconfig": kubeconfig(server)}}[how]
    task = {"metal.nodenet.cluster_snapshot": {"api": {**api, "page_size": 2}, "dest": str(tmp_path / "snapshots")},
            "register": "snapshot"}
    (tmp_path / "tmp").mkdir()
    done = run_plays(tmp_path, [{"hosts": "localhost", "tasks": [
        task, {"ansible.builtin.debug": {"msg": "{{ snapshot | to_json }}"}}]}], {}, "-vvvv",
        environment={"TMPDIR": str(tmp_path / "tmp")})
    assert changed(done) == {"localhost": 1}
    assert '"services": 7' in done.stdout.replace("\\", "")
    assert TOKEN not in done.stdout + done.stderr
    assert len([asked for asked in server.asked if asked[0] == SERVICES]) == 4
    assert list((tmp_path / "tmp").iterdir()) == [], "the client's files stayed"
    server.faults[NODES] = [500]
    refused = run_plays(tmp_path, [{"hosts": "localhost", "tasks": [task]}], {}, "-vvvv")
    assert "/api/v1/nodes: 500" in failure(refused)
    assert TOKEN not in refused.stdout + refused.stderr
    assert json.loads((tmp_path / "snapshots" / "last.json").read_text())["services"][0] == "default/web-0"
