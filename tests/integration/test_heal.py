# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent: what a node remembers comes back after a reboot, and after somebody has flushed tables."""

from __future__ import annotations

import contextlib
import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.node.documents import ORDER
from ansible_collections.metal.nodenet.plugins.modules import kube_nat_chains
from ansible_collections.metal.nodenet.plugins.plugin_utils.agent_archive import agent_archive
from support.agent import Agent
from support.builders import endpoint_slice, service
from support.calico import MODULES, everything
from support.foreign import FOREIGN
from support.node import Node, node
from support.programs import running
from support.shims import Shims

CLUSTER: dict[str, Any] = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5")]}
ALL = {kube_nat_chains: CLUSTER, **MODULES}


def apply_all(agent: Agent, **options: Any) -> None:
    """Every module, remembered."""
    for module, arguments in ALL.items():
        arguments = {"takeover": True, **arguments}
        if module.__name__.endswith("calico_host_ips"):
            # The kernel's own addresses come a second after an interface does; and the chains of forward_check are
            # only made to be there.
            arguments["forward_check"] = False
            arguments["addresses"] = [{"address": "192.0.2.11", "interface": "eth0"}]
        result = agent.node.module(module=module, **arguments, **agent.options, backend=agent.node.backend, **options)
        assert not result.get("failed"), result["msg"]


def parts(dump: str) -> tuple[list[str], list[str]]:
    """Our lines of a dump, and the rules of others."""
    lines = [line for line in dump.splitlines() if line not in FOREIGN.splitlines()]
    others = [line for line in dump.splitlines() if line in FOREIGN.splitlines() and line.startswith("-A")]
    return [line for line in lines if "KUBE-" in line or "cali" in line], others


def flush(one: Node, *commands: tuple[str, ...]) -> None:
    for family in ("ipv4", "ipv6"):
        for command in commands:
            one.iptables(*command, family=family)


def nft_flush(one: Node) -> None:
    if one.backend == "nft":
        one.exec("nft", "flush", "ruleset")
    else:
        flush(one, *((("-t", table, word)) for table in ("nat", "filter", "mangle") for word in ("-F", "-X")))


@contextlib.contextmanager
def read_only(folder: Path) -> Iterator[None]:
    """A folder on a disk that takes no more writes, as one with errors."""
    subprocess.run(["mount", "--bind", folder, folder], check=True)
    try:
        subprocess.run(["mount", "-o", "remount,ro,bind", folder], check=True)
        yield
    finally:
        subprocess.run(["umount", folder], check=True)


DAMAGE: dict[str, Callable[[Node], None]] = {
    "-F filter": lambda one: flush(one, ("-F",)),
    "-F nat": lambda one: flush(one, ("-t", "nat", "-F")),
    "-F mangle and -X": lambda one: flush(one, ("-t", "mangle", "-F"), ("-t", "mangle", "-X")),
    "-F and -X of nat": lambda one: flush(one, ("-t", "nat", "-F"), ("-t", "nat", "-X")),
    "one jump": lambda one: flush(one, ("-t", "nat", "-F", "PREROUTING")),
    "one chain": lambda one: flush(one, ("-t", "nat", "-F", "KUBE-SERVICES")),
    "everything": nft_flush,
    "ipset flush": lambda one: one.exec("ipset", "flush") and None,
}


@pytest.mark.parametrize("damage", DAMAGE)
def test_whatever_is_flushed_is_healed_and_others_stay(agent: Agent, damage: str) -> None:
    one = agent.node
    one.load("ipv4", FOREIGN)
    apply_all(agent)
    state = everything(one)
    DAMAGE[damage](one)
    broken = everything(one)
    assert broken != state
    logged = agent.ok("heal")
    assert "found: " in logged
    assert "rebuilt: " in logged
    healed = everything(one)
    assert healed["sets"] == state["sets"]
    for family in ("ipv4", "ipv6"):
        assert parts(healed[family])[0] == parts(state[family])[0]
        assert parts(healed[family])[1] == parts(broken[family])[1]
    assert agent.ok("heal") == ""


def test_documents_that_cannot_be_brought_up_to_date_are_named_and_all_rules_come_back(agent: Agent) -> None:
    apply_all(agent)
    state = everything(agent.node)
    for module in ORDER:
        path = agent.folder / "applied" / f"{module}.json"
        document = json.loads(path.read_text())
        document["witnesses"]["rules"].append(["ipv4", agent.node.backend, "nat", "KUBE-UNKNOWN", "chain", ""])
        path.write_text(json.dumps(document))
    nft_flush(agent.node)
    with read_only(agent.folder / "applied"):
        done = agent.run("heal")
    assert done.returncode != 0
    for module in ORDER:
        assert f"{module}: its document cannot be brought up to date" in done.stderr
    assert everything(agent.node) == state
    agent.ok("heal")
    assert agent.ok("heal") == ""


def test_a_look_at_a_whole_node_saves_nothing_and_loads_nothing(agent: Agent, shims: Shims) -> None:
    apply_all(agent)
    before, files = everything(agent.node), agent.files()
    for tool in ("iptables", "ip6tables"):
        for name in (tool, f"{tool}-{agent.node.backend}"):
            for what in ("-save", "-restore"):
                shims.add(name + what, 'echo "$0 $@" >> "$HERE/log"; exec "$REAL" "$@"')
    assert agent.ok("heal", environment=shims.environment) == ""
    assert shims.log("log") == []
    assert everything(agent.node) == before
    assert agent.files() == files
    # The shims do count.
    agent.node.iptables("-t", "nat", "-F", "PREROUTING")
    agent.ok("heal", environment=shims.environment)
    assert shims.log("log")


@pytest.mark.parametrize("how", ["restore", "heal"])
def test_a_rebooted_node_is_rebuilt_by_hand_as_often_as_one_likes(agent: Agent, how: str) -> None:
    apply_all(agent)
    state = everything(agent.node)
    with node(agent.node.backend) as fresh:
        fresh.add_interface("eth0", ["192.0.2.11/24", "2001:db8::11/64"])
        after = agent.on(fresh)
        logged = after.ok(how)
        assert "kube_nat_chains: rebuilt" in logged
        assert everything(fresh) == state
        before = after.files()
        after.ok(how)
        assert everything(fresh) == state
        assert after.files() == before


def test_a_module_that_removed_everything_stays_away(agent: Agent) -> None:
    apply_all(agent)
    agent.node.module(state="absent", **agent.options)
    state = everything(agent.node)
    agent.ok("restore")
    assert everything(agent.node) == state
    assert "KUBE-" not in "".join(agent.node.saves().values())


def test_a_kube_proxy_that_runs_now_is_not_fought(agent: Agent, tmp_path: Path) -> None:
    agent.node.module(**CLUSTER, **agent.options, backend=agent.node.backend)
    agent.node.iptables("-t", "nat", "-F")
    broken = agent.node.saves()
    with running("kube-proxy", agent.node, tmp_path):
        done = agent.run("heal")
    assert done.returncode == 1
    assert "found: ipv4 nat" in done.stderr
    assert "NOT rebuilt" in done.stderr
    assert "kube-proxy" in done.stderr
    assert agent.node.saves() == broken


def test_the_healer_leaves_a_node_alone_where_somebody_is_at_work(agent: Agent) -> None:
    agent.node.module(**CLUSTER, **agent.options, backend=agent.node.backend)
    agent.node.iptables("-t", "nat", "-F")
    broken = agent.node.saves()
    with subprocess.Popen(["flock", agent.folder / "lock", "sh", "-c", "echo; sleep 600"],
                          stdout=subprocess.PIPE, start_new_session=True) as holder:
        assert holder.stdout
        holder.stdout.readline()
        assert agent.ok("heal") == ""
        subprocess.run(["pkill", "-KILL", "-s", str(holder.pid)], check=True)
    assert agent.node.saves() == broken


@pytest.mark.parametrize("fault", ["input gone", "input changed", "document cut", "unknown document", "no witnesses"])
def test_a_damaged_directory_is_named_and_nothing_is_guessed(agent: Agent, tmp_path: Path, fault: str) -> None:
    items = {"kind": "List", "items": [*CLUSTER["services"], *CLUSTER["endpoint_slices"]]}
    (tmp_path / "cluster.json").write_text(json.dumps(items))
    agent.node.module(cluster=str(tmp_path / "cluster.json"), remote_src=True, **agent.options,
                      backend=agent.node.backend)
    (tmp_path / "cluster.json").unlink()
    agent.node.iptables("-t", "nat", "-F")
    broken = agent.node.saves()
    path = agent.folder / "applied/kube_nat_chains.json"
    cached = next((agent.folder / "cache").glob("*.json.gz"))
    if fault == "input gone":
        cached.unlink()
    elif fault == "input changed":
        cached.write_bytes(cached.read_bytes()[:-1] + b"x")
    elif fault == "document cut":
        path.write_text(path.read_text()[:-20])
    elif fault == "unknown document":
        path = agent.folder / "applied/other.json"
        path.write_text("{}")
    else:
        document = json.loads(path.read_text())
        path.write_text(json.dumps({**document, "witnesses": {"rules": [["ipv4"]], "sets": {}}}))
    done = agent.run("heal")
    assert done.returncode == 1
    assert (str(cached) if "input" in fault else str(path)) in done.stderr
    assert "Traceback" not in done.stderr
    assert agent.node.saves() == broken


def test_the_cluster_of_a_document_needs_no_other_file(agent: Agent, tmp_path: Path) -> None:
    items = {"kind": "List", "items": [*CLUSTER["services"], *CLUSTER["endpoint_slices"]]}
    (tmp_path / "cluster.json").write_text(json.dumps(items))
    agent.node.module(cluster=str(tmp_path / "cluster.json"), remote_src=True, **agent.options,
                      backend=agent.node.backend)
    (tmp_path / "cluster.json").unlink()
    state = agent.node.saves()
    flush(agent.node, ("-t", "nat", "-F"), ("-t", "nat", "-X"))
    agent.ok("heal")
    assert agent.node.saves() == state


def test_the_agent_is_the_same_bytes_each_time_and_holds_nothing_of_ansible() -> None:
    data, sha256 = agent_archive()
    agent_archive.cache_clear()
    assert agent_archive() == (data, sha256)
    assert hashlib.sha256(data).hexdigest() == sha256


def test_no_part_of_the_agent_imports_ansible(tmp_path: Path) -> None:
    (tmp_path / "agent.pyz").write_bytes(agent_archive()[0])
    with zipfile.ZipFile(tmp_path / "agent.pyz") as archive:
        parts = [name[:-3].replace("/", ".") for name in archive.namelist()
                 if name.endswith(".py") and not name.endswith("__.py")]
    assert len(parts) > 50
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'agent.pyz')!r}); import importlib\n" + "".join(
        f"importlib.import_module({part!r})\n" for part in parts)
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_installing_is_one_change_and_removing_removes_all(agent: Agent) -> None:
    for check in (True, False):
        result = agent.install(check=check)
        assert result["changed"]
        assert result["path"] == str(agent.folder / "agent/nodenet.pyz")
        assert (agent.folder / "agent").exists() is not check
    assert not agent.install()["changed"]
    assert json.loads(agent.node.exec(sys.executable, result["path"], "--state-dir", str(agent.folder), "status"))
    apply_all(agent)
    rules = everything(agent.node)
    assert agent.install(state="absent", check=True)["changed"]
    assert agent.folder.exists()
    assert agent.install(state="absent")["changed"]
    assert not agent.folder.exists()
    assert not agent.install(state="absent")["changed"]
    assert everything(agent.node) == rules


def test_files_of_somebody_else_are_not_removed(agent: Agent) -> None:
    agent.install()
    (agent.folder / "notes.txt").write_text("mine")
    result = agent.install(state="absent")
    assert result["changed"]
    assert "notes.txt" in result["warnings"][0]
    assert [path.name for path in agent.folder.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("path", ["/", "relative", "/var/.."])
def test_a_directory_that_is_none_is_refused(nft_node: Node, path: str) -> None:
    result = nft_node.module(state="absent", state_dir=path, remember=True)
    assert result["failed"]
    assert "state_dir" in result["msg"]
