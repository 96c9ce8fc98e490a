# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What fuzzing has found, each in its smallest form: the strategies that found it are in tests/fuzz."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.calico import floating, floating_ips, hosts, loops
from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import read_pools
from ansible_collections.metal.nodenet.plugins.module_utils.calico.service_cidrs import read_cidrs
from ansible_collections.metal.nodenet.plugins.module_utils.cluster import file as cluster_file
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError, read_items
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.reduce import reduce_items
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import node_warnings, read_cluster
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.kube.rules import desired
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.canonical import same_rule
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import (
    PlanError,
    SaveFormatError,
    ToolError,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ipset import parse_list
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain, Table
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import (
    ChainWrite,
    FamilyPlan,
    TablePlan,
    plan_family,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import parse
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from ansible_collections.metal.nodenet.plugins.module_utils.objects import ObjectError, flatten
from ansible_collections.metal.nodenet.plugins.module_utils.shown import one_line, shown
from ansible_collections.metal.nodenet.plugins.plugin_utils.reduction import reduced
from support.builders import endpoint, endpoint_slice, render, service
from support.node import LOCK, Node, node

EVIL = '-m comment --comment "a\n-A INPUT -j DROP" '


def deep(levels: int) -> Any:
    value: Any = "end"
    for _level in range(levels):
        value = [value]
    return value


# --- what a message shows ---

@pytest.mark.parametrize("value", [
    "x" * 10_000_000, ["x" * 10_000_000], {"a": "\n" * 1000}, deep(100_000), 10 ** 5000, {"a": 10 ** 5000},
    list(range(1_000_000)), b"x" * 1000, "\ud800", "\x1b[31m\u2028"],
    ids=["text", "text in a list", "lines", "depth", "integer", "integer in a mapping", "list", "bytes", "half",
         "escape"])
def test_a_value_is_shown_short_and_in_one_line(value: object) -> None:
    text = shown(value)
    assert len(text) <= 310
    assert text.isprintable()


@pytest.mark.parametrize("value", ["a", "", "'", None, True, 1, -5, 1.5, [1, "a"], {"b": [1]}, (1, 2)])
def test_what_is_short_is_shown_as_python_writes_it(value: object) -> None:
    assert shown(value) == repr(value)


def test_errors_of_others_are_one_line() -> None:
    assert one_line(ValueError("a\n  b\x00\ud800" + "c" * 1000)).startswith("a b\\x00\\ud800ccc")
    assert len(one_line("x" * 10_000_000)) < 310


def test_an_error_about_a_long_text_is_short() -> None:
    with pytest.raises(ObjectError, match="^Service default/web: spec.type: 'xxx") as caught:
        render([service(type="x" * 10_000_000)])
    assert len(str(caught.value)) < 500


def test_names_that_are_none_are_shown_as_values() -> None:
    cluster = read_cluster([endpoint_slice(endpoint("10.0.0.1", node="a\nb" * 100_000))], LAYOUTS["1.36"])
    (warning,) = node_warnings(cluster, "node-1")
    assert warning.isprintable()
    assert len(warning) < 500


def test_the_name_of_an_interface_is_shown_in_one_line() -> None:
    with pytest.raises(ValueError, match="^addresses: 'x' on ") as caught:
        hosts.desired([("x", "a\nb\ud800" * 1000)], hosts.HostOptions(), "ipv4")
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 500


# --- objects ---

@pytest.mark.parametrize("value", [[], ["Auto"], {}, {"a": 1}, 5, None, True, deep(10)], ids=str)
def test_a_hints_annotation_may_be_anything(value: object) -> None:
    hints = {"service.kubernetes.io/topology-aware-hints": value}
    for layout in LAYOUTS:
        assert render([service(annotations=hints), endpoint_slice("10.0.0.1")], layout).names("nat", "KUBE-SVC-")


def test_an_annotation_of_brackets_is_no_list_of_addresses() -> None:
    pod = {"kind": "Pod", "metadata": {"name": "a",
                                       "annotations": {"cni.projectcalico.org/floatingIPs": "[" * 1_000_000}},
           "spec": {"nodeName": "node-1"}}
    with pytest.raises(ObjectError, match="is not a JSON list of strings"):
        floating_ips.read_endpoints([pod], "node-1")


def test_lists_are_not_nested_for_ever() -> None:
    inner: dict[str, Any] = {"kind": "IPPool"}
    for _level in range(20_000):
        inner = {"kind": "List", "items": [inner]}
    with pytest.raises(ObjectError, match="is a List in 8 others"):
        list(flatten("pools", [inner]))
    with pytest.raises(ObjectError):
        read_pools([inner])


# --- files ---

@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity"])
def test_numbers_that_json_does_not_know_are_refused(tmp_path: Path, number: str) -> None:
    (tmp_path / "c.json").write_text('{"kind": "List", "items": [' + number + "]}")
    with pytest.raises(ClusterFileError, match=f"{number} is no number that JSON knows"):
        read_items(str(tmp_path / "c.json"))


@pytest.mark.parametrize("text", [
    '{"kind": "Service", "metadata": {"name": 1e999}}', "kind: Service\nmetadata: {name: 0x" + "f" * 6000 + "}\n",
    "kind: List\nitems: [{kind: 0x" + "f" * 6000 + "}]\n"])
def test_numbers_that_cannot_be_written_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.yml").write_text(text)
    with pytest.raises(ClusterFileError, match="holds what JSON cannot say"):
        reduced(str(tmp_path / "c.yml"), str(tmp_path), lambda _text: None)


@pytest.mark.parametrize("item", [{"metadata": {"name": "a"}}, {"kind": 5}, {"kind": ["Service"]}], ids=str)
def test_an_object_without_a_kind_is_not_lost_on_the_way(item: dict[str, Any]) -> None:
    with pytest.raises(ObjectError, match="items.0..kind"):
        read_cluster(reduce_items([item]), LAYOUTS["1.36"])


def test_a_name_that_is_deep_is_sorted_and_left_to_who_reads_it(tmp_path: Path) -> None:
    item = {"kind": "Service", "metadata": {"name": deep(500)}}
    (tmp_path / "c.json").write_text(json.dumps({"kind": "List", "items": [item, item]}))
    sent = reduced(str(tmp_path / "c.json"), str(tmp_path), lambda _text: None)
    assert read_items(sent.path) == [item, item]


def test_a_second_key_among_many_is_found_at_once(tmp_path: Path) -> None:
    keys = ", ".join(f'"{number}": 1' for number in range(200_000))
    (tmp_path / "c.json").write_text("{" + keys + ', "199999": 1}')
    with pytest.raises(ClusterFileError, match="key '199999' is there twice"):
        read_items(str(tmp_path / "c.json"))


def test_gzip_of_more_than_the_limit_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_file, "_UNPACKED_BYTES", 1000)
    whole = b'{"kind": "List", "items": []}'
    for data, fits in ((whole + b" " * (1000 - len(whole)), True), (whole + b" " * (1001 - len(whole)), False)):
        for packed in (gzip.compress(data), gzip.compress(data[:10]) + gzip.compress(data[10:]) + b"\0\0"):
            (tmp_path / "c.gz").write_bytes(packed)
            if fits:
                assert read_items(str(tmp_path / "c.gz")) == []
            else:
                with pytest.raises(ClusterFileError, match="more than 1000 bytes when it is unpacked"):
                    read_items(str(tmp_path / "c.gz"))


def test_gzip_that_is_cut_is_refused(tmp_path: Path) -> None:
    (tmp_path / "c.gz").write_bytes(gzip.compress(b'{"kind": "List", "items": []}')[:-9])
    with pytest.raises(ClusterFileError, match="ends too early"):
        read_items(str(tmp_path / "c.gz"))


# --- rules of others ---

def test_a_jump_with_a_line_break_goes_by_its_number() -> None:
    built_in = {"PREROUTING": ["-j X", EVIL + "-j KUBE-SERVICES", "-j Y"], "OUTPUT": [], "INPUT": [], "POSTROUTING": []}
    current = {"nat": Table({**built_in, "X": [], "Y": []}, dict.fromkeys(built_in, "ACCEPT"))}
    wanted, _warnings = desired(read_cluster([], LAYOUTS["1.36"]), ProxyOptions(LAYOUTS["1.36"]), "ipv4")
    (text,) = [one.text for one in transactions(plan_family(current, wanted))]
    assert "-D PREROUTING 2\n" in text
    assert "DROP" not in text.replace("-j DROP\n", "")
    assert "INPUT -j DROP" not in text


def test_a_long_chain_with_a_line_break_in_it_is_written_anew() -> None:
    before = [f"-s 192.0.2.{number}/32 -j RETURN" for number in range(120)]
    plan = FamilyPlan("ipv4", [TablePlan("nat", [ChainWrite(Chain("KUBE-SERVICES", before, ordered=False),
                                                            [*before, EVIL + "-j RETURN"])], {}, [])], [])
    (one,) = transactions(plan)
    assert ":KUBE-SERVICES - [0:0]\n" in one.text
    assert "INPUT" not in one.text


@pytest.mark.parametrize("rule", [EVIL + "-j RETURN", "-m comment --comment \"\0\""])
def test_a_rule_with_a_line_break_is_never_written(rule: str) -> None:
    plan = FamilyPlan("ipv4", [TablePlan("nat", [ChainWrite(Chain("KUBE-SERVICES", [rule]), None)], {}, [])], [])
    with pytest.raises(PlanError, match="cannot be written, for it has a line break or NUL"):
        transactions(plan)


@pytest.mark.parametrize("backend", ["nft", "legacy"])
def test_a_jump_with_a_line_break_goes_on_a_real_node(backend: str) -> None:
    with node(backend) as one:
        _with_odd_jump(one)
        result = one.four_ways(services=[service()], endpoint_slices=[endpoint_slice("10.244.1.5")])
        assert result["changed"]
        assert "DROP" not in one.exec(one.tool("ipv4"), *LOCK, "-S", "INPUT").replace("-P INPUT DROP", "")
        assert one.save("ipv4").count("-A PREROUTING") == 2


def _with_odd_jump(one: Node) -> None:
    tool = one.tool("ipv4")
    for words in (["-N", "KUBE-SERVICES"], ["-A", "PREROUTING", "-j", "RETURN"],
                  ["-A", "PREROUTING", "-m", "comment", "--comment", "a\n-A INPUT -j DROP", "-j", "KUBE-SERVICES"]):
        one.exec(tool, *LOCK, "-t", "nat", *words)


def test_a_comment_that_is_no_text_may_stand_in_a_chain_of_calicos() -> None:
    built_in = {"FORWARD": ["-j cali-FORWARD"], "INPUT": [], "OUTPUT": []}
    foreign = '-m comment --comment "\udcff\udce9" -j ACCEPT'
    current = {"filter": Table({**built_in, "cali-FORWARD": [foreign]}, dict.fromkeys(built_in, "ACCEPT"))}
    wanted, _warnings = loops.desired(read_cidrs(["10.96.0.0/12"])[0], loops.LoopOptions(), "ipv4")
    (one,) = transactions(plan_family(current, wanted))
    assert "-I cali-FORWARD 2 " in one.text
    assert "\udcff" not in one.text


def test_an_entry_of_another_module_with_a_line_break_stays_as_it_is() -> None:
    built_in = {"PREROUTING": [], "INPUT": [], "OUTPUT": [], "POSTROUTING": []}
    entry = EVIL + "-j cali-nat-outgoing"
    current = {"nat": Table({**built_in, "cali-POSTROUTING": [entry]}, dict.fromkeys(built_in, "ACCEPT"))}
    wanted, _warnings = floating.desired([], floating.FloatingOptions(), "ipv4")
    (one,) = transactions(plan_family(current, wanted))
    assert "-I cali-POSTROUTING 1 " in one.text
    assert "nat-outgoing" not in one.text


@pytest.mark.parametrize("text", ["*a\x14\n-A X\n", "*a\x14\n*b\n", "*\udcc3\n"])
def test_a_table_of_an_odd_name_is_shown_in_one_line(text: str) -> None:
    with pytest.raises(SaveFormatError) as caught:
        parse(text)
    assert str(caught.value).isprintable()


@pytest.mark.parametrize("value", ["inf", "nan", "-1", "1e999", "2"])
def test_what_is_no_probability_is_no_reason_to_fail(value: str) -> None:
    rule = f"-m statistic --mode random --probability {value} -j X"
    assert same_rule(rule, rule, "ipv4")
    assert not same_rule(rule, "-j X", "ipv4")


@pytest.mark.parametrize("line", ["10.0.0.0/8 nomatch", "10.0.0.1;x", "$(x)", "10.0.0.1,eth0"])
def test_a_member_that_is_none_is_refused(line: str) -> None:
    with pytest.raises(ToolError, match="the list of set 'x' has something in it"):
        parse_list(f"Name: x\nType: hash:net\nHeader: family inet maxelem 5\nReferences: 0\nMembers:\n{line}\n")


def test_a_list_of_a_set_that_is_none_is_refused() -> None:
    with pytest.raises(ToolError, match="'many'"):
        parse_list("Name: x\nType: hash:net\nReferences: many\nMembers:\n")
