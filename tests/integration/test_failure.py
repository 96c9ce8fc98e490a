# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is left when something fails: the old rules, and a message that says what happened."""

from __future__ import annotations

import fcntl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.apply import BATCH
from ansible_collections.metal.nodenet.plugins.module_utils.kube import rules
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Chain, Desired
from support.builders import endpoint_slice, named, service
from support.foreign import foreign_part
from support.node import Node
from support.programs import running
from support.shims import Shims

CLUSTER = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5")]}
LARGER = {"services": [service(), service(name="new", clusterIP="10.96.0.11"),
                       service(name="idle", clusterIP="10.96.0.12")],
          "endpoint_slices": [endpoint_slice("10.244.1.5"), endpoint_slice("10.244.1.9", name="n", service_name="new")]}


def with_bad_rule(monkeypatch: pytest.MonkeyPatch, table: str, rule: str, family: str = "ipv4") -> None:
    """Have the renderer ask for one rule that the kernel or the tool refuses."""
    real = rules.desired

    def faulty(*arguments: object) -> tuple[Desired, list[str]]:
        state, warnings = real(*arguments)  # type: ignore[arg-type]
        if state.family == family:
            state.tables[table].chains["KUBE-PROXY-CANARY"] = Chain("KUBE-PROXY-CANARY", (rule,))
        return state, warnings

    monkeypatch.setattr("ansible_collections.metal.nodenet.plugins.module_utils.kube.nat.desired", faulty)


@pytest.mark.parametrize("start", ["empty", "filled"])
@pytest.mark.parametrize(("table", "rule"), [
    ("nat", "-j REJECT --reject-with icmp-port-unreachable"),
    ("filter", "-j NO-SUCH-TARGET"),
])
def test_f024_f025_a_refused_table_is_undone_with_the_one_before_it(
        kube_node: Node, monkeypatch: pytest.MonkeyPatch, start: str, table: str, rule: str) -> None:
    if start == "filled":
        kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    kube_node.load("ipv4", "*filter\n:INPUT DROP [0:0]\n-A INPUT -p tcp -m tcp --dport 22 -j ACCEPT\nCOMMIT\n"
                           "*nat\n-A POSTROUTING -s 10.9.0.0/16 -j MASQUERADE\nCOMMIT\n*mangle\nCOMMIT\n")
    before = {family: foreign_part(dump) for family, dump in kube_node.saves().items()}
    ours = [line for line in kube_node.save("ipv4").splitlines() if "KUBE-" in line]
    with_bad_rule(monkeypatch, table, rule)
    result = kube_node.module(**LARGER, backend=kube_node.backend)
    assert result["failed"]
    # The tables of one restore are committed one by one: nat is refused after mangle and filter are in.
    assert result["changed"] is (table == "nat" or start == "empty")
    if table == "nat":
        assert "ipv4 filter" in result["applied_tables"]
        assert "undone" in result["msg"]
    assert "The node has its old rules" in result["msg"] or "Nothing was written" in result["msg"]
    assert result["rolled_back"] is True
    assert f"-A KUBE-PROXY-CANARY {rule}" in result["msg"]
    assert result["failed_command"]["table"] == table
    assert result["failed_command"]["rc"] in (1, 2, 4)
    assert {family: foreign_part(dump) for family, dump in kube_node.saves().items()} == before
    assert [line for line in kube_node.save("ipv4").splitlines() if "KUBE-" in line] == ours


def test_a_refusal_of_ipv6_takes_ipv4_back_too(kube_node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    before = kube_node.saves()
    with_bad_rule(monkeypatch, "nat", "-j REJECT --reject-with icmp6-port-unreachable", "ipv6")
    result = kube_node.module(**LARGER)
    assert result["failed"]
    assert result["rolled_back"] is True
    assert "ipv4 nat" in result["applied_tables"]
    assert kube_node.saves() == before


def _many(generation: int) -> dict[str, list[dict[str, Any]]]:
    """A dozen services whose endpoints differ from one generation to the next."""
    services = [service(name=f"s{number}", clusterIP=f"10.96.1.{number}") for number in range(12)]
    return {"services": services, "endpoint_slices": [
        endpoint_slice(f"10.244.{generation}.{number}", name=f"s{number}", service_name=f"s{number}")
        for number in range(12)]}


def test_a_failure_between_any_two_batches_is_undone(nft_node: Node, shims: Shims,
                                                     monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(BATCH, "nft", 4)
    # The batch that is refused once would be tried again with a fresh plan.
    for name in ("iptables", "iptables-nft"):
        shims.add(name + "-restore", """
echo x >> "$HERE/calls"; count=$(wc -l < "$HERE/calls")
from=$(cat "$HERE/from"); [ $count -lt $from ] || [ $count -gt $((from + 1)) ] || { echo "not now" >&2; exit 1; }
exec "$REAL" "$@" """)
    (shims.folder / "from").write_text("1000")
    nft_node.module(**_many(1), environment=shims.environment)
    before = nft_node.saves()
    (shims.folder / "calls").unlink()
    assert nft_node.module(**_many(2), environment=shims.environment)["changed"]
    restores = len(shims.log("calls"))
    # new chains, chains in use, the switch, what goes
    assert restores >= 3 + 3 + 3
    assert not nft_node.module(**_many(1), environment=shims.environment).get("failed")
    assert nft_node.saves() == before
    for at in range(1, restores + 1):
        (shims.folder / "calls").unlink()
        (shims.folder / "from").write_text(str(at))
        result = nft_node.module(**_many(2), environment=shims.environment)
        assert result["failed"], at
        assert result["rolled_back"] is True, at
        assert nft_node.saves() == before, at


def test_f022_a_chain_that_vanished_between_read_and_write_is_seen_by_a_second_look(kube_node: Node,
                                                                                    shims: Shims) -> None:
    """The update leads to KUBE-SVC of the old service without writing it: it was there when the node was read."""
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    svc = named("SVC")
    for name in ("iptables", f"iptables-{kube_node.backend}"):
        shims.add(name + "-restore", f"""
if mkdir "$HERE/once" 2>/dev/null; then
  printf '*nat\\n:KUBE-SERVICES - [0:0]\\n:{svc} - [0:0]\\n-X {svc}\\nCOMMIT\\n' | "$REAL" -w 30 --noflush || exit 99
fi
exec "$REAL" "$@" """)
    result = kube_node.module(**LARGER, environment=shims.environment)
    assert not result.get("failed"), result["msg"]
    assert svc in kube_node.save("ipv4")
    assert not kube_node.module(check=True, **LARGER)["changed"]


def test_a_planned_run_writes_no_other_plan_for_a_node_that_changed(kube_node: Node, shims: Shims) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    svc = named("SVC")
    for name in ("iptables", f"iptables-{kube_node.backend}"):
        shims.add(name + "-restore", f"""
if mkdir "$HERE/once" 2>/dev/null; then
  printf '*nat\\n:KUBE-SERVICES - [0:0]\\n:{svc} - [0:0]\\n-X {svc}\\nCOMMIT\\n' | "$REAL" -w 30 --noflush || exit 99
fi
exec "$REAL" "$@" """)
    planned = kube_node.module(check=True, **LARGER)["plan_sha256"]
    result = kube_node.module(**LARGER, environment=shims.environment, expect_plan=planned)
    assert result["failed"]
    assert svc in result["msg"]
    assert named("SVC", "default/new:http") not in kube_node.save("ipv4")


def test_a_state_that_does_not_read_back_as_written_is_undone(kube_node: Node, shims: Shims) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    before = kube_node.saves()
    for name in ("iptables", f"iptables-{kube_node.backend}"):
        # Another agent takes our new chain's rules away as soon as they are there, but leaves the undo alone.
        shims.add(name + "-restore", f"""
"$REAL" "$@" || exit
mkdir "$HERE/once" 2>/dev/null || exit 0
printf '*nat\\n:{named("SVC", "default/new:http")} - [0:0]\\nCOMMIT\\n' | "$REAL" -w 30 --noflush""")
    result = kube_node.module(**LARGER, environment=shims.environment)
    assert result["failed"]
    assert named("SVC", "default/new:http") in result["msg"]
    assert result["rolled_back"] is True
    assert kube_node.saves() == before


def test_a_fault_of_our_own_while_the_tools_write_is_undone(kube_node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    before = kube_node.saves()

    def faulty(_plans: object) -> None:
        raise RuntimeError("cannot count")

    monkeypatch.setattr("ansible_collections.metal.nodenet.plugins.module_utils.reconcile.counts", faulty)
    result = kube_node.module(**LARGER)
    assert result["failed"]
    assert "cannot count" in result["msg"]
    assert result["rolled_back"] is True
    assert "ipv4 nat" in result["applied_tables"]
    assert kube_node.saves() == before


def test_verify_can_be_left_out(kube_node: Node, shims: Shims) -> None:
    for name in ("iptables", f"iptables-{kube_node.backend}"):
        shims.add(name + "-restore", f"""
"$REAL" "$@" && printf '*nat\\n:{named("SVC")} - [0:0]\\nCOMMIT\\n' | "$REAL" -w 30 --noflush""")
    arguments = {**CLUSTER, "backend": kube_node.backend}
    assert kube_node.module(**arguments, environment=shims.environment)["failed"]
    assert not kube_node.module(**arguments, environment=shims.environment, verify=False).get("failed")


def test_an_undo_that_fails_says_what_is_left(kube_node: Node, shims: Shims, monkeypatch: pytest.MonkeyPatch) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    with_bad_rule(monkeypatch, "nat", "-j REJECT --reject-with icmp-port-unreachable")
    for name in ("iptables", f"iptables-{kube_node.backend}"):
        shims.add(name + "-restore", 'echo x >> "$HERE/calls"; [ $(wc -l < "$HERE/calls") -le 2 ] || '
                                     '{ echo "no more" >&2; exit 4; }; exec "$REAL" "$@"')
    result = kube_node.module(**LARGER, environment=shims.environment)
    assert result["failed"]
    assert result["rolled_back"] is False
    assert result["changed"] is True
    assert "could NOT be restored" in result["msg"]
    assert "not undone, wholly or in part: ipv4" in result["msg"]
    assert "ipv4" in result["msg"].partition("NOT be restored")[2]
    assert "no more" in result["msg"]


@pytest.fixture
def held_lock() -> Iterator[None]:
    with open("/run/xtables.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def test_f033_f034_a_held_lock_is_an_error_that_names_it_and_nothing_is_guessed(held_lock: None) -> None:
    one = Node("legacy")
    try:
        started = time.monotonic()
        result = one.module(**CLUSTER, backend="legacy", lock_timeout=1)
        assert time.monotonic() - started >= 1
        assert result["failed"]
        assert "/run/xtables.lock" in result["msg"]
        assert "lock_timeout" in result["msg"]
        assert result["changed"] is False
        assert "KUBE-" not in one.save("ipv4")
    finally:
        one.close()


def test_f033_removal_under_a_held_lock_does_not_claim_success() -> None:
    one = Node("legacy")
    try:
        one.four_ways(**CLUSTER, backend="legacy")
        before = one.saves()
        with open("/run/xtables.lock", "w", encoding="ascii") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            result = one.module(state="absent", lock_timeout=1)
        assert result["failed"]
        assert result["changed"] is False
        assert one.saves() == before
        assert one.module(state="absent")["changed"]
    finally:
        one.close()


@pytest.fixture
def kube_proxy(nft_node: Node, tmp_path: Path) -> Iterator[Node]:
    """A node on which a process called kube-proxy runs."""
    with running("kube-proxy", nft_node, tmp_path):
        yield nft_node


def test_a_running_kube_proxy_is_not_fought(kube_proxy: Node) -> None:
    before = kube_proxy.saves()
    refused = kube_proxy.module(**CLUSTER)
    assert refused["failed"]
    assert "kube-proxy (process " in refused["msg"]
    assert "takeover: true" in refused["msg"]
    assert kube_proxy.saves() == before
    audit = kube_proxy.module(check=True, **CLUSTER)
    assert audit["changed"]
    assert any("kube-proxy (process " in warning for warning in audit["warnings"])
    assert kube_proxy.module(**CLUSTER, takeover=True)["changed"]
    assert not kube_proxy.module(**CLUSTER)["changed"]
    assert kube_proxy.module(state="absent")["failed"]
    assert kube_proxy.module(state="absent", takeover=True)["changed"]


def test_a_kube_proxy_of_another_node_is_none_of_our_business(kube_proxy: Node, kube_node: Node) -> None:
    assert kube_node.module(**CLUSTER, backend=kube_node.backend)["changed"]


def test_a_proxy_of_another_mode_is_seen(nft_node: Node) -> None:
    nft_node.exec("nft", "add table ip kube-proxy")
    refused = nft_node.module(**CLUSTER)
    assert refused["failed"]
    assert "nftables mode" in refused["msg"]
    nft_node.exec("nft", "delete table ip kube-proxy")
    nft_node.add_interface("kube-ipvs0", [])
    assert "IPVS mode (interface kube-ipvs0)" in nft_node.module(**CLUSTER)["msg"]
