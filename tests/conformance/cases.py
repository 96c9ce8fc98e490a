# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The recorded clusters: what the real kube-proxy programmed for them, and with which options.

A case is a folder as ``cases/README.md`` describes it. The project has its own selection in ``cases/``; a larger
collection is used as well where ``NODENET_CONFORMANCE`` or ``../shared/conformance/kube-proxy`` has one.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS, PROXY_NAME_LABEL
from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import Cluster, Node, read_cluster
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions

VERSIONS = tuple(LAYOUTS)
#: Family to its name in the files.
FAMILY_FILES = {"ipv4": "v4", "ipv6": "v6"}

_HERE = Path(__file__).resolve().parent
_CHECKOUT = _HERE.parent.parent


class Case(NamedTuple):
    """One recorded cluster."""

    name: str
    path: Path

    @property
    def config(self) -> dict[str, Any]:
        """The node's interfaces and the kube-proxy options of the run."""
        return _load(self.path / "config.json")

    @property
    def versions(self) -> list[str]:
        """The versions that were recorded."""
        return [version for version in VERSIONS if self.dump(version, "ipv4").exists()]

    @property
    def has_second(self) -> bool:
        """Whether there is a later snapshot of the cluster."""
        return self.cluster_file(second=True).exists()

    def cluster_file(self, second: bool = False) -> Path:
        """The objects, as a ``v1`` List in JSON."""
        return self.path / ("cluster2.json" if second else "cluster.json")

    def objects(self, second: bool = False) -> list[dict[str, Any]]:
        """The items of the List, as the recorded kube-proxy saw them.

        The recorder's API server did not apply the label selectors that kube-proxy asks for, so these versions got and
        programmed Services that belong to another proxy. A real API server never sends them, and we leave them out;
        here their label is taken off, so that the rest of the recording can be compared.
        """
        items: list[dict[str, Any]] = _load(self.cluster_file(second))["items"]
        for item in items:
            item["metadata"].get("labels", {}).pop(PROXY_NAME_LABEL, None)
        return items

    def dump(self, version: str, family: str, second: bool = False) -> Path:
        """What iptables-save or ip6tables-save printed."""
        return self.path / f"{version}{'.2' if second else ''}.{FAMILY_FILES[family]}.rules"

    def conntrack(self, version: str) -> list[str] | None:
        """The arguments of the conntrack calls on the way to the second snapshot; None where they were not recorded."""
        path = self.path / f"{version}.2.conntrack"
        return path.read_text(encoding="utf-8").splitlines() if path.exists() else None


def all_cases() -> list[Case]:
    """Every case there is, by name; the project's own copy where a name is there twice."""
    found: dict[str, Case] = {}
    for folder in _folders():
        for path in sorted(folder.iterdir()):
            if (path / "cluster.json").exists():
                found.setdefault(path.name, Case(path.name, path))
    return [found[name] for name in sorted(found)]


def cluster_for(case: Case, version: str, second: bool = False) -> Cluster:
    """The cluster of a case as one layout reads it."""
    return read_cluster(case.objects(second), LAYOUTS[version])


def options_for(case: Case, version: str) -> ProxyOptions:
    """The options of the recorded run."""
    config = case.config
    node = _node(case)
    mode = config["detect_local"]
    return ProxyOptions(
        layout=LAYOUTS[version],
        node_name=config["node"],
        zone=node.zone,
        node_ips=node.host_ips,
        local_addresses=local_addresses(case),
        nodeport_addresses=tuple(config["nodeport_addresses"]),
        localhost_nodeports=config["localhost_nodeports"],
        detect_local=mode,
        cidrs=tuple(node.pod_cidrs if mode == "node_cidr" else config["cluster_cidrs"]),
        interface=config.get(mode, "") if mode in ("bridge_interface", "interface_prefix") else "",
        masquerade_all=config["masquerade_all"],
        masquerade_bit=config["masquerade_bit"],
    )


def local_addresses(case: Case) -> list[str]:
    """The addresses of the node's interfaces, loopback included."""
    addresses = ["127.0.0.1", "::1"]
    for with_length in case.config["interfaces"].values():
        addresses += [text.split("/", 1)[0] for text in with_length]
    return addresses


def shared_folder() -> Path | None:
    """The larger collection of recordings; None where there is none."""
    given = os.environ.get("NODENET_CONFORMANCE")
    if given and not Path(given).is_dir():
        raise NotADirectoryError(f"NODENET_CONFORMANCE: {given} is no directory")
    shared = Path(given) if given else _CHECKOUT.parent / "shared" / "conformance" / "kube-proxy"
    return shared if shared.is_dir() else None


def _folders() -> list[Path]:
    folders = [_HERE / "cases"]
    shared = shared_folder()
    return [*folders, shared] if shared else folders


def _node(case: Case) -> Node:
    cluster = read_cluster([raw for raw in case.objects() if raw["kind"] == "Node"], LAYOUTS[VERSIONS[-1]])
    return cluster.nodes[case.config["node"]]


def _load(path: Path) -> Any:
    with path.open(encoding="utf-8") as stream:
        return json.load(stream)
