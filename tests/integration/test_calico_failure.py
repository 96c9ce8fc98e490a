# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left when something fails, sets included; and a Felix that is at work is not fought."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.modules import calico_masq
from support.calico import MASQ, MODULES, changed, everything, four_ways, sets, settle
from support.felix import load_felix
from support.node import LOCK, Node, Result
from support.programs import running
from support.shims import Shims

LARGER: dict[str, Any] = {"pools": [{"cidr": f"10.{number}.0.0/16", "masquerade": True} for number in range(1, 6)]}
#: With rules that change, too, in both families.
ALL_LARGER: dict[str, Any] = {"pools": [*LARGER["pools"], {"cidr": "2001:db8:5::/64", "masquerade": True}],
                              "nat_port_range": "1024:65535"}
MASQ_SET = "cali40masq-ipam-pools"


def cut_session(shims: Shims, lines: int) -> None:
    """Have the first session of ipset carry out some of its lines and fail then."""
    shims.add("ipset", f"""[ "$1" = restore ] && mkdir "$HERE/once" 2>/dev/null || exec "$REAL" "$@"
cat > "$HERE/session"
head -n {lines} "$HERE/session" | "$REAL" restore
echo "ipset v7.17: Error in line {lines + 1}: the kernel is out of memory" >&2; exit 1""")


def failed(one: Node, shims: Shims, **arguments: Any) -> Result:
    result = one.module(module=calico_masq, backend=one.backend, environment=shims.environment, **arguments)
    assert result["failed"], "the fault did not show"
    assert result["rolled_back"] is True, result["msg"]
    return result


@pytest.mark.parametrize("lines", [0, 1, 3, 5, 8])
@pytest.mark.parametrize("start", ["empty", "other members", "other size", "other type"])
def test_a_failure_in_the_middle_of_a_session_brings_the_old_sets_back(nft_node: Node, shims: Shims, start: str,
                                                                       lines: int) -> None:
    if start == "other type":
        nft_node.exec("ipset", "create", MASQ_SET, "hash:ip", "maxelem", "77")
        nft_node.exec("ipset", "add", MASQ_SET, "192.0.2.1")
    elif start != "empty":
        four_ways(nft_node, calico_masq, **MASQ, max_ipset_size=77 if start == "other size" else 1048576)
    nft_node.exec("ipset", "create", "foreign", "hash:ip")
    before = everything(nft_node)
    cut_session(shims, lines)
    result = failed(nft_node, shims, **LARGER)
    assert (f"{lines + 1}: {(shims.folder / 'session').read_text().splitlines()[lines]}" in result["msg"])
    assert "the kernel is out of memory" in result["msg"]
    # A set of another size is made under a name of its own; what happens to that is no change of the old one.
    written = lines > 0 and start != "other size" or lines == 8
    assert (result["changed"], "ipv4 sets" in result["applied_tables"]) == (written, written)
    assert everything(nft_node) == before
    assert changed(nft_node, module=calico_masq, **LARGER, environment=shims.environment)
    assert not changed(nft_node, module=calico_masq, **LARGER)


def fail_restore_once(one: Node, shims: Shims, family: str) -> None:
    """Have the first restore of a family be refused, both times that it is tried."""
    base = "iptables" if family == "ipv4" else "ip6tables"
    for name in (base, f"{base}-{one.backend}"):
        shims.add(f"{name}-restore", 'mkdir "$HERE/once" 2>/dev/null || exec "$REAL" "$@"; cat > /dev/null; '
                                     'echo "iptables-restore: line 1 failed" >&2; exit 1')


@pytest.mark.parametrize("family", ["ipv4", "ipv6"])
@pytest.mark.parametrize("start", ["empty", "other members", "other size"])
def test_a_refusal_of_the_rules_brings_the_old_sets_back(kube_node: Node, shims: Shims, start: str,
                                                         family: str) -> None:
    if start != "empty":
        four_ways(kube_node, calico_masq, **MASQ, max_ipset_size=77 if start == "other size" else 1048576,
                  backend=kube_node.backend)
    before = everything(kube_node)
    fail_restore_once(kube_node, shims, family)
    result = failed(kube_node, shims, **ALL_LARGER)
    assert {"ipv4 sets", "ipv6 sets"} <= set(result["applied_tables"])
    assert ("ipv4 nat" in result["applied_tables"]) is (family == "ipv6")
    assert everything(kube_node) == before


@pytest.mark.parametrize("size", [1048576, 77])
def test_a_set_that_does_not_read_back_as_written_is_undone(kube_node: Node, shims: Shims, size: int) -> None:
    """Another program takes a member out again right behind us."""
    four_ways(kube_node, calico_masq, **MASQ, max_ipset_size=size, backend=kube_node.backend)
    before = everything(kube_node)
    shims.add("ipset", f"""[ "$1" = restore ] && mkdir "$HERE/once" 2>/dev/null || exec "$REAL" "$@"
"$REAL" "$@" && "$REAL" del {MASQ_SET} 10.3.0.0/16""")
    result = failed(kube_node, shims, **LARGER)
    assert f"set {MASQ_SET}" in result["msg"]
    assert "read back" in result["msg"]
    assert everything(kube_node) == before


def test_a_set_that_cannot_be_taken_away_brings_rules_and_sets_back(kube_node: Node, shims: Shims) -> None:
    four_ways(kube_node, calico_masq, **MASQ, backend=kube_node.backend)
    before = everything(kube_node)
    shims.add("ipset", f"""[ "$1 $2" = "destroy {MASQ_SET}" ] || exec "$REAL" "$@"
echo "ipset v7.17: Set cannot be destroyed: it is in use by a kernel component" >&2; exit 1""")
    result = failed(kube_node, shims, state="absent")
    assert MASQ_SET in result["msg"]
    assert everything(kube_node) == before


def test_an_undo_of_sets_that_fails_says_so(kube_node: Node, shims: Shims) -> None:
    four_ways(kube_node, calico_masq, **MASQ, backend=kube_node.backend)
    shims.add("ipset", """[ "$1" = restore ] || exec "$REAL" "$@"
if mkdir "$HERE/once" 2>/dev/null; then head -n 2 | "$REAL" restore; fi
echo "ipset v7.17: Error in line 3: no more" >&2; exit 1""")
    result = kube_node.module(module=calico_masq, **LARGER, environment=shims.environment)
    assert result["failed"]
    assert result["rolled_back"] is False
    assert "could NOT be restored" in result["msg"]
    assert "ipv4" in result["msg"].partition("NOT be restored")[2]


def test_without_ipset_the_message_says_what_to_install(nft_node: Node, tmp_path: Path) -> None:
    """Removal and reading need none: a node without the tool is one without these sets."""
    for base in ("iptables", "ip6tables"):
        for end in ("save", "restore"):
            (tmp_path / f"{base}-{end}").symlink_to(shutil.which(f"{base}-nft-{end}", path="/usr/sbin") or "")
    hidden: dict[str, Any] = {"environment": {"PATH": str(tmp_path)}, "module": calico_masq}
    modules = "ansible_collections.metal.nodenet.plugins.module_utils.netfilter.tools._SBIN"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(modules, str(tmp_path))
        result = nft_node.module(**MASQ, **hidden)
        assert result["failed"]
        assert "install the ipset package" in result["msg"]
        assert not nft_node.module(state="absent", **hidden).get("failed")
        assert nft_node.module(state="gathered", **hidden)["gathered"] == {"ipv4": {}, "ipv6": {}}


@pytest.fixture
def felix(nft_node: Node, tmp_path: Path) -> Iterator[Node]:
    """A node on which a process called calico-node runs."""
    settle(nft_node)
    with running("calico-node", nft_node, tmp_path):
        yield nft_node


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__.rpartition(".")[2])
def test_a_running_felix_is_not_fought(felix: Node, module: Any) -> None:
    arguments = {"module": module, **MODULES[module]}
    before = everything(felix)
    refused = felix.module(**arguments)
    assert refused["failed"]
    assert "calico-node (process " in refused["msg"]
    assert "takeover: true" in refused["msg"]
    assert everything(felix) == before
    audit = felix.module(check=True, **arguments)
    assert audit["changed"]
    assert [warning for warning in audit["warnings"] if "calico-node (process " in warning]
    assert everything(felix) == before
    assert changed(felix, **arguments, takeover=True)
    assert not changed(felix, **arguments), "what is as it should be needs no takeover"
    assert felix.module(module=module, state="absent")["failed"]
    assert changed(felix, module=module, state="absent", takeover=True)
    assert (sets(felix), "cali-" in felix.save("ipv4")) == ([], False)


def test_a_felix_of_another_node_is_none_of_our_business(felix: Node, kube_node: Node) -> None:
    result = kube_node.module(module=calico_masq, **MASQ, backend=kube_node.backend)
    assert result["diff"]
    assert not result["warnings"]


def test_a_felix_of_another_dataplane_is_seen(nft_node: Node) -> None:
    nft_node.exec("nft", "add table ip calico")
    refused = nft_node.module(module=calico_masq, **MASQ)
    assert refused["failed"]
    assert "nftables" in refused["msg"]
    nft_node.exec("nft", "delete table ip calico")
    nft_node.add_interface("bpfin.cali", [])
    assert "bpfin.cali" in nft_node.module(module=calico_masq, **MASQ)["msg"]


def test_state_in_two_backends_is_refused_and_removed_from_both(nft_node: Node) -> None:
    """F005 for these modules."""
    settle(nft_node)
    load_felix(nft_node)
    nft_node.exec("iptables-legacy-restore", *LOCK,
                  text="*nat\n:cali-fip-dnat - [0:0]\n-A PREROUTING -j cali-fip-dnat\nCOMMIT\n")
    for module in MODULES:
        refused = nft_node.module(module=module, **MODULES[module])
        assert refused["failed"], module
        assert "both iptables backends" in refused["msg"]
    for module in MODULES:
        result = nft_node.module(module=module, state="absent")
        assert not result.get("failed"), result["msg"]
    assert "cali-" not in nft_node.exec("iptables-legacy-save")
    assert "cali-nat-outgoing" not in nft_node.save("ipv4")
