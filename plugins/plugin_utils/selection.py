# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Selects objects of a cluster with jmespath expressions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.shapes import SHAPES
from ansible_collections.metal.nodenet.plugins.module_utils.shown import one_line, shown
from ansible_collections.metal.nodenet.plugins.plugin_utils.libraries import on_the_controller


def select(items: list[Any], expressions: Mapping[str, str]) -> list[Any]:
    """The items for which the expression of their kind is true, and those of kinds that have none.

    Raises ``ClusterFileError`` for an expression that is none, or that gives anything but true or false.
    """
    compiled = {kind: _compiled(kind, text) for kind, text in expressions.items()}
    return [item for item in items if not isinstance(item, dict) or item.get("kind") not in compiled
            or _stays(item, compiled[item["kind"]])]


def _compiled(kind: str, text: str) -> Any:
    with on_the_controller():
        import jmespath
        from jmespath.exceptions import JMESPathError

    if kind not in SHAPES:
        raise ClusterFileError(f"select: {shown(kind)} is not one of the kinds that are read: {', '.join(SHAPES)}")
    try:
        return jmespath.compile(text)
    except JMESPathError as error:
        raise ClusterFileError(f"select.{kind}: {shown(text)} is not a jmespath expression: {error}") from None


def _stays(item: dict[str, Any], expression: Any) -> bool:
    from jmespath.exceptions import JMESPathError

    kind = item["kind"]
    try:
        value = expression.search(item)
    except JMESPathError as error:
        raise ClusterFileError(f"select.{kind}: {title(item)}: {error}") from None
    if not isinstance(value, bool):
        raise ClusterFileError(f"select.{kind}: the expression gives {shown(value)} for {title(item)}, and neither "
                               "true nor false; compare something, such as metadata.namespace != 'test'")
    return value


def title(item: Mapping[str, Any]) -> str:
    """What to call an object in a message."""
    meta = item.get("metadata")
    meta = meta if isinstance(meta, dict) else {}
    names = [one_line(meta[key]) for key in ("namespace", "name") if meta.get(key)]
    return f"{one_line(item.get('kind'))} {'/'.join(names) or None}"
