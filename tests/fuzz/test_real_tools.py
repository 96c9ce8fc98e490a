# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is made of hostile objects, given to the real tools: they take all of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.set_plan import plan_sets, session
from fuzz import clusters
from fuzz.budget import counted, fuzzed
from fuzz.hostile import broken, real
from fuzz.runs import Output, options_of
from fuzz.test_objects import from_file, kube
from hypothesis import given
from hypothesis import strategies as st
from support.node import LOCK, Node, node


@pytest.fixture(scope="module", params=["nft", "legacy"])
def one(request: pytest.FixtureRequest) -> Iterator[Node]:
    """A node with nothing on it."""
    with node(request.param) as found:
        yield found


def check(one: Node, output: Output) -> None:
    """The restore tool takes every input; ``--test`` leaves the node as it is."""
    for family, text in output.texts.items():
        one.exec(one.tool(family, "-restore"), *LOCK, "--noflush", "--test", text=text)


@fuzzed(0.2)
@given(drawn=broken(st.just(clusters.services("shop", 1) + [clusters.node(clusters.NODE, 11)])),
       layout=st.sampled_from(clusters.LAYOUTS))
@counted
def test_iptables_restore_takes_what_services_lead_to(one: Node, drawn: list[Any], layout: str) -> None:
    output = kube(real(drawn), layout)
    if isinstance(output, Output):
        check(one, output)


@fuzzed(0.2)
@given(drawn=st.lists(broken(st.sampled_from(clusters.calico())), min_size=1, max_size=4),
       name=st.sampled_from(("calico_masq", "floating_ip", "service_loop_block")))
@counted
def test_iptables_and_ipset_take_what_objects_of_calico_lead_to(one: Node, drawn: list[Any], name: str) -> None:
    more = {"calico_masq": {"allow_empty": True}, "floating_ip": {"node_name": clusters.NODE}}.get(name, {})
    params = options_of(name, cluster="/cluster.json", **more)
    assert params is not None
    output = from_file(name, params, real(drawn))
    if isinstance(output, Output):
        try:
            for family, wanted in output.desired.items():
                one.exec("ipset", "restore", text=session(plan_sets({}, wanted), family))
            check(one, output)
        finally:
            one.exec("ipset", "destroy")
