# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles by themselves, on a namespace."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from support.builders import endpoint_slice, service
from support.fleet import TOP, Fleet
from support.node import Node
from support.shims import Shims

FORWARD = "net.ipv4.ip_forward"
LOCALNET = "net.ipv4.conf.all.route_localnet"
NOTHING = dict.fromkeys(["prerequisites_install", "prerequisites_br_netfilter", "prerequisites_ip_forward",
                         "prerequisites_ipv6_forwarding", "prerequisites_bridge_nf_call"], False)


@pytest.fixture
def fleet(nft_node: Node, tmp_path: Path) -> Iterator[Fleet]:
    """One node; the files of the role prerequisites are in a folder, for a namespace has no /etc of its own."""
    yield Fleet(tmp_path, {"node-1": nft_node}, prerequisites_sysctl_file=str(tmp_path / "sysctl.conf"),
                prerequisites_modules_file=str(tmp_path / "modules.conf"))


def sysctl(one: Node, name: str) -> str:
    return one.exec("sysctl", "-n", name).strip()


# ---- prerequisites ----

def test_prerequisites_set_and_keep_the_sysctls(fleet: Fleet) -> None:
    one = fleet.nodes["node-1"]
    for name in (FORWARD, LOCALNET):
        one.exec("sysctl", "-q", "-w", f"{name}=0")
    variables = {"prerequisites_install": False, "prerequisites_br_netfilter": False}
    predicted = fleet.role("prerequisites", "--check", **variables).ok()
    assert predicted.changed()
    assert (sysctl(one, FORWARD), (fleet.folder / "sysctl.conf").exists()) == ("0", False)
    applied = fleet.role("prerequisites", **variables).ok()
    assert applied.count("changed") == predicted.count("changed")
    assert (sysctl(one, FORWARD), sysctl(one, LOCALNET)) == ("1", "1")
    kept = (fleet.folder / "sysctl.conf").read_text()
    assert f"{FORWARD}=1" in kept
    assert not fleet.role("prerequisites", **variables).ok().changed()
    # A namespace without a bridge has no such sysctl.
    if one.status("sysctl", "-n", "net.bridge.bridge-nf-call-iptables"):
        assert "net.bridge.bridge-nf-call-iptables is not there, so it is not set" in applied.flat
        assert "bridge" not in kept


def test_prerequisites_route_localnet_only_where_node_ports_need_it(fleet: Fleet) -> None:
    one = fleet.nodes["node-1"]
    one.exec("sysctl", "-q", "-w", f"{LOCALNET}=0")
    assert not fleet.role("prerequisites", **NOTHING, prerequisites_nodeport_addresses=["192.0.2.0/24"]).ok().changed()
    assert sysctl(one, LOCALNET) == "0"
    assert fleet.role("prerequisites", **NOTHING, prerequisites_nodeport_addresses=["192.0.2.0/24"],
                      prerequisites_route_localnet="always").ok().changed()
    assert sysctl(one, LOCALNET) == "1"


def test_prerequisites_everything_can_be_switched_off(fleet: Fleet) -> None:
    assert not fleet.role("prerequisites", **NOTHING, prerequisites_route_localnet="never").ok().changed()
    assert not (fleet.folder / "sysctl.conf").exists()


def test_prerequisites_are_removed(fleet: Fleet) -> None:
    fleet.role("prerequisites", **{**NOTHING, "prerequisites_ip_forward": True}).ok()
    assert (fleet.folder / "sysctl.conf").exists()
    assert fleet.role("prerequisites", tasks_from="remove").ok().changed()
    assert not (fleet.folder / "sysctl.conf").exists()
    assert not fleet.role("prerequisites", tasks_from="remove").ok().changed()


# ---- node ----

#: systemd as far as the module systemd_service asks it. It logs its orders.
SYSTEMCTL = """case "$1" in
show) echo LoadState=loaded; echo ActiveState=active; echo UnitFileState=enabled ;;
is-enabled) echo enabled ;;
*) echo "$@" >>"$HERE/log" ;;
esac"""


def test_node_removes_rules_before_units_whatever_the_switches_say(
        fleet: Fleet, monkeypatch: pytest.MonkeyPatch) -> None:
    shims = Shims(fleet.folder / "shims")
    shims.add("systemctl", SYSTEMCTL)
    monkeypatch.setenv("PATH", shims.environment["PATH"])
    units = fleet.folder / "units"
    units.mkdir()
    # as strings, which -e name=value makes of them
    cluster = {"kube_nat_services": [service()], "kube_nat_endpoint_slices": [endpoint_slice("10.244.1.5")],
               "node_name": "node-1", "node_calico_nat": "false", "node_prerequisites": "false",
               "persistence_units": "always", "persistence_unit_dir": str(units)}
    fleet.role("node", **cluster, node_persistence="true").ok()
    three = sorted(path.name for path in units.iterdir())
    assert three == ["nodenet-heal.service", "nodenet-heal.timer", "nodenet-restore.service"]

    # Rules that cannot be removed keep their healer.
    damaged = fleet.state_dir("node-1") / "guard/armed.json"
    damaged.parent.mkdir(exist_ok=True)
    damaged.write_text("{")
    (shims.folder / "log").unlink()
    fleet.role("node", **cluster, node_persistence="false", tasks_from="remove").failed("armed.json")
    assert sorted(path.name for path in units.iterdir()) == three
    assert "KUBE-SVC-" in fleet.nodes["node-1"].save("ipv4")
    orders = [order for order in shims.log("log") if "nodenet-heal.timer" in order]
    assert orders[0] == "stop nodenet-heal.timer", shims.log("log")

    damaged.unlink()
    fleet.role("node", **cluster, node_persistence="false", tasks_from="remove").ok()
    assert list(units.iterdir()) == []
    assert not fleet.state_dir("node-1").exists()
    assert "KUBE-" not in "".join(fleet.nodes["node-1"].saves().values())
    assert not fleet.role("node", **cluster, node_persistence="false", tasks_from="remove").ok().changed()


def test_an_absent_node_gets_neither_prerequisites_nor_units(fleet: Fleet) -> None:
    variables = {"node_state": "absent", "prerequisites_install": False, "prerequisites_br_netfilter": False,
                 "persistence_units": "never"}
    assert not fleet.role("node", **variables).ok().changed()
    assert not (fleet.folder / "sysctl.conf").exists()
    assert not (fleet.state_dir("node-1") / "agent").exists()


# ---- kube_nat and calico_nat ----

#: What a module needs that is not the user's to set.
INTERNAL = {"cluster_sha256"}
MODULES = {"kube_nat": ["kube_nat_chains"],
           "calico_nat": ["calico_masq", "floating_ip", "service_loop_block", "calico_host_ips"]}
#: Options that a role gives to its modules in another way: one variable has the plans of all its modules.
OTHERWISE = {("calico_nat", "expect_plan")}
PAIRS = [(role, module) for role, modules in MODULES.items() for module in modules]


@pytest.mark.parametrize(("role", "module"), PAIRS)
def test_a_role_has_every_option_of_its_modules(role: str, module: str) -> None:
    tasks = yaml.safe_load((TOP / f"roles/{role}/tasks/main.yml").read_text())
    given = next(task[f"metal.nodenet.{module}"] for task in tasks if f"metal.nodenet.{module}" in task)
    assert given.keys() == _documented(module).keys() - INTERNAL


@pytest.mark.parametrize(("role", "module"), PAIRS)
def test_a_role_has_the_defaults_and_choices_of_its_modules(role: str, module: str) -> None:
    page = yaml.safe_load((TOP / f"roles/{role}/meta/argument_specs.yml").read_text())
    specs = page["argument_specs"]["main"]["options"]
    short = f"{role}_{module.removeprefix('calico_')}_"
    for name, option in _documented(module).items():
        found = specs.get(f"{short}{name}", specs.get(f"{role}_{name}"))
        if name in INTERNAL or (role, name) in OTHERWISE:
            continue
        assert found is not None, name
        assert {key: found.get(key) for key in ("default", "choices", "type")} == {
            "default": option.get("default"), "choices": option.get("choices"), "type": option.get("type", "str")}, name


def _documented(module: str) -> dict[str, Any]:
    """The options of a module's page, with those of its fragments."""
    options: dict[str, Any] = {}
    page = _constant(TOP / f"plugins/modules/{module}.py", "DOCUMENTATION")
    for fragment in page["extends_documentation_fragment"]:
        namespace, _dot, name = fragment.rpartition(".")
        if namespace == "metal.nodenet":
            options |= _constant(TOP / f"plugins/doc_fragments/{name}.py", "DOCUMENTATION")["options"]
    return options | page["options"]


def _constant(path: Path, name: str) -> dict[str, Any]:
    for part in ast.walk(ast.parse(path.read_text())):
        if isinstance(part, ast.Assign) and isinstance(part.targets[0], ast.Name) and part.targets[0].id == name:
            found: dict[str, Any] = yaml.safe_load(ast.literal_eval(part.value))
            return found
    raise AssertionError(f"{path} has no {name}")


def test_kube_nat_and_calico_nat_apply_check_and_remove(fleet: Fleet) -> None:
    one = fleet.nodes["node-1"]
    kube = {"kube_nat_services": [service()], "kube_nat_endpoint_slices": [endpoint_slice("10.244.1.5")],
            "kube_nat_node_name": "node-1"}
    calico = {"calico_nat_masq_pools": [{"cidr": "10.244.0.0/16", "masquerade": True}],
              "calico_nat_floating_ip_mappings": [{"external": "198.51.100.10", "internal": "10.244.1.5"}],
              "calico_nat_service_loop_block_cidrs": ["10.96.0.0/12"]}
    for role, variables in (("kube_nat", kube), ("calico_nat", calico)):
        assert fleet.role(role, "--check", **variables).ok().changed()
        assert fleet.role(role, **variables).ok().changed()
        assert not fleet.role(role, **variables).ok().changed()
    text = one.save("ipv4")
    for part in ("KUBE-SVC-", "cali-nat-outgoing", "cali-fip-dnat", "cali-cidr-block"):
        assert part in text
    for role in ("kube_nat", "calico_nat"):
        assert fleet.role(role, **{f"{role}_state": "absent"}).ok().changed()
    left = "".join(one.saves().values())
    assert "KUBE-" not in left
    assert "cali-" not in left


def test_calico_nat_runs_only_what_is_switched_on(fleet: Fleet) -> None:
    off = {"calico_nat_floating_ip": False, "calico_nat_host_ips": False, "calico_nat_masq": False}
    fleet.role("calico_nat", **off, calico_nat_service_loop_block_cidrs=["10.96.0.0/12"]).ok()
    text = fleet.nodes["node-1"].save("ipv4")
    assert "cali-cidr-block" in text
    assert "cali-nat-outgoing" not in text


def test_a_wrong_variable_is_named(fleet: Fleet) -> None:
    fleet.role("kube_nat", kube_nat_layout="1.29").failed("kube_nat_layout", "1.29")
