# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""jmespath expressions that select objects, and those that do not say yes or no."""

from __future__ import annotations

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.plugin_utils.selection import select
from support.builders import endpoint_slice, service

ITEMS = [service("a"), service("b", namespace="test"), endpoint_slice("10.0.0.1")]


def test_what_is_true_stays_and_other_kinds_too() -> None:
    assert select(ITEMS, {"Service": "metadata.namespace != 'test'"}) == [ITEMS[0], ITEMS[2]]
    assert select(ITEMS, {"Service": "contains(['b'], metadata.name)", "EndpointSlice": "`false`"}) == [ITEMS[1]]
    assert select(ITEMS, {}) == ITEMS


@pytest.mark.parametrize(("expressions", "message"), [
    ({"Services": "`true`"}, "select: 'Services' is not one of the kinds"),
    ({"Service": "metadata.["}, "select.Service: .* is not a jmespath expression"),
    ({"Service": "metadata.name"}, "gives 'a' for Service default/a, and neither true nor false"),
    ({"Service": "spec.nothing"}, "gives None for Service default/a"),
    ({"Service": "starts_with(spec.ports, 'x')"}, "select.Service: Service default/a"),
])
def test_what_says_neither_yes_nor_no_is_refused(expressions: dict[str, str], message: str) -> None:
    with pytest.raises(ClusterFileError, match=message):
        select(ITEMS, expressions)
