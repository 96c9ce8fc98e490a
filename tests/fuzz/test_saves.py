# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile rules: whatever others have in the kernel is read, stays byte for byte, and is never written by us."""

from __future__ import annotations

import contextlib
import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple
from unittest import mock

from ansible_collections.metal.nodenet.plugins.module_utils.calico import floating, floating_ips, loops, masq
from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import read_pools
from ansible_collections.metal.nodenet.plugins.module_utils.calico.service_cidrs import read_cidrs
from ansible_collections.metal.nodenet.plugins.module_utils.calico.stale import stale_flows as stale_floating
from ansible_collections.metal.nodenet.plugins.module_utils.kube.layout import LAYOUTS
from ansible_collections.metal.nodenet.plugins.module_utils.kube.objects import read_cluster
from ansible_collections.metal.nodenet.plugins.module_utils.kube.options import ProxyOptions
from ansible_collections.metal.nodenet.plugins.module_utils.kube.rules import desired as kube_desired
from ansible_collections.metal.nodenet.plugins.module_utils.kube.stale import stale_flows
from ansible_collections.metal.nodenet.plugins.module_utils.kube.titles import titles
from ansible_collections.metal.nodenet.plugins.module_utils.managers import MANAGERS
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter import conntrack, netlink
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.canonical import same_rule
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ipset import SetState, parse_list
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, Desired, Tables
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan_hash import plan_hash
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.save_format import Dump, parse, write
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.set_plan import plan_sets, session
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.state_text import gathered
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.undo import undo
from fuzz import clusters
from fuzz.budget import counted, fuzzed
from fuzz.hostile import JINJA, RESTORE, SHELL, scattered
from fuzz.restore import read_sets
from fuzz.runs import Refused, guarded
from hypothesis import given
from hypothesis import strategies as st

BUILT_IN = {"nat": ("PREROUTING", "INPUT", "OUTPUT", "POSTROUTING"), "filter": ("INPUT", "FORWARD", "OUTPUT"),
            "mangle": ("PREROUTING", "INPUT", "FORWARD", "OUTPUT", "POSTROUTING")}
OURS = ("KUBE-SERVICES", "KUBE-SVC-AAAAAAAAAAAAAAAA", "KUBE-POSTROUTING", "KUBE-NODEPORTS", "KUBE-MARK-MASQ",
        "KUBE-SEP-XYZ",
        "cali-POSTROUTING", "cali-PREROUTING", "cali-OUTPUT", "cali-FORWARD", "cali-fip-dnat", "cali-nat-outgoing",
        "cali-cidr-block")
OTHERS = ("DOCKER", "KUBE-ROUTER-X", "f2b-sshd", "KUBE-FIREWALL", "KUBE-MARK-DROP", "cali-tw-x", "x\udcff", "é", "-",
          "KUBE-")
SHARED = {"nat": ("cali-POSTROUTING", "cali-PREROUTING", "KUBE-SERVICES"), "filter": ("cali-FORWARD",)}
#: Bytes that are no UTF-8 come as surrogates.
comments = st.one_of(
    st.sampled_from(SHELL + JINJA + tuple(text.replace("\x00", "") for text in RESTORE)),
    st.text(st.characters(exclude_characters="\x00\r", exclude_categories=["Cs"]), max_size=12),
    st.text(st.sampled_from("ab \n\"'\\#*:-\udcff\udce9\u2028\x85\x0b"), max_size=12),
    st.sampled_from(("cali:AAAAAAAAAAAAAAAA", "BPF loopback SNAT", "a\nCOMMIT\n*nat", "\n-A INPUT -j KUBE-SERVICES\n",
                     "\n# x")))
matches = st.sampled_from((
    "", "-s 192.0.2.1/32", "! -d 198.51.100.0/24", "-p tcp -m tcp --dport 80", "-p udp -m udp --dport 53", "-i eth0",
    "-m mark --mark 0x4000/0x4000", "-m conntrack --ctstate RELATED,ESTABLISHED", "-m nfacct --nfacct-name x",
    "-m unknown --what",
    "-m statistic --mode random --probability 0.50000000000", "-m statistic --probability inf", "-m mark --mark x",
    "-d 10.96.0.1/32 -p udp -m udp --dport 99999999999999999999", "-m recent --name x --rsource", "-p 6",
    "-m string --string x",
    "--dport 80", "-m set --match-set x src", "!", "-m", "-j", "-s", "-m statistic --probability nan",
    "-d 10.96.0.1/32 "))
targets = st.sampled_from((
    "", "-j DROP", "-j ACCEPT", "-g DOCKER", "-j LOG --log-prefix \"-j x \"", "-j DNAT --to-destination 10.0.0.1:80",
    "-j DNAT --to-destination [fd00::1]:80", "-j MARK --set-xmark 0x1/0x1", "-j MARK --set-mark y", "-j REJECT",
    "-j DNAT --to-destination 10.0.0.1:99999999", *(f"-j {name}" for name in OURS), "-j", "-g"))


def quoted(text: str) -> str:
    """As iptables-save writes it: ``"``, ``'`` and backslashes with a backslash, the rest as it is."""
    return '"' + "".join("\\" + char if char in "\"'\\" else char for char in text) + '"'


_ID = re.compile(r'-m comment --comment "?cali:[A-Za-z0-9_-]{16}"? ?')
BREAK = "a\n-A INPUT -j DROP\n"
ODD = "\udcff\udce9"


@st.composite
def rules(draw: st.DrawFn) -> str:
    """A rule as it may stand in a kernel, sensible or not."""
    if draw(st.integers(0, 3)) == 0:  # one that leads to a chain of ours, so that it may be ours to delete
        text = draw(comments | st.sampled_from((BREAK, ODD)))
        return f"-m comment --comment {quoted(text)} -j {draw(st.sampled_from(OURS))}"
    comment = f"-m comment --comment {quoted(draw(comments | st.just(ODD)))}" if draw(st.booleans()) else ""
    parts = [draw(matches), comment, draw(targets)]
    return " ".join(part for part in (reversed(parts) if draw(st.integers(0, 9)) == 0 else parts) if part)


@st.composite
def states(draw: st.DrawFn) -> Tables:
    """What a kernel may hold: chains of ours and of others with rules of anybody."""
    found: Tables = {}
    for name in draw(st.lists(st.sampled_from(("nat", "filter", "mangle", "raw")), unique=True, min_size=1)):
        built_in = BUILT_IN.get(name, ("PREROUTING", "OUTPUT"))
        chains: dict[str, list[str]] = {chain: [] for chain in built_in}
        chains.update({chain: [] for chain in draw(st.lists(st.sampled_from(OURS + OTHERS), unique=True, max_size=6))})
        chains.update({chain: [] for chain in SHARED[name] if draw(st.booleans())} if name in SHARED else {})
        for chain in chains:
            chains[chain] = draw(st.lists(rules(), max_size=3))
        if "KUBE-SERVICES" in chains and draw(st.booleans()):
            # So many that the chain is edited and not written again.
            chains["KUBE-SERVICES"] += [f"-s 192.0.2.{number}/32 -j RETURN" for number in range(110)]
        found[name] = type_of_table(chains, dict.fromkeys(built_in, "ACCEPT"))
    return found


def type_of_table(chains: dict[str, list[str]], policies: dict[str, str]) -> Any:
    from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Table

    return Table(chains, policies)


@functools.lru_cache(maxsize=1)
def wanted() -> dict[str, Desired]:
    """What each module wants on a good day."""
    objects = clusters.cluster()
    found = {}
    for layout in clusters.LAYOUTS:
        cluster = read_cluster(objects, LAYOUTS[layout])
        found[f"kube {layout}"] = kube_desired(cluster, ProxyOptions(layout=LAYOUTS[layout], node_name=clusters.NODE),
                                               IPV4)[0]
    found["masq"] = masq.desired(read_pools(objects)[0], masq.MasqOptions(), IPV4)[0]
    given_ips = floating_ips.read_endpoints(objects, clusters.NODE)[0]
    found["floating"] = floating.desired(given_ips, floating.FloatingOptions(), IPV4)[0]
    found["loops"] = loops.desired(read_cidrs(["10.96.0.0/12"])[0], loops.LoopOptions(), IPV4)[0]
    for name, part in MANAGERS.items():
        found[f"no {name}"] = part.nothing(IPV4)
    return found


# --- a kernel that is told what to do, as far as we may tell it anything ---

class Kernel(NamedTuple):
    """Chains by table; it takes a restore input line by line, and nothing that was not intended."""

    chains: dict[str, dict[str, list[str]]]

    def restore(self, text: str) -> None:
        """Carry out an input."""
        table: dict[str, list[str]] = {}
        for line in text.split("\n")[:-1]:
            verb, _space, rest = line.partition(" ")
            chain, _space, rule = rest.partition(" ")
            if line.startswith("*"):
                table = self.chains.setdefault(line[1:], {chain: [] for chain in BUILT_IN[line[1:]]})
            elif line.startswith(":"):
                assert line.endswith(" - [0:0]"), line
                table[line[1:-len(" - [0:0]")]] = []
            elif verb == "-A":
                table[chain].append(rule)
            elif verb == "-X":
                assert not table.pop(chain), line
            elif verb == "-I":
                number, _space, rule = rule.partition(" ")
                table[chain].insert(int(number) - 1, rule)
            elif verb == "-D":
                if rule.isdigit():
                    del table[chain][int(rule) - 1]
                else:
                    table[chain].remove(rule)
            else:
                assert line == "COMMIT", line


def kernel(state: Tables) -> Kernel:
    """A copy of a state."""
    return Kernel({name: {chain: list(found) for chain, found in table.chains.items()} for name,
                   table in state.items()})


def tables_of(one: Kernel, before: Tables) -> Tables:
    """What a save would read back."""
    return {name: type_of_table({chain: list(found) for chain, found in chains.items()},
                                before[name].policies if name in before else {}) for name, chains in one.chains.items()}


def others(state: Tables, desired: Desired) -> dict[str, Any]:
    """What is neither in a chain of ours nor a rule that leads to one, or that is an entry of ours.

    Entries of other modules get new ids, as Felix gives them to all rules of a chain.
    """
    found = {}
    for name, table in state.items():
        want = desired.tables.get(name)
        if want is None:
            found[name] = table.chains
            continue
        shared = {chain.name: chain for chain in want.shared}

        def foreign(chain: str, rule: str, want: Any = want, shared: Any = shared) -> bool:
            if chain in shared:
                return shared[chain].rank_of(rule) not in shared[chain].ranks
            return not any(f" {name}" in f" {rule}" for name in (*OURS, *want.chains))

        found[name] = {chain: [rule for rule in rules if foreign(chain, rule)] for chain, rules in table.chains.items()
                       if not want.owns(chain) and chain not in want.chains}
        found[name] = {chain: [_ID.sub("", rule) for rule in rules] if chain in shared else rules
                       for chain, rules in found[name].items() if rules}
    return {name: chains for name, chains in found.items() if any(chains.values())}


names = st.deferred(lambda: st.sampled_from(sorted(wanted())))


@fuzzed(2)
@given(states(), names, st.sampled_from((None, 3)))
@counted
def test_rules_of_others_stay_and_are_never_written(state: Tables, name: str, batch: int | None) -> None:
    text = write(state)
    read = guarded(lambda: parse(text))
    assert not isinstance(read, Refused), read
    assert read == state
    desired = wanted()[name]
    plan = guarded(lambda: plan_family(read, desired))
    assert not isinstance(plan, Refused), plan
    assert not isinstance(guarded(lambda: plan_hash([("x", plan, [])])), Refused)
    texts = guarded(lambda: [one.text for one in transactions(plan, batch)])
    assert not isinstance(texts, Refused), texts
    node = kernel(read)
    for one in texts:
        assert "\x00" not in one
        node.restore(one)
    after = tables_of(node, read)
    assert others(after, desired) == others(read, desired)
    guarded(lambda: gathered(read, desired))
    guarded(lambda: stale(read, desired))
    guarded(lambda: [titles(table.removals) for table in plan.tables])
    back = guarded(lambda: [one.text for one in transactions(undo(plan, after), batch)])
    if not isinstance(back, Refused):
        for one in back:
            node.restore(one)
        assert others(tables_of(node, read), desired) == others(read, desired)
    else:
        assert "line break" in back.message


def stale(read: Tables, desired: Desired) -> None:
    """What looks for flows in the rules of both sides."""
    if "mangle" in desired.tables:
        stale_flows(read, desired, ["192.0.2.1"])
    elif "nat" in desired.tables:
        stale_floating(read, desired)


@fuzzed()
@given(states(), st.integers(0, 10 ** 9), st.integers(1, 20), names)
@counted
def test_a_damaged_dump_is_refused_or_read(state: Tables, seed: int, flips: int, name: str) -> None:
    text = scattered(seed, write(state).encode("utf-8", "surrogateescape"), flips).decode("utf-8", "surrogateescape")

    def read_all() -> None:
        dump = Dump(text)
        assert dump.digest
        dump.has_chain(("KUBE-",))
        for notice in dump.notices:
            assert "\n" not in notice
        plan = plan_family(dump.tables, wanted()[name])
        transactions(plan)
        stale(dump.tables, wanted()[name])

    guarded(read_all)


@fuzzed(2)
@given(rules(), rules(), st.sampled_from(("ipv4", "ipv6")))
@counted
def test_any_two_rules_are_compared(one: str, other: str, family: str) -> None:
    assert same_rule(one, one, family)
    pair = (one, other)
    assert same_rule(*pair, family) == same_rule(*reversed(pair), family)


HEAD = ("Name: x\nType: hash:net\nRevision: 7\nHeader: family inet hashsize 1024 maxelem 65536\n"
        "References: 0\nMembers:\n")
members = st.sampled_from(("10.0.0.0/8", "192.0.2.1", "10.0.0.0/24 nomatch", "10.0.0.1,eth0",
                           "10.0.0.1 comment \"x\ny\"", "\udcff",
                           "x; touch y", "$(touch x)", "{{ 1 }}", "", " ", "fd00::/8", "10.0.0.0/8 timeout 5", "\n",
                           "\x00"))


@fuzzed()
@given(st.lists(members | comments, max_size=6), st.integers(0, 10 ** 9), st.integers(0, 4),
       st.sampled_from(("masq", "no calico_masq")))
@counted
def test_any_listing_of_a_set_is_read_and_only_our_members_are_added(given_members: list[str], seed: int, flips: int,
                                                                     name: str) -> None:
    text = (HEAD + "".join(one + "\n" for one in given_members)).encode("utf-8", "surrogateescape")
    listing = scattered(seed, text, flips).decode("utf-8", "surrogateescape")
    found = guarded(lambda: parse_list(listing))
    if isinstance(found, Refused):
        return
    assert isinstance(found, SetState)
    desired = wanted()[name]
    current = dict.fromkeys(desired.owned_sets, found)
    written = guarded(lambda: session(plan_sets(current, desired), desired.family))
    if isinstance(written, Refused) or not written:
        return
    added = {one for group in read_sets(written).values() for one in group}
    assert added <= {member for one in desired.sets for member in one.members} | found.members


attributes = st.recursive(
    st.binary(max_size=20), lambda inner: st.lists(st.tuples(st.integers(0, 20), inner), max_size=4).map(
        lambda parts: b"".join(netlink.attribute(kind, value) for kind, value in parts)), max_leaves=8)
#: What looks like a flow, with addresses and ports of any length.
sides = st.tuples(st.binary(max_size=17), st.binary(max_size=17), st.binary(max_size=3)).map(
    lambda parts: netlink.attribute(1, netlink.attribute(1, parts[0]) + netlink.attribute(2, parts[1]))
    + netlink.attribute(2, netlink.attribute(1, parts[2]) + netlink.attribute(2, parts[2])))
flows = st.tuples(sides, sides).map(lambda two: netlink.attribute(1, two[0]) + netlink.attribute(2, two[1]))
DNS = conntrack.FlowSelector("ipv4", frozenset({"10.0.0.1"}), 53, frozenset(), "x", "y")


@fuzzed()
@given(st.lists((attributes | flows).map(lambda data: b"\x02\x00\x00\x00" + data) | st.binary(max_size=60), max_size=4))
@counted
def test_any_flow_of_the_kernel_is_read_or_refused(messages: list[bytes]) -> None:
    with mock.patch.object(conntrack, "Netlink") as link:
        link.return_value.__enter__.return_value.dump.return_value = messages
        guarded(lambda: conntrack.find_flows([DNS]))


@fuzzed()
@given(st.text(st.characters(exclude_categories=[]), max_size=200))
@counted
def test_any_text_is_no_dump_or_one(text: str) -> None:
    readers: tuple[Callable[[str], object], ...] = (parse, parse_list)
    for reader in readers:
        with contextlib.suppress(NetfilterError):
            reader(text)
