# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which tools run, with which words, and on which backend."""

from __future__ import annotations

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter import backend
from support.builders import endpoint_slice, service
from support.node import LOCK, Node
from support.shims import Shims

CLUSTER = {"services": [service()], "endpoint_slices": [endpoint_slice("10.244.1.5", "10.244.2.5")]}
CHAIN = "*nat\n:{} - [0:0]\nCOMMIT\n"


@pytest.mark.parametrize("stream", ["1", "2"])
def test_f004_a_notice_of_the_tool_is_one_warning_and_no_harm(nft_node: Node, shims: Shims, stream: str) -> None:
    notice = "# Warning: iptables-legacy tables present, use iptables-legacy-save to see them"
    for tool in ("iptables-save", "ip6tables-save"):
        shims.add(tool, f'"$REAL" "$@" && echo "{notice}" >&{stream}')
    result = nft_node.module(**CLUSTER, environment=shims.environment)
    assert result["changed"]
    assert [warning for warning in result["warnings"] if "legacy tables present" in warning] == [notice[2:]]
    assert not nft_node.module(**CLUSTER, environment=shims.environment)["changed"]


@pytest.mark.parametrize("chain", ["KUBE-IPTABLES-HINT", "KUBE-SERVICES", "cali-PREROUTING"])
def test_f005_the_backend_that_carries_chains_is_used(kube_node: Node, chain: str) -> None:
    kube_node.load("ipv4", CHAIN.format(chain))
    kube_node.load("ipv6", CHAIN.format(chain))
    assert kube_node.four_ways(**CLUSTER)["changed"]
    other = "legacy" if kube_node.backend == "nft" else "nft"
    for tool in ("iptables", "ip6tables"):
        assert "KUBE-" not in kube_node.exec(f"{tool}-{other}-save")


def test_f005_a_mix_is_refused_and_says_what_was_seen(nft_node: Node) -> None:
    nft_node.load("ipv4", CHAIN.format("KUBE-SERVICES"))
    nft_node.exec("iptables-legacy-restore", *LOCK, "--noflush", text=CHAIN.format("KUBE-NODEPORTS"))
    before = nft_node.saves()
    result = nft_node.module(**CLUSTER)
    assert result["failed"]
    for word in ("ipv4", "nft has nat KUBE-SERVICES", "legacy has nat KUBE-NODEPORTS"):
        assert word in result["msg"]
    assert nft_node.saves() == before


def test_f005_asking_for_the_other_backend_is_refused(nft_node: Node) -> None:
    nft_node.four_ways(**CLUSTER)
    result = nft_node.module(**CLUSTER, backend="legacy")
    assert result["failed"]
    assert "the chains are in nft" in result["msg"]
    assert "KUBE-" not in nft_node.exec("iptables-legacy-save")


def test_removal_cleans_a_mix(nft_node: Node) -> None:
    nft_node.four_ways(**CLUSTER)
    nft_node.exec("iptables-legacy-restore", *LOCK, "--noflush", text=CHAIN.format("KUBE-NODEPORTS"))
    assert nft_node.module(state="absent")["changed"]
    assert "KUBE-" not in nft_node.save("ipv4") + nft_node.exec("iptables-legacy-save")


def test_a_table_that_the_tool_cannot_show_is_not_taken_for_empty(nft_node: Node) -> None:
    nft_node.exec("nft", "add table ip nat; add chain ip nat PREROUTING { type nat hook prerouting priority -100; }; "
                         "add rule ip nat PREROUTING numgen random mod 2 0 drop")
    result = nft_node.module(check=True, **CLUSTER)
    assert result["failed"]
    assert "nat" in result["msg"]
    assert "cannot show" in result["msg"]


def test_a_read_that_fails_is_not_an_empty_node(nft_node: Node, shims: Shims) -> None:
    nft_node.four_ways(**CLUSTER)
    before = nft_node.saves()
    shims.add("iptables-save", '[ "$1" = --version ] && exec "$REAL" --version; echo "no can do" >&2; exit 1')
    result = nft_node.module(state="absent", environment=shims.environment)
    assert result["failed"]
    assert "no can do" in result["msg"]
    assert nft_node.saves() == before


def test_a_dump_that_is_cut_is_not_taken_for_whole(nft_node: Node, shims: Shims) -> None:
    nft_node.four_ways(**CLUSTER)
    shims.add("iptables-save", '[ "$1" = --version ] && exec "$REAL" --version; "$REAL" "$@" | head -n 20')
    result = nft_node.module(check=True, state="absent", environment=shims.environment)
    assert result["failed"]
    assert "the dump is cut" in result["msg"]


def test_f006_a_binary_without_random_fully_gets_none_and_the_other_family_does(kube_node: Node, shims: Shims) -> None:
    for name in (["ip6tables-save"] if kube_node.backend == "nft" else []) + [f"ip6tables-{kube_node.backend}-save"]:
        shims.add(name, f'[ "$1" = --version ] || exec "$REAL" "$@"; '
                        f'echo "ip6tables-save v1.6.0 ({"nf_tables" if kube_node.backend == "nft" else "legacy"})"')
    for name in ("ip6tables-restore", f"ip6tables-{kube_node.backend}-restore"):
        shims.add(name, 'cat > "$HERE/six"; if grep -q random-fully "$HERE/six"; then '
                        'echo "unknown option --random-fully" >&2; exit 2; fi; "$REAL" "$@" < "$HERE/six"')
    result = kube_node.module(**CLUSTER, backend=kube_node.backend, environment=shims.environment)
    assert not result.get("failed"), result["msg"]
    assert "MASQUERADE --random-fully" in kube_node.save("ipv4")
    assert "MASQUERADE" in kube_node.save("ipv6")
    assert "--random-fully" not in kube_node.save("ipv6")
    assert [warning for warning in result["warnings"] if "random-fully" in warning and "ipv6" in warning]
    again = kube_node.module(**CLUSTER, environment=shims.environment)
    assert not again["changed"]


def test_f009_f034_f036_every_restore_waits_with_two_words(kube_node: Node, shims: Shims) -> None:
    names = [name for base in ("iptables", "ip6tables") for name in (base, f"{base}-{kube_node.backend}")]
    for name in names:
        shims.add(name + "-restore", 'echo "$*" >> "$HERE/words"; exec "$REAL" "$@"')
    result = kube_node.module(**CLUSTER, backend=kube_node.backend, lock_timeout=7, environment=shims.environment)
    assert result["changed"]
    # One restore per family; new chains are created under the wait option too.
    assert shims.log("words") == ["-w 7 --noflush"] * 2


def test_f037_check_mode_runs_nothing_that_writes(kube_node: Node, shims: Shims) -> None:
    for base in ("iptables", "ip6tables"):
        for name in (base, f"{base}-nft", f"{base}-legacy"):
            shims.add(name, 'echo "$0 $*" >> "$HERE/wrote"; exit 9')
            shims.add(name + "-restore", 'echo "$0 $*" >> "$HERE/wrote"; exit 9')
    kube_node.four_ways(**CLUSTER)
    others = {"services": [service(clusterIP="10.96.0.99")], "endpoint_slices": [endpoint_slice("10.244.1.9")]}
    for arguments in (others, {"state": "absent"}, {"state": "gathered"}):
        result = kube_node.module(check=True, **arguments, environment=shims.environment)
        assert result["changed"] is (arguments.get("state") != "gathered")
        assert not result.get("failed"), result["msg"]
    assert shims.log("wrote") == []


def test_one_read_per_family_and_one_more_after_writing(kube_node: Node, shims: Shims) -> None:
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    for base in ("iptables", "ip6tables"):
        for name in (base, f"{base}-{kube_node.backend}"):
            shims.add(name + "-save", '[ "$1" = --version ] || echo "$0" >> "$HERE/read"; exec "$REAL" "$@"')
    kube_node.module(**CLUSTER, backend=kube_node.backend, environment=shims.environment)
    reads = [line for line in shims.log("read") if kube_node.backend == "nft" or "legacy" in line]
    assert len(reads) == 2
    kube_node.module(state="absent", backend=kube_node.backend, environment=shims.environment)
    reads = [line for line in shims.log("read") if kube_node.backend == "nft" or "legacy" in line]
    assert len(reads) == 6


def test_without_ip6tables_a_node_is_one_of_ipv4(nft_node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    real = backend.find_tool
    monkeypatch.setattr(backend, "find_tool", lambda name: None if name.startswith("ip6") else real(name))
    result = nft_node.module(**CLUSTER)
    assert result["changed"]
    assert any("without IPv6" in warning for warning in result["warnings"])
    assert "KUBE-" not in nft_node.save("ipv6")
    asked = nft_node.module(**CLUSTER, families=["ipv6"])
    assert asked["failed"]
    assert "no ip6tables-save" in asked["msg"]


def test_a_node_with_ipv6_switched_off_gets_none_and_is_still_cleaned(nft_node: Node) -> None:
    nft_node.four_ways(**CLUSTER)
    nft_node.exec("sysctl", "-qw", "net.ipv6.conf.all.disable_ipv6=1")
    six = nft_node.save("ipv6")
    nft_node.four_ways(services=[service(name="other")], endpoint_slices=[])
    assert nft_node.save("ipv6") == six
    nft_node.four_ways(state="absent")
    assert "KUBE-" not in nft_node.save("ipv6")


def test_f026_a_missing_rule_is_seen_without_the_dry_run_of_the_tool(kube_node: Node, shims: Shims) -> None:
    """``iptables-nft-restore --test`` accepts a jump to nowhere, so check mode must not rest on it."""
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    kube_node.iptables("-t", "nat", "-D", "KUBE-SERVICES", "1")
    for base in ("iptables", "ip6tables"):
        for name in (base, f"{base}-{kube_node.backend}"):
            shims.add(name + "-restore", 'echo "$*" >> "$HERE/words"; exec "$REAL" "$@"')
    result = kube_node.module(check=True, **CLUSTER, environment=shims.environment)
    assert result["changed"]
    assert result["plan"]["rules"] == {"added": 1, "changed": 0, "removed": 0}
    assert kube_node.module(**CLUSTER, environment=shims.environment)["changed"]
    assert shims.log("words") == ["-w 10 --noflush"]


@pytest.mark.parametrize("hidden", [False, True], ids=["plain tool", "without the plain tool"])
def test_a_small_change_is_read_back_with_whatever_tools_there_are(
        kube_node: Node, shims: Shims, monkeypatch: pytest.MonkeyPatch, hidden: bool) -> None:
    """Stand-ins for save and restore alone, as somebody may have put them in front of the real ones."""
    kube_node.four_ways(**CLUSTER, backend=kube_node.backend)
    names = [name for base in ("iptables", "ip6tables") for name in (base, f"{base}-{kube_node.backend}")]
    for name in names:
        shims.add(name + "-save", '[ "$1" = --version ] || echo "$0" >> "$HERE/saved"; exec "$REAL" "$@"')
        shims.add(name + "-restore", 'exec "$REAL" "$@"')
    if hidden:
        real = backend.find_tool
        monkeypatch.setattr(backend, "find_tool", lambda name: None if name in names else real(name))
    one_less = {"services": CLUSTER["services"], "endpoint_slices": [endpoint_slice("10.244.1.5")]}
    result = kube_node.module(**one_less, backend=kube_node.backend, environment=shims.environment)
    assert not result.get("failed"), result["msg"]
    assert result["plan"]["chains"] == {"added": 0, "changed": 1, "removed": 1}
    reads = [line for line in shims.log("saved") if kube_node.backend == "nft" or "legacy" in line]
    assert len(reads) == (3 if hidden else 2)
    assert not kube_node.module(**one_less)["changed"]
