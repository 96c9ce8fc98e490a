# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every module of the collection by its name, for the agent, which repeats their runs on a node without Ansible."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.calico import (
    build_floating,
    build_hosts,
    build_loops,
    build_masq,
    floating,
    hosts,
    loops,
    masq,
)
from ansible_collections.metal.nodenet.plugins.module_utils.kube import nat, ownership, rules
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import Desired
from ansible_collections.metal.nodenet.plugins.module_utils.states import Manager


class Part(NamedTuple):
    """One module: the tables that it has chains in, what makes its manager of its options, what is its."""

    tables: tuple[str, ...]
    build: Callable[[dict[str, Any]], Manager]
    #: The state of a family without any of the module's: it says what is.
    nothing: Callable[[str], Desired]


#: In the order in which a node is rebuilt, which is ``node.documents.ORDER``.
MANAGERS: dict[str, Part] = {
    "kube_nat_chains": Part(ownership.TABLES, nat.build,
                            lambda family: rules.nothing(family, shared_with_kubelet=True)),
    "calico_masq": Part(build_masq.TABLES, build_masq.build, masq.nothing),
    "floating_ip": Part(build_floating.TABLES, build_floating.build, floating.nothing),
    "service_loop_block": Part(build_loops.TABLES, build_loops.build, loops.nothing),
    "calico_host_ips": Part(build_hosts.TABLES, build_hosts.build, hosts.nothing),
}
