# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who else gives this node its Kubernetes services: a kube-proxy, or a replacement of it."""

from __future__ import annotations

from ansible_collections.metal.nodenet.plugins.module_utils import agents

#: kube-proxy itself, and programs that have one inside.
_PROGRAMS = ("kube-proxy", "kubelite", "k3s-server", "k3s-agent")

#: Interfaces that a proxy of another mode makes.
_INTERFACES = {
    "kube-ipvs0": "kube-proxy in IPVS mode",
    "kube-dummy-if": "kube-router",
    "cilium_host": "Cilium",
    "bpfin.cali": "Calico's eBPF dataplane",
}


def opponents() -> list[agents.Agent]:
    """Programs at work in this network namespace that serve the same services."""
    found = agents.running(_PROGRAMS)
    present = agents.interfaces()
    found += [agents.Agent(name, f"interface {device}") for device, name in _INTERFACES.items() if device in present]
    found += [agents.Agent("kube-proxy in nftables mode", f"nftables table {name}") for name in agents.nft_tables()
              if name == "kube-proxy"]
    return found


def describe(found: list[agents.Agent]) -> str:
    """A clause about them."""
    names = ", ".join(f"{one.name} ({one.sign})" for one in found)
    return f"this node's services are, or may be, served already by {names}"
