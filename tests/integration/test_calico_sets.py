# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets on a real kernel: what is in them, how they change, and whose they are."""

from __future__ import annotations

from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import calico_host_ips, calico_masq, service_loop_block
from support.calico import MASQ, changed, everything, four_ways, members, sets, settle, shown
from support.node import LOCK, Node, Result
from support.shims import Shims

MASQ_SET = "cali40masq-ipam-pools"
ALL_SET = "cali40network-ip-pools"
HOSTS_SET = "cali40all-hosts-net"


def pools(*cidrs: str, **options: Any) -> dict[str, Any]:
    return {"pools": [{"cidr": cidr, "masquerade": True} for cidr in cidrs], **options}


def hosts(*addresses: Any, **options: Any) -> dict[str, Any]:
    return {**MASQ, "exclusions": "pools_and_hosts", "hosts": list(addresses), **options}


def kube_host(name: str, address: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name},
            "status": {"addresses": [{"type": "InternalIP", "address": address}]}}


def recorded(one: Node, shims: Shims, **arguments: Any) -> Result:
    """Run with every call of ipset in ``calls`` and what restore was given in ``input``."""
    shims.add("ipset", 'echo "$@" >> "$HERE/calls"; [ "$1" = restore ] || exec "$REAL" "$@"; '
                       'tee -a "$HERE/input" | "$REAL" "$@"')
    return one.module(module=calico_masq, **arguments, environment=shims.environment)


def test_f082_nested_networks_are_members_of_their_own_and_host_bits_are_not(kube_node: Node) -> None:
    result = four_ways(kube_node, calico_masq, backend=kube_node.backend,
                       **pools("192.0.2.0/24", "192.0.2.0/25", "192.0.2.1/32", "192.0.2.77/24"))
    assert members(kube_node, MASQ_SET) == members(kube_node, ALL_SET) == ["192.0.2.0/24", "192.0.2.0/25", "192.0.2.1"]
    assert [warning for warning in result["warnings"] if "192.0.2.77/24" in warning]
    assert shown(result, "ipv4 sets") == [
        f"+{line}" for name in (ALL_SET, MASQ_SET) for line in (
            f"create {name} hash:net maxelem 1048576", f"add {name} 192.0.2.0/24", f"add {name} 192.0.2.0/25",
            f"add {name} 192.0.2.1")]


def test_f048_spellings_of_one_ipv6_network_are_one_member(kube_node: Node) -> None:
    four_ways(kube_node, calico_masq, backend=kube_node.backend,
              **pools("2001:DB8:0:0::/64", "2001:db8::/64", "2001:0db8:1::1/128"))
    assert members(kube_node, "cali60masq-ipam-pools") == ["2001:db8:1::1", "2001:db8::/64"]


@pytest.mark.parametrize("family", ["inet", "inet6"])
def test_f084_a_set_of_another_type_is_refused_while_a_rule_names_it(kube_node: Node, family: str) -> None:
    kube_node.exec("ipset", "create", MASQ_SET, "hash:ip", "family", family)
    tool = kube_node.tool("ipv4" if family == "inet" else "ipv6")
    kube_node.exec(tool, *LOCK, "-N", "MINE")
    kube_node.exec(tool, *LOCK, "-A", "MINE", "-m", "set", "--match-set", MASQ_SET, "src", "-j", "RETURN")
    before = everything(kube_node)
    for check in (True, False):
        result = kube_node.module(check=check, module=calico_masq, **MASQ, backend=kube_node.backend)
        assert result["failed"]
        assert result["changed"] is False
        for word in (MASQ_SET, "hash:ip", "hash:net", family, "state absent"):
            assert word in result["msg"]
        assert everything(kube_node) == before


@pytest.mark.parametrize(("kind", "family"), [("hash:ip", "inet"), ("hash:net", "inet6"), ("list:set", "")])
def test_f084_a_set_of_another_type_is_replaced_where_nothing_names_it(kube_node: Node, kind: str,
                                                                       family: str) -> None:
    kube_node.exec("ipset", "create", MASQ_SET, kind, *(["family", family] if family else []))
    result = four_ways(kube_node, calico_masq, **MASQ, backend=kube_node.backend)
    assert f"-create {MASQ_SET} {kind} maxelem" in "\n".join(shown(result, "ipv4 sets"))
    assert members(kube_node, MASQ_SET) == ["10.244.0.0/16"]
    assert f"create {MASQ_SET} hash:net family inet maxelem 1048576" in sets(kube_node)


def test_f084_removal_makes_way_where_only_our_own_rules_name_the_set(kube_node: Node) -> None:
    kube_node.exec("ipset", "create", MASQ_SET, "hash:ip")
    kube_node.load("ipv4", f"*nat\n:cali-nat-outgoing - [0:0]\n-A cali-nat-outgoing -m set --match-set {MASQ_SET} src "
                           "-j MASQUERADE\nCOMMIT\n")
    assert kube_node.module(module=calico_masq, **MASQ)["failed"]
    four_ways(kube_node, calico_masq, state="absent")
    four_ways(kube_node, calico_masq, **MASQ, backend=kube_node.backend)
    assert f"create {MASQ_SET} hash:net family inet maxelem 1048576" in sets(kube_node)


def test_f085_maxelem_of_a_live_set_that_rules_name_is_raised_by_a_swap(kube_node: Node, shims: Shims) -> None:
    four_ways(kube_node, calico_masq, **MASQ, max_ipset_size=65536, backend=kube_node.backend)
    rules = kube_node.saves()
    predicted = kube_node.module(check=True, module=calico_masq, **MASQ)
    result = recorded(kube_node, shims, **MASQ)
    assert result["changed"]
    assert result["diff"] == predicted["diff"]
    assert [entry["after_header"] for entry in result["diff"]] == ["ipv4 sets", "ipv6 sets"]
    assert f"-create {MASQ_SET} hash:net maxelem 65536" in shown(result, "ipv4 sets")
    assert f"+create {MASQ_SET} hash:net maxelem 1048576" in shown(result, "ipv4 sets")
    assert result["plan"]["set_members"] == {"added": 0, "changed": 0, "removed": 0}
    swaps = [line for line in shims.log("input") if line.startswith("swap")]
    assert {line.split()[2] for line in swaps} == {MASQ_SET, ALL_SET, "cali60masq-ipam-pools", "cali60network-ip-pools"}
    assert kube_node.saves() == rules
    assert not [line for line in sets(kube_node) if not line.split()[1].startswith(("cali40", "cali60"))]
    assert members(kube_node, MASQ_SET) == ["10.244.0.0/16"]
    for check in (True, False):
        again = kube_node.module(check=check, module=calico_masq, **MASQ)
        assert (again["changed"], again["diff"]) == (False, [])


@pytest.mark.parametrize("then", [{**MASQ}, {**MASQ, "max_ipset_size": 65536}, {"state": "absent"}],
                         ids=["another swap", "no change", "absent"])
def test_f085_a_temporary_set_that_a_crash_left_goes(kube_node: Node, shims: Shims, then: dict[str, Any]) -> None:
    four_ways(kube_node, calico_masq, **MASQ, max_ipset_size=65537, backend=kube_node.backend)
    recorded(kube_node, shims, **MASQ, max_ipset_size=65536)
    temporary = next(line.split()[1] for line in shims.log("input") if line.startswith("create"))
    kube_node.exec("ipset", "create", temporary, "hash:ip")
    assert four_ways(kube_node, calico_masq, **then)["changed"]
    assert temporary not in kube_node.exec("ipset", "list", "-name")


def test_f085_a_full_set_is_exchanged_as_a_whole(kube_node: Node) -> None:
    """Old and new members do not fit in together."""
    four_ways(kube_node, calico_masq, **pools("10.1.0.0/16", "10.2.0.0/16", max_ipset_size=2),
              backend=kube_node.backend)
    result = four_ways(kube_node, calico_masq, **pools("10.3.0.0/16", "10.4.0.0/16", max_ipset_size=2))
    assert result["plan"]["set_members"] == {"added": 4, "changed": 0, "removed": 4}
    assert members(kube_node, MASQ_SET) == ["10.3.0.0/16", "10.4.0.0/16"]


@pytest.mark.parametrize("filled", [True, False])
def test_f086_more_members_than_maxelem_are_refused_before_anything_is_written(kube_node: Node, filled: bool) -> None:
    if filled:
        four_ways(kube_node, calico_masq, **pools("10.1.0.0/16", max_ipset_size=2), backend=kube_node.backend)
    before = everything(kube_node)
    for check in (True, False):
        result = kube_node.module(check=check, module=calico_masq,
                                  **pools("10.1.0.0/16", "10.2.0.0/16", "10.3.0.0/16", max_ipset_size=2))
        assert result["failed"]
        assert result["changed"] is False
        for word in ("max_ipset_size", " 2 ", " 3 "):
            assert word in result["msg"]
        assert everything(kube_node) == before


def test_f088_a_set_that_a_foreign_rule_names_stays_and_the_rest_goes(kube_node: Node) -> None:
    four_ways(kube_node, calico_masq, **MASQ, backend=kube_node.backend)
    kube_node.iptables("-N", "R")
    kube_node.iptables("-A", "R", "-m", "set", "--match-set", MASQ_SET, "src", "-j", "RETURN")
    result = kube_node.module(module=calico_masq, state="absent")
    assert result["changed"]
    assert not result.get("failed"), result["msg"]
    assert [warning for warning in result["warnings"] if MASQ_SET in warning and "stays" in warning]
    assert sets(kube_node) == [f"add {MASQ_SET} 10.244.0.0/16",
                               f"create {MASQ_SET} hash:net family inet maxelem 1048576"]
    assert "cali-" not in "".join(kube_node.saves().values())
    assert f"-A R -m set --match-set {MASQ_SET} src -j RETURN" in kube_node.save("ipv4")
    for check in (True, False):
        again = kube_node.module(check=check, module=calico_masq, state="absent")
        assert (again["changed"], again["diff"]) == (False, [])
    kube_node.iptables("-F", "R")
    assert four_ways(kube_node, calico_masq, state="absent")["changed"]
    assert sets(kube_node) == []


def test_f088_sets_go_although_the_kernel_frees_rules_a_moment_later(kube_node: Node) -> None:
    for _time in range(10):
        assert changed(kube_node, module=calico_masq, **MASQ, backend=kube_node.backend, verify=False)
        result = kube_node.module(module=calico_masq, state="absent", verify=False)
        assert not result.get("failed"), result["msg"]
        assert sets(kube_node) == []


def test_f088_a_set_that_is_freed_late_is_tried_again(kube_node: Node, shims: Shims) -> None:
    four_ways(kube_node, calico_masq, **MASQ, backend=kube_node.backend)
    shims.add("ipset", f"""[ "$1 $2" = "destroy {MASQ_SET}" ] || exec "$REAL" "$@"
echo x >> "$HERE/tries"
[ "$(wc -l < "$HERE/tries")" -gt 3 ] && exec "$REAL" "$@"
echo "ipset v7.17: Set cannot be destroyed: it is in use by a kernel component" >&2; exit 1""")
    result = kube_node.module(module=calico_masq, state="absent", environment=shims.environment)
    assert not result.get("failed"), result["msg"]
    assert len(shims.log("tries")) == 4
    assert sets(kube_node) == []


PICKY = """echo "$@" >> "$HERE/calls"
case "$1 $2" in
"list -name" | "restore "* | "destroy cali"* | "list cali40"* | "list cali60"* | "list nodenet-"*) exec "$REAL" "$@" ;;
esac
echo "ipset v7.17: Kernel and userspace incompatible: settype hash:ip with revision 7 not supported by userspace." >&2
exit 1"""


def test_f089_a_set_of_another_program_that_cannot_be_listed_is_never_listed(kube_node: Node, shims: Shims) -> None:
    kube_node.exec("ipset", "create", "newer", "hash:ip")
    kube_node.exec("ipset", "create", "cali-mine-not-yours", "hash:ip")
    shims.add("ipset", PICKY)
    options: dict[str, Any] = {"environment": shims.environment, "module": calico_masq}
    assert changed(kube_node, **MASQ, backend=kube_node.backend, **options)
    assert not changed(kube_node, **MASQ, **options)
    assert "sets" in kube_node.module(state="gathered", **options)["gathered"]
    assert changed(kube_node, state="absent", **options)
    assert shims.log("calls")
    assert not [call for call in shims.log("calls") if call == "list" or "newer" in call or "mine" in call]
    assert kube_node.exec("ipset", "list", "-name").split() == ["newer", "cali-mine-not-yours"]


def test_f089_a_set_of_ours_that_cannot_be_read_is_named_and_built_anew(kube_node: Node, shims: Shims) -> None:
    four_ways(kube_node, calico_masq, **MASQ, backend=kube_node.backend)
    kube_node.exec("ipset", "add", MASQ_SET, "10.99.0.0/16")
    wanted = kube_node.saves()
    shims.add("ipset", f"""[ "$1" != restore ] || {{ tee -a "$HERE/input" | "$REAL" "$@"; exit; }}
if [ "$1 $2" = "list {MASQ_SET}" ] && ! grep -q "^swap .* {MASQ_SET}" "$HERE/input" 2>/dev/null; then
  echo "ipset v7.17: settype hash:net with revision 9 not supported by userspace." >&2; exit 1
fi
exec "$REAL" "$@" """)
    for check in (True, False):
        result = kube_node.module(check=check, module=calico_masq, **MASQ, environment=shims.environment)
        assert result["changed"]
        assert [warning for warning in result["warnings"] if MASQ_SET in warning and "revision 9" in warning]
        assert f"+create {MASQ_SET} hash:net maxelem 1048576" in shown(result, "ipv4 sets")
    assert members(kube_node, MASQ_SET) == ["10.244.0.0/16"]
    assert kube_node.saves() == wanted
    again = kube_node.module(module=calico_masq, **MASQ, environment=shims.environment)
    assert not again["changed"]
    assert not again["warnings"]


def test_f089_what_could_not_be_read_cannot_be_put_back_and_the_message_says_so(kube_node: Node, shims: Shims) -> None:
    four_ways(kube_node, calico_masq, **MASQ, backend=kube_node.backend)
    shims.add("ipset", f"""[ "$1 $2" != "list {MASQ_SET}" ] || {{
  echo "ipset v7.17: settype hash:net with revision 9 not supported by userspace." >&2; exit 1
}}
exec "$REAL" "$@" """)
    result = kube_node.module(module=calico_masq, **MASQ, environment=shims.environment)
    assert result["failed"]
    assert f"Set {MASQ_SET} could not be read before and keeps what was written" in result["msg"]
    assert members(kube_node, MASQ_SET) == ["10.244.0.0/16"]


def test_f089_another_failure_of_a_listing_is_an_error_and_never_an_empty_set(kube_node: Node, shims: Shims) -> None:
    four_ways(kube_node, calico_masq, **MASQ, backend=kube_node.backend)
    before = everything(kube_node)
    shims.add("ipset", f'[ "$1 $2" = "list {MASQ_SET}" ] && {{ echo "no memory" >&2; exit 1; }}; exec "$REAL" "$@"')
    for arguments in (MASQ, {"state": "absent"}):
        result = kube_node.module(module=calico_masq, **arguments, environment=shims.environment)
        assert result["failed"]
        assert f"list {MASQ_SET}" in result["msg"]
        assert "no memory" in result["msg"]
    assert everything(kube_node) == before


def test_f090_a_member_stays_while_any_source_has_it_and_nothing_is_called(kube_node: Node, shims: Shims) -> None:
    both = hosts(kube_host("n1", "192.0.2.10"), kube_host("n2", "192.0.2.10"), "192.0.2.10")
    four_ways(kube_node, calico_masq, **both, backend=kube_node.backend)
    assert members(kube_node, HOSTS_SET) == ["192.0.2.10"]
    result = recorded(kube_node, shims, **hosts(kube_host("n1", "192.0.2.10")))
    assert not result["changed"]
    assert "list -name" in shims.log("calls")
    assert "restore" not in shims.log("calls")
    four_ways(kube_node, calico_masq, **hosts("192.0.2.12"))
    assert members(kube_node, HOSTS_SET) == ["192.0.2.12"]


@pytest.mark.parametrize("everything_there_is", ["0.0.0.0/0", "::/0", "203.0.113.0/0"])
def test_f046_a_network_of_every_address_is_refused_before_ipset_is_called(kube_node: Node, shims: Shims,
                                                                           everything_there_is: str) -> None:
    for arguments, option in ((pools("10.1.0.0/16", everything_there_is), "pools[1]"),
                              (hosts("192.0.2.10", everything_there_is), "hosts[1]")):
        result = recorded(kube_node, shims, **arguments, backend=kube_node.backend)
        assert result["failed"]
        assert option in result["msg"]
        assert everything_there_is in result["msg"]
    assert shims.log("calls") == []
    refused = kube_node.module(module=service_loop_block, cidrs=[everything_there_is])
    assert refused["failed"]
    assert everything_there_is in refused["msg"]
    assert "cali" not in "".join(kube_node.saves().values())


def test_the_set_of_all_hosts_is_felixs_unless_it_is_asked_for(kube_node: Node) -> None:
    """Felix has it also for IPIP tunnels."""
    kube_node.exec("ipset", "create", HOSTS_SET, "hash:net")
    kube_node.exec("ipset", "add", HOSTS_SET, "192.0.2.77")
    four_ways(kube_node, calico_masq, **MASQ, backend=kube_node.backend)
    assert members(kube_node, HOSTS_SET) == ["192.0.2.77"]
    four_ways(kube_node, calico_masq, **hosts("192.0.2.78", max_ipset_size=65536))
    assert members(kube_node, HOSTS_SET) == ["192.0.2.78"]


def test_host_ips_are_those_of_the_kernel_without_pods_and_services(kube_node: Node) -> None:
    settle(kube_node)
    kube_node.add_interface("cali1234", ["10.244.1.1/32"])
    kube_node.add_interface("kube-ipvs0", ["10.96.0.10/32"])
    kube_node.add_interface("tunl9", ["10.244.0.1/32"])
    for name in ("cali1234", "kube-ipvs0", "tunl9"):
        kube_node.ip("-6", "addr", "flush", "dev", name)
        kube_node.ip("-6", "addr", "flush", "dev", name + "-far")
    four_ways(kube_node, calico_host_ips, backend=kube_node.backend)
    assert members(kube_node, "cali40this-host") == ["10.244.0.1", "127.0.0.0", "127.0.0.1", "192.0.2.11"]
    assert members(kube_node, "cali60this-host") == ["2001:db8::11", "::1"]
    kube_node.ip("addr", "add", "192.0.2.21/24", "dev", "eth0")
    result = four_ways(kube_node, calico_host_ips)
    assert shown(result, "ipv4 sets") == ["+add cali40this-host 192.0.2.21"]


MANY = [f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}" for number in range(100_000)]


def test_one_member_of_a_hundred_thousand_is_written_alone_and_no_change_is_one_listing(kube_node: Node,
                                                                                        shims: Shims) -> None:
    result = kube_node.module(module=calico_masq, **hosts(*MANY), backend=kube_node.backend)
    assert result["plan"]["set_members"]["added"] > 100_000
    changed = recorded(kube_node, shims, **hosts(*MANY[:-1], "192.0.2.10"))
    assert changed["changed"]
    assert shims.log("input") == [f"add {HOSTS_SET} 192.0.2.10", f"del {HOSTS_SET} {MANY[-1]}"]
    assert shown(changed, "ipv4 sets") == [f"-add {HOSTS_SET} {MANY[-1]}", f"+add {HOSTS_SET} 192.0.2.10"]
    (shims.folder / "calls").unlink()
    again = recorded(kube_node, shims, **hosts(*MANY[:-1], "192.0.2.10"))
    assert not again["changed"]
    assert [call for call in shims.log("calls") if HOSTS_SET in call] == [f"list {HOSTS_SET}"]
    assert "restore" not in shims.log("calls")
