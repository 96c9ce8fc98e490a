# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The states of the Calico modules, and options that are refused before anything is touched."""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import (
    calico_host_ips,
    calico_masq,
    floating_ip,
    service_loop_block,
)
from support.calico import MODULES, apply, changed, everything, four_ways, settle
from support.felix import ARGUMENTS, load_felix
from support.node import Node

ADDRESSES = {"addresses": [{"address": "192.0.2.11", "interface": "eth0"}, {"address": "127.0.0.0", "interface": "lo"},
                           {"address": "2001:db8::11", "interface": "eth0"},
                           {"address": "10.244.1.1", "interface": "cali1"}]}
GIVEN: dict[ModuleType, dict[str, Any]] = {**MODULES, calico_host_ips: {**ADDRESSES, "forward_check": True}}


def short(module: ModuleType) -> str:
    return module.__name__.rpartition(".")[2]


@pytest.mark.parametrize("rule_hashes", [True, False])
@pytest.mark.parametrize("module", GIVEN, ids=short)
def test_rendered_and_gathered_have_one_form(kube_node: Node, module: ModuleType, rule_hashes: bool) -> None:
    arguments = {**GIVEN[module], "rule_hashes": rule_hashes}
    before = everything(kube_node)
    rendered = kube_node.module(module=module, state="rendered", **arguments)
    assert not rendered["changed"]
    assert everything(kube_node) == before
    four_ways(kube_node, module, **arguments, backend=kube_node.backend)
    gathered = kube_node.module(module=module, state="gathered")
    assert not gathered["changed"]
    assert gathered["gathered"] == rendered["rendered"]


@pytest.mark.parametrize("module", GIVEN, ids=short)
def test_gathered_is_this_modules_part_whatever_the_others_have(kube_node: Node, module: ModuleType) -> None:
    """The ids of shared chains depend on all entries, so it is without them that the part is the same."""
    for each in GIVEN:
        kube_node.module(module=each, **GIVEN[each], rule_hashes=False, backend=kube_node.backend)
    rendered = kube_node.module(module=module, state="rendered", **GIVEN[module], rule_hashes=False)
    gathered = kube_node.module(module=module, state="gathered")
    assert gathered["gathered"] == rendered["rendered"]


@pytest.mark.parametrize("module", [module for module in ARGUMENTS if module is not calico_host_ips], ids=short)
def test_gathered_reads_what_felix_wrote(kube_node: Node, module: ModuleType) -> None:
    settle(kube_node)
    load_felix(kube_node)
    gathered = kube_node.module(module=module, state="gathered")["gathered"]
    rendered = kube_node.module(module=module, state="rendered", **ARGUMENTS[module])["rendered"]
    assert gathered.get("sets") == rendered.get("sets")
    for family in ("ipv4", "ipv6"):
        table = next(iter(rendered[family]))
        own = [line for line in rendered[family][table].splitlines() if "cali-POSTROUTING" not in line
               and "cali-FORWARD" not in line]
        assert [line for line in gathered[family][table].splitlines() if "cali-POSTROUTING" not in line
                and "cali-FORWARD" not in line] == own
        assert "vxlan" not in gathered[family][table]


@pytest.mark.parametrize("module", GIVEN, ids=short)
def test_rendered_text_loads_as_it_is(kube_node: Node, module: ModuleType) -> None:
    rendered = kube_node.module(module=module, state="rendered", **GIVEN[module])["rendered"]
    sets = "".join(rendered.pop("sets", {}).values())
    kube_node.exec("ipset", "restore", text=sets)
    for family, tables in rendered.items():
        for text in tables.values():
            kube_node.load(family, text)
    result = kube_node.module(check=True, module=module, **GIVEN[module])
    assert (result["changed"], result["diff"]) == (False, [])


@pytest.mark.parametrize("module", GIVEN, ids=short)
def test_rendered_needs_neither_root_nor_tools(nft_node: Node, module: ModuleType) -> None:
    result = nft_node.module(module=module, state="rendered", **GIVEN[module], user=65534,
                             environment={"PATH": "/nonexistent"})
    assert set(result["rendered"]) >= {"ipv4", "ipv6"}
    assert "cali" in str(result["rendered"])


def test_rendered_host_ips_need_to_be_told_the_addresses(nft_node: Node) -> None:
    result = nft_node.module(module=calico_host_ips, state="rendered")
    assert result["failed"]
    assert "addresses" in result["msg"]


@pytest.mark.parametrize("module", GIVEN, ids=short)
def test_on_an_empty_node_there_is_nothing_to_gather_or_to_remove(kube_node: Node, module: ModuleType) -> None:
    assert kube_node.module(module=module, state="gathered")["gathered"] == {"ipv4": {}, "ipv6": {}}
    result = four_ways(kube_node, module, state="absent")
    assert (result["changed"], result["diff"]) == (False, [])


@pytest.mark.parametrize("module", GIVEN, ids=short)
def test_one_family_alone_leaves_the_other_as_it_is(kube_node: Node, module: ModuleType) -> None:
    four_ways(kube_node, module, **GIVEN[module], families=["ipv6"], backend=kube_node.backend)
    assert "cali" not in kube_node.save("ipv4")
    assert "cali4" not in kube_node.exec("ipset", "list", "-name")
    four_ways(kube_node, module, **GIVEN[module])
    filled = everything(kube_node)
    four_ways(kube_node, module, state="absent", families=["ipv6"])
    assert everything(kube_node)["ipv4"] == filled["ipv4"]
    assert "cali" not in kube_node.save("ipv6")
    assert "cali6" not in kube_node.exec("ipset", "list", "-name")


def test_a_node_without_ipv6_has_ipv4_alone_and_absent_still_cleans_both(kube_node: Node) -> None:
    apply(kube_node)
    kube_node.exec("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    for module in (calico_masq, floating_ip, service_loop_block):
        result = kube_node.module(check=True, module=module, **MODULES[module])
        assert (result["changed"], result["diff"]) == (False, [])
    for module in MODULES:
        assert changed(kube_node, module=module, state="absent")
    assert "cali" not in "".join(kube_node.saves().values()) + kube_node.exec("ipset", "list", "-name")


REFUSED: list[tuple[ModuleType, dict[str, Any], list[str]]] = [
    (calico_host_ips, {"workload_prefixes": ["a b"]}, ["workload_prefixes", "a b"]),
    (calico_host_ips, {"exclude_interfaces": ["/(/"]}, ["exclude_interfaces", "/(/"]),
    (calico_host_ips, {"nodeport_ranges": ["9:1"], "forward_check": True}, ["nodeport_ranges", "9:1"]),
    (calico_host_ips, {"addresses": [{"address": "nowhere", "interface": "eth0"}]}, ["addresses", "nowhere"]),
    (calico_host_ips, {"max_ipset_size": 1}, ["max_ipset_size", "cali40this-host"]),
    (floating_ip, {"mappings": None, "objects": [{"metadata": {"name": "x"}}]}, ["objects[0]", "kind"]),
    (floating_ip, {"mappings": [{"external": "192.0.2.1"}]}, ["internal"]),
    (service_loop_block, {"cidrs": None}, ["cidrs", "bgp_configuration"]),
    *((module, {"insert_mode": "prepend"}, ["insert_mode", "prepend"]) for module in MODULES),
    *((module, {"calico_version": "9.9"}, ["calico_version", "9.9"]) for module in MODULES),
    *((module, {"lock_timeout": 0}, ["lock_timeout", "0"]) for module in MODULES),
]


@pytest.mark.parametrize(("module", "arguments", "words"), REFUSED,
                         ids=[f"{short(module)} {words[0]}" for module, _arguments, words in REFUSED])
def test_bad_input_is_refused_by_name_before_anything_is_touched(nft_node: Node, module: ModuleType,
                                                                 arguments: dict[str, Any], words: list[str]) -> None:
    settle(nft_node)
    apply(nft_node)
    before = everything(nft_node)
    given = {name: value for name, value in {**MODULES[module], **arguments}.items() if value is not None}
    result = nft_node.module(module=module, **given)
    assert result["failed"]
    for word in words:
        assert word in result["msg"]
    assert everything(nft_node) == before
