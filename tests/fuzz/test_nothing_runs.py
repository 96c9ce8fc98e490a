# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects full of templates and commands on their whole way, with the real ansible-playbook: nothing of them is run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from fuzz import clusters
from support.api_server import TOKEN, api_server
from support.node import Node, node
from support.plays import Done, run_plays

KUBE, SNAPSHOT = "metal.nodenet.kube_nat_chains", "metal.nodenet.cluster_snapshot"


class Unsafe(str):
    """Written as ``!unsafe``: what Ansible asks people to write where data with braces is in a play."""


yaml.SafeDumper.add_representer(Unsafe, lambda dumper, text: dumper.represent_scalar("!unsafe", str(text)))


def attacks(marker: Path) -> list[str]:
    """Texts that would make the file if anything took them for a template or a command."""
    touch = f"touch {marker}"
    return [f"{{{{ lookup('ansible.builtin.pipe', '{touch}') }}}}",
            f"{{% set x = lookup('ansible.builtin.pipe', '{touch}') %}}{{{{ x }}}}", f"$({touch})", f"`{touch}`",
            f"; {touch} #",
            f"| {touch}", f"a\n{touch}\n", f"'; {touch}; '", f'"; {touch}; "', f"!unsafe {{{{ 7 * 7 }}}} $({touch})"]


def hidden(objects: list[Any], texts: list[str]) -> list[Any]:
    """The objects with the texts wherever an object may have any text."""
    for number, one in enumerate(objects):
        meta = one["metadata"]
        labels = {f"evil-{index}": text for index, text in enumerate(texts)}
        meta["labels"] = {**labels, **dict.fromkeys(texts, "x"), **meta.get("labels", {})}
        meta["annotations"] = {**labels, **meta.get("annotations", {})}
        one["evil"] = {text: [text] for text in texts}
        for endpoint in one.get("endpoints", ()):
            endpoint["nodeName"] = texts[number % len(texts)]
            endpoint["hints"] = {"forZones": [{"name": text} for text in texts]}
    return objects


def unsafe(value: Any) -> Any:
    """Every text of a value marked as data."""
    if isinstance(value, dict):
        return {Unsafe(key): unsafe(one) for key, one in value.items()}
    if isinstance(value, list):
        return [unsafe(one) for one in value]
    return Unsafe(value) if isinstance(value, str) else value


@pytest.fixture
def one() -> Iterator[Node]:
    with node() as found:
        yield found


def run(one: Node, folder: Path, tasks: list[dict[str, Any]], **variables: Any) -> Done:
    done = run_plays(folder, [{"hosts": "all", "vars": variables, "tasks": tasks}], {"node-1": one}, "--diff", "-vv")
    assert "Traceback" not in done.stdout + done.stderr, done.stdout + done.stderr
    return done


def show(name: str) -> dict[str, Any]:
    """A result is shown, and a text made of it: where a template in it would be carried out."""
    return {"ansible.builtin.debug": {
        "msg": "{{ " + name + " | to_json }} {{ " + name + ".warnings | default([]) | join }}"}}


def test_objects_with_templates_and_commands_anywhere_are_data(one: Node, tmp_path: Path) -> None:
    marker = tmp_path / "pwned"
    texts = attacks(marker)
    services = hidden(clusters.services("shop", 1), texts)
    (tmp_path / "cluster.json").write_text(json.dumps({"kind": "List",
                                                       "items": services + hidden(clusters.calico(), texts)}))
    (tmp_path / "services.json").write_text(json.dumps(services))
    listed = {"/api/v1/services": ("v1", "Service", services[:1]),
              "/apis/discovery.k8s.io/v1/endpointslices": ("discovery.k8s.io/v1", "EndpointSlice", services[1:]),
              "/api/v1/nodes": ("v1", "Node", []), "/api/v1/pods": ("v1", "Pod", [])}
    inline = {"services": "{{ given[:1] }}", "endpoint_slices": "{{ given[1:] }}"}
    with api_server(listed) as server:
        api = {"host": server.host, "api_key": TOKEN, "kinds": ["Service", "EndpointSlice", "Node"]}
        done = run(one, tmp_path, [
            {KUBE: {"cluster": "cluster.json", "node_name": "node-1"}, "register": "from_file"}, show("from_file"),
            *({f"metal.nodenet.{name}": {"cluster": "cluster.json", **more}, "register": "calico"} for name, more in (
                ("calico_masq", {}), ("floating_ip", {"node_name": "node-1"}), ("service_loop_block", {}))),
            show("calico"),
            {KUBE: {"node_name": "node-1", **inline}, "register": "from_play"}, show("from_play"),
            {"ansible.builtin.set_fact": {
                "given": "{{ lookup('ansible.builtin.file', 'services.json') | from_json }}"}},
            {KUBE: {"node_name": "node-1", **inline}, "register": "from_lookup"}, show("from_lookup"),
            {SNAPSHOT: {"api": api, "dest": str(tmp_path / "snapshots")}, "register": "snapshot"}, show("snapshot"),
            {KUBE: {"cluster": "{{ snapshot.path }}", "node_name": "node-1"}, "register": "from_api"}, show("from_api"),
        ], given=unsafe(services))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not marker.exists()
    # All of it came to the node, and all ways lead to the same rules: only the first run of a module changes anything.
    assert "10.244.1.1:8080" in one.save("ipv4")
    assert "198.51.100.70" in one.save("ipv4")
    assert "node-1" in done.stdout
    assert " changed=5 " in done.stdout, done.stdout[-2000:]


def test_objects_that_are_refused_are_shown_and_not_run(one: Node, tmp_path: Path) -> None:
    marker, proof = tmp_path / "pwned", tmp_path / "proof"
    # The same text in the play itself is a template, and is carried out.
    tasks: list[dict[str, Any]] = [{"ansible.builtin.debug": {"msg": attacks(proof)[0]}}]
    for number, text in enumerate(attacks(marker)[:7]):
        objects = clusters.services("shop", 1)
        meta, spec = objects[0]["metadata"], objects[0]["spec"]
        place: tuple[dict[str, Any], str] = (
            (meta, "name"), (spec, "type"), (spec["ports"][0], "name"), (meta, "namespace"), (spec, "sessionAffinity"),
            (objects[1], "addressType"), (spec, "clusterIP"))[number]
        place[0][place[1]] = text
        (tmp_path / f"{number}.json").write_text(json.dumps({"kind": "List", "items": objects}))
        tasks += [{KUBE: {"cluster": f"{number}.json", "node_name": "node-1"}, "register": "result",
                   "ignore_errors": True}, show("result")]
        if place[0] is meta:
            tasks += [{SNAPSHOT: {"file": f"{number}.json", "dest": str(tmp_path / "snapshots")}, "register": "result",
                       "ignore_errors": True}, show("result")]
    done = run(one, tmp_path, tasks)
    assert done.returncode == 0, done.stdout + done.stderr
    assert proof.exists()
    assert not marker.exists()
    # All but the cluster IP, which is left out with a warning, as kube-proxy does.
    assert done.stdout.count("...ignoring") == 8
    # As it was given, and not what a template would have made of it.
    assert "lookup('ansible.builtin.pipe'" in done.stdout
