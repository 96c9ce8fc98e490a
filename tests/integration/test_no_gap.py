# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A client of a service that was there before does not notice what is loaded, changed and removed around it."""

from __future__ import annotations

from typing import Any

from support.builders import endpoint_slice, service
from support.hammer import Hammer, tcp_server
from support.node import Node
from support.packets import Wire

_OTHERS = 600


def _cluster(pods: list[str], others: int, generation: int = 1) -> dict[str, Any]:
    """The client's service, and many others whose endpoints differ from one generation to the next."""
    services = [service()] + [service(name=f"s{number}", clusterIP=f"10.97.{number // 250}.{number % 250 + 1}")
                              for number in range(others)]
    slices = [endpoint_slice(*pods)] + [
        endpoint_slice(f"10.245.{number // 250}.{number % 250 + 1}", f"10.24{5 + generation}.250.9", name=f"s{number}",
                       service_name=f"s{number}") for number in range(others)]
    return {"services": services, "endpoint_slices": slices}


def test_no_connection_fails_while_a_large_load_and_an_update_of_everything_run(kube_node: Node) -> None:
    with Wire(kube_node, pods=1) as wire, tcp_server(wire.pod_nodes[0], 8080):
        kube_node.module(**_cluster(wire.pods, 0), backend=kube_node.backend)
        with Hammer(wire.client, "10.96.0.10", 80) as hammer:
            loaded = kube_node.module(**_cluster(wire.pods, _OTHERS))
            updated = kube_node.module(**_cluster(wire.pods, _OTHERS, generation=2))
            removed = kube_node.module(**_cluster(wire.pods, 0))
            good, bad, reasons = hammer.stop()
    assert loaded["plan"]["chains"]["added"] > 2 * _OTHERS
    assert updated["plan"]["chains"]["changed"] >= _OTHERS
    assert removed["plan"]["chains"]["removed"] > 2 * _OTHERS
    assert good > 100
    assert bad == 0, reasons
