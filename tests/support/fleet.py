# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Network namespaces as a fleet: an inventory of them, and playbooks and roles run on it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from support.builders import endpoint_slice, service
from support.node import Node

TOP = Path(__file__).resolve().parents[2]


class Fleet:
    """Hosts, each of them a namespace, with a state directory of its own. Files are in ``folder``."""

    def __init__(self, folder: Path, nodes: Mapping[str, Node], **variables: Any) -> None:
        self.folder = folder
        self.nodes = dict(nodes)
        self.inventory = folder / "inventory.yml"
        self.set(**variables)

    def state_dir(self, host: str) -> Path:
        """What stands for ``/var/lib/nodenet`` of a host."""
        return self.folder / "state" / host

    def set(self, **variables: Any) -> None:
        """Write the inventory, with these variables for all hosts."""
        hosts = {name: {"ansible_netns_name": one.name, "node_state_dir": str(self.state_dir(name))}
                 for name, one in self.nodes.items()}
        connection = {"ansible_connection": "metal.nodenet.netns", "ansible_python_interpreter": sys.executable}
        self.inventory.write_text(yaml.safe_dump(
            {"all": {"children": {"nodes": {"hosts": hosts, "vars": {**connection, **variables}}}}}))

    def write(self, name: str, content: Any) -> Path:
        """A JSON file in the folder."""
        path = self.folder / name
        path.write_text(json.dumps(content))
        return path

    def read(self, name: str) -> Any:
        """A JSON file of the folder."""
        return json.loads((self.folder / name).read_text())

    def saves(self) -> dict[str, dict[str, str]]:
        """Every host's dumps."""
        return {name: one.saves() for name, one in self.nodes.items()}

    def playbook(self, name: str, *options: str, **variables: Any) -> Run:
        """Run one of the collection's playbooks."""
        return self.run(f"metal.nodenet.{name}", *options, **variables)

    def role(self, name: str, *options: str, tasks_from: str = "main", **variables: Any) -> Run:
        """Run one of the collection's roles on all hosts."""
        task = {"ansible.builtin.include_role": {"name": f"metal.nodenet.{name}", "tasks_from": tasks_from}}
        play = self.folder / f"{name}.yml"
        play.write_text(yaml.safe_dump([{"hosts": "nodes", "gather_facts": False, "tasks": [task]}]))
        return self.run(str(play), *options, **variables)

    def run(self, play: str, *options: str, **variables: Any) -> Run:
        """``ansible-playbook``, from ``folder``."""
        argv = [sys.executable, "-m", "ansible", "playbook", "-i", str(self.inventory), play, *options]
        if variables:
            argv += ["-e", json.dumps(variables)]
        settings = {"FORKS": "20", "PIPELINING": "True", "CALLBACK_RESULT_FORMAT": "yaml"}
        done = subprocess.run(argv, capture_output=True, text=True, check=False, cwd=self.folder,
                              env=os.environ | {f"ANSIBLE_{name}": value for name, value in settings.items()})
        return Run(done.returncode, done.stdout, done.stderr)


class Run:
    """What a run of a playbook said."""

    def __init__(self, code: int, stdout: str, stderr: str) -> None:
        self.code = code
        self.stdout = stdout
        self.text = stdout + stderr
        #: without line breaks and indentation, to look for sentences in
        self.flat = re.sub(r"\s+", " ", self.text)

    def ok(self) -> Run:
        """Fail the test if the run failed."""
        assert self.code == 0, self.text[-6000:]
        return self

    def failed(self, *said: str) -> Run:
        """Fail the test if the run went through, broke, or did not say this."""
        assert self.code != 0, self.text[-6000:]
        assert "Traceback" not in self.text, self.text[-6000:]
        for one in said:
            assert one in self.flat, f"{one!r} is not in:\n{self.text[-6000:]}"
        return self

    def count(self, what: str) -> dict[str, int]:
        """From the recap: ``changed``, ``failed``, ``unreachable`` and so on, by host."""
        recap = self.stdout.rpartition("PLAY RECAP")[2]
        return {found[1]: int(found[2])
                for found in re.finditer(rf"^(\S+)\s+:.*\b{what}=(\d+)", recap, re.MULTILINE)}

    def changed(self, *hosts: str) -> bool:
        """Whether anything changed, on these hosts or any."""
        return any(count for host, count in self.count("changed").items() if not hosts or host in hosts)


def make_nodes(names: Sequence[str], backend: str = "nft") -> dict[str, Node]:
    """Namespaces for these hosts."""
    return {name: Node(backend) for name in names}


def cluster(endpoints: Sequence[str], services: int = 1, nodes: Sequence[str] = ("node1", "node2")) -> dict[str, Any]:
    """A List with some services, ``web0`` and on, that all have these endpoints, and with these nodes and a pool."""
    items: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": {"podCIDRs": [f"10.244.{at}.0/24"]}}
        for at, name in enumerate(nodes, 1)]
    for at in range(services):
        items += [service(f"web{at}", clusterIP=f"10.96.{at // 250}.{at % 250 + 1}"),
                  endpoint_slice(*endpoints, name=f"web{at}-a", service_name=f"web{at}")]
    items += [{"apiVersion": "projectcalico.org/v3", "kind": "IPPool", "metadata": {"name": "pods"},
               "spec": {"cidr": "10.244.0.0/16", "natOutgoing": True}}]
    return {"apiVersion": "v1", "kind": "List", "items": items}
