# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which part of the code may know which: what ``docs/architecture.md`` says about arrows."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

_UTILS = Path(__file__).parents[3] / "plugins/module_utils"
_PACKAGE = "ansible_collections.metal.nodenet.plugins."
_INSIDE = _PACKAGE + "module_utils."
#: Part to the parts that it may import, besides itself and what every message is made with.
_MAY_KNOW = {
    "shown": set[str](),
    "netfilter": set[str](),
    "objects": set[str](),
    "clock": set[str](),
    "beside": set[str](),
    "agents": {"netfilter"},
    "cluster": {"node.layout"},
    "apply": {"beside", "clock", "netfilter"},
    "reconcile": {"apply", "clock", "netfilter"},
    "states": {"apply", "clock", "netfilter", "node.layout", "reconcile"},
    "kube": {"agents", "cluster", "netfilter", "objects", "reconcile", "states"},
    "calico": {"agents", "cluster", "netfilter", "objects", "reconcile", "states"},
    "managers": {"calico", "kube", "netfilter", "states"},
    "node": {"apply", "calico", "kube", "managers", "netfilter", "states"},
    "entry": {"apply", "netfilter", "node.session", "states"},
}


def _imports(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, path
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def _files(part: str) -> list[Path]:
    folder = _UTILS / part
    return sorted(folder.rglob("*.py")) if folder.is_dir() else [folder.with_suffix(".py")]


def test_every_part_has_its_place() -> None:
    assert set(_MAY_KNOW) == {path.stem for path in _UTILS.iterdir() if path.suffix == ".py" or path.is_dir()} - {
        "__init__", "__pycache__"}


@pytest.mark.parametrize("part", _MAY_KNOW)
def test_a_part_knows_only_what_it_may(part: str) -> None:
    allowed = tuple(f"{_INSIDE}{name}." for name in {part, "shown", *_MAY_KNOW[part]})
    for path in _files(part):
        for name in _imports(path):
            if name.startswith(_PACKAGE):
                assert f"{name}.".startswith(allowed), (path.name, name)


def test_nothing_but_the_way_in_needs_ansible() -> None:
    found = {path.name for path in _UTILS.rglob("*.py") for name in _imports(path) if name.startswith("ansible.")}
    assert found == {"entry.py"}


def test_one_file_starts_processes() -> None:
    ways = ("subprocess.", "subprocess", "multiprocessing", "pty", "asyncio")
    found = {path.name for path in _UTILS.rglob("*.py") for name in _imports(path) if name.startswith(ways)}
    assert found == {"tools.py"}
    for path in _UTILS.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert path.name == "tools.py" or not any(word in text for word in ("os.fork(", "os.exec", "os.system(")), path
