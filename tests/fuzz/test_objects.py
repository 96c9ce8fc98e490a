# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile objects: an error that says where, or rules for what was asked for, and never a foreign byte."""

from __future__ import annotations

from collections import Counter
from typing import Any

from fuzz import clusters
from fuzz.asked import Asked, asked, network_of, networks_named
from fuzz.budget import counted, fuzzed
from fuzz.hostile import broken, real, texts, values
from fuzz.runs import MODULES, Output, Refused, lines, options_of, run
from hypothesis import given
from hypothesis import strategies as st

Objects = list[Any]

everything = st.sampled_from(clusters.cluster())
#: One has the name of a neighbour, in another namespace.
services = st.sampled_from(clusters.services("evil", 3) + clusters.services("evil", 4, "web-1") + clusters.plain(
    "evil", 3) + [clusters.node("evil-1", 13)])
layouts = st.sampled_from(clusters.LAYOUTS)
GOOD = [*clusters.services("shop", 1), *clusters.services("shop", 2), clusters.node(clusters.NODE, 11)]
DETECT = {"mode": "cluster_cidr", "cidrs": ["10.244.0.0/16", "fd00:244::/48"]}


def kube(objects: Objects, layout: str, **options: Any) -> Output | Refused:
    """What kube_nat_chains makes of objects as they come out of a cluster file."""
    params = options_of("kube_nat_chains", cluster="/cluster.json", node_name=clusters.NODE, layout=layout,
                        allow_empty=True, detect_local=DETECT, **options)
    assert params is not None
    return from_file("kube_nat_chains", params, objects)


def from_file(name: str, params: dict[str, Any], objects: Objects) -> Output | Refused:
    """Run with objects where a module reads those of its file: the file itself is for test_files.py."""
    from unittest import mock

    from ansible_collections.metal.nodenet.plugins.module_utils.cluster import input as cluster_input
    from ansible_collections.metal.nodenet.plugins.module_utils.kube import nat

    with mock.patch.object(cluster_input, "read_input", lambda _params, _warnings: objects), \
            mock.patch.object(nat, "read_input", lambda _params, _warnings: objects):
        return run(name, params)


# --- what kube-proxy's objects lead to ---

def check_asked(output: Output, wanted: Asked) -> None:
    """No address, port or endpoint in a rule that no object names."""
    addresses = {network_of(address) for _owner, address, _protocol, _port in wanted.frontends}
    titles = {owner for owner, *_rest in (*wanted.frontends, *wanted.node_ports, *wanted.health_ports)}
    own = {network_of(text) for text in (*DETECT["cidrs"], "127.0.0.0/8", "127.0.0.1", "::1")}
    for rules in output.rules.values():
        for rule in rules:
            options, owner = rule.options, rule.comment.partition(" ")[0].partition(":")[0]
            if "-d" in options and "! -s" not in options and options["-d"] != "127.0.0.0/8":
                assert options["-d"] in addresses, rule
            if "--to-destination" in options:
                assert any(options["--to-destination"] == to and options["-p"] == protocol
                           for _owner, protocol, to in wanted.endpoints), rule
            if "--dport" in options:
                check_port(rule.options, wanted, rule)
            if "-s" in options:
                endpoints = {network_of(to.rpartition(":")[0].strip("[]")) for _owner, _protocol,
                             to in wanted.endpoints}
                assert options["-s"] in own | wanted.ranges | endpoints, rule
            if "/" in owner:
                assert owner in titles, rule


def check_port(options: dict[str, str], wanted: Asked, rule: object) -> None:
    """A port goes with its address and protocol, or is a node port."""
    port, protocol = int(options["--dport"]), options["-p"]
    if "-d" in options:
        assert any((network_of(address), one, number) == (options["-d"], protocol, port)
                   for _owner, address, one, number in wanted.frontends), rule
    else:
        assert any((one, number) == (protocol, port) for _owner, one, number in wanted.node_ports) or (
            protocol == "tcp" and any(number == port for _owner, number in wanted.health_ports)), rule


@fuzzed(2)
@given(broken(st.sampled_from((clusters.services("shop", 1), clusters.plain("shop", 1))), most=4), layouts)
@counted
def test_rules_are_for_what_services_and_slices_ask_for(drawn: Objects, layout: str) -> None:
    objects = real(drawn)
    output = kube(objects, layout)
    if isinstance(output, Output):
        check_asked(output, asked(objects))


@fuzzed()
@given(st.lists(broken(everything) | values, max_size=4), layouts)
@counted
def test_any_objects_give_rules_or_an_error(drawn: Objects, layout: str) -> None:
    objects = real(drawn)
    output = kube(objects, layout)
    if isinstance(output, Output):
        check_asked(output, asked(objects))


BASE = {layout: kube(GOOD, layout) for layout in clusters.LAYOUTS}


@fuzzed(2)
@given(broken(services), layouts, st.integers(0, len(GOOD)))
@counted
def test_a_hostile_object_leaves_its_neighbours_alone_or_is_refused(drawn: Any, layout: str, at: int) -> None:
    stranger = real(drawn)
    if isinstance(stranger, dict):
        metadata = stranger.get("metadata")
        # One that says it is a neighbour's is for the tests above.
        if isinstance(metadata, dict) and metadata.get("namespace") in ("shop", clusters.NODE):
            return
        if stranger.get("kind") == "Node" and isinstance(metadata, dict) and metadata.get("name") == clusters.NODE:
            return
    output = kube([*GOOD[:at], stranger, *GOOD[at:]], layout)
    if isinstance(output, Refused):
        return
    base = BASE[layout]
    assert isinstance(base, Output)
    assert not lines(base) - lines(output)
    titles = {chain.name: chain.title for one in output.desired.values() for table in one.tables.values()
              for chain in table.chains.values()}
    namespaces = {str(metadata.get("namespace") or "default")} if isinstance(stranger, dict) and isinstance(
        metadata := stranger.get("metadata"), dict) else set()
    for (_family, _table, chain, text), _number in (lines(output) - lines(base)).items():
        assert any(f"{one}/" in text or titles[chain].startswith(f"{one}/") for one in namespaces), text


# --- what Calico's objects lead to ---

@fuzzed()
@given(st.lists(broken(st.sampled_from(clusters.calico() + [clusters.node("node-2", 12)])), max_size=4),
       st.sampled_from(("3.19", "3.29", "3.31", "3.33")))
@counted
def test_pools_and_hosts_that_are_masqueraded_are_named(drawn: Objects, version: str) -> None:
    objects = real(drawn)
    params = options_of("calico_masq", cluster="/cluster.json", allow_empty=True, calico_version=version,
                        exclusions="pools_and_hosts" if version in ("3.31", "3.33") else "pools")
    assert params is not None
    output = from_file("calico_masq", params, objects)
    if isinstance(output, Output):
        named = networks_named(objects, "IPPool", "Node")
        for members in output.sets.values():
            assert {network_of(member) for member in members} <= named
        for rules in output.rules.values():
            assert not any({"-s", "-d", "--to-source"} & set(rule.options) for rule in rules)


@fuzzed()
@given(st.lists(broken(st.sampled_from(clusters.calico())), max_size=4))
@counted
def test_floating_ips_lead_where_an_object_says(drawn: Objects) -> None:
    objects = real(drawn)
    params = options_of("floating_ip", cluster="/cluster.json", node_name=clusters.NODE)
    assert params is not None
    output = from_file("floating_ip", params, objects)
    if isinstance(output, Output):
        named = networks_named(objects, "Pod", "WorkloadEndpoint")
        for rules in output.rules.values():
            for rule in rules:
                for option in {"-s", "-d", "--to-source", "--to-destination"} & set(rule.options):
                    assert network_of(rule.options[option]) in named, rule


@fuzzed()
@given(st.lists(broken(st.sampled_from(clusters.calico())), max_size=4), st.sampled_from(("drop", "reject")))
@counted
def test_addresses_that_are_blocked_are_named(drawn: Objects, action: str) -> None:
    objects = real(drawn)
    params = options_of("service_loop_block", cluster="/cluster.json", action=action)
    assert params is not None
    output = from_file("service_loop_block", params, objects)
    if isinstance(output, Output):
        named = networks_named(objects, "BGPConfiguration")
        blocked = Counter(rule.options["-d"] for rules in output.rules.values() for rule in rules
                          if rule.chain == "cali-cidr-block")
        assert set(blocked) <= named


# --- options ---

OPTIONS = {
    "kube_nat_chains": {
        "services": clusters.services("shop", 1)[:1], "endpoint_slices": clusters.services("shop", 1)[1:],
        "node_name": clusters.NODE, "node_labels": {"topology.kubernetes.io/zone": "a"},
        "node_addresses": ["192.0.2.11"],
        "layout": "1.36", "detect_local": DETECT, "masquerade_all": False, "masquerade_bit": 14,
        "foreign_mark_mask": "0xffff0000", "random_fully": "auto", "nodeport_addresses": ["192.0.2.0/24"],
        "localhost_nodeports": True, "provide_mark_drop": False, "allowed_external_ips": ["198.51.100.0/24"],
        "families": ["ipv4", "ipv6"], "allow_empty": True},
    "calico_masq": {
        "pools": [clusters.calico()[0], {"cidr": "10.245.0.0/16", "masquerade": True}], "calico_version": "3.33",
        "nat_outgoing_address": "192.0.2.1", "nat_port_range": "32768:65535", "interface_filter": "eth+",
        "exclusions": "pools_and_hosts", "hosts": ["192.0.2.11", "192.0.2.0/24", clusters.node("node-2", 12)],
        "max_ipset_size": 1048576, "rule_hashes": True, "insert_mode": "insert", "dataplane": "iptables"},
    "floating_ip": {
        "mappings": [{"external": "198.51.100.70", "internal": "10.244.1.70", "endpoint": "shop/web"}],
        "calico_version": "3.33", "enabled": True, "metadata_address": "192.0.2.9:8775", "node_name": clusters.NODE},
    "service_loop_block": {
        "cidrs": ["10.96.0.0/12", "fd00:96::/108", "10.97.0.1"], "pools": ["10.244.0.0/16", {"cidr": "10.245.0.0/16"}],
        "action": "drop", "strict": False, "calico_version": "3.33"},
    "calico_host_ips": {
        "addresses": [{"address": "192.0.2.11", "interface": "eth0"}, {"address": "2001:db8::11", "interface": "eth0"}],
        "workload_prefixes": ["cali"], "exclude_interfaces": ["kube-ipvs0", "/^docker/"], "forward_check": True,
        "nodeport_ranges": ["30000:32767"], "max_ipset_size": 1000, "calico_version": "3.33"},
}


@fuzzed(2)
@given(st.sampled_from(sorted(MODULES)).flatmap(lambda name: st.tuples(st.just(name), broken(st.just(OPTIONS[name])))))
@counted
def test_any_options_give_rules_or_an_error(drawn: tuple[str, dict[str, Any]]) -> None:
    name, options = drawn[0], real(drawn[1])
    params = options_of(name, **options)
    if params is not None:
        run(name, params)


@fuzzed()
@given(st.sampled_from(sorted(OPTIONS)), texts, st.data())
@counted
def test_any_text_in_any_option_gives_rules_or_an_error(name: str, text: str, data: st.DataObject) -> None:
    option = data.draw(st.sampled_from(sorted(OPTIONS[name])))
    given_value: Any = OPTIONS[name][option]
    value = [text] if isinstance(given_value, list) else dict.fromkeys(given_value, text) if isinstance(
        given_value, dict) else text
    params = options_of(name, **{**OPTIONS[name], option: value})
    if params is not None:
        run(name, params)
