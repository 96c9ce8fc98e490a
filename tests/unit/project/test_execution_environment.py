# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""An execution environment has what the controller's code imports, in the versions that requirements.txt asks for."""

from __future__ import annotations

import ast
import fnmatch
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement

_TOP = Path(__file__).parents[3]
_FOLDERS = ("action", "connection", "filter", "lookup", "plugin_utils")
#: Import names whose package has another name.
_PACKAGES = {"yaml": "pyyaml"}
#: The environment's own choice, never a requirement of a collection.
_GIVEN = {"ansible", "ansible_collections"}


def _requirements(*paths: str) -> dict[str, list[Requirement]]:
    found: dict[str, list[Requirement]] = {}
    for path in paths:
        for line in (_TOP / path).read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                found.setdefault(Requirement(line).name.lower(), []).append(Requirement(line))
    return found


def _imports(path: Path) -> Iterator[str]:
    """The packages of others that a file imports, late imports included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module or ""]
        for name in names:
            top = name.partition(".")[0]
            if top not in sys.stdlib_module_names and top not in _GIVEN:
                yield _PACKAGES.get(top, top.lower())


def _imported() -> set[str]:
    files = [path for folder in _FOLDERS for path in (_TOP / "plugins" / folder).rglob("*.py")]
    return {name for path in files for name in _imports(path)}


def test_it_has_what_the_controller_imports_and_nothing_else() -> None:
    assert set(_requirements("meta/ee-requirements.txt")) == _imported()


def test_nothing_of_others_is_imported_on_a_node() -> None:
    for folder in ("modules", "module_utils"):
        for path in (_TOP / "plugins" / folder).rglob("*.py"):
            assert list(_imports(path)) == [], path


@pytest.mark.parametrize("file", ["requirements.txt", "tests/requirements.txt"])
def test_versions_are_those_of_a_checkout(file: str) -> None:
    environment = _requirements("meta/ee-requirements.txt")
    for name, wanted in _requirements(file).items():
        if name in environment:
            assert environment[name] == wanted, name
        else:
            assert file.startswith("tests/") or name == "ansible-core"


def test_the_readme_names_them() -> None:
    readme = (_TOP / "README.md").read_text(encoding="utf-8")
    requirements = readme.partition("## Requirements")[2].partition("\n## ")[0]
    # PyYAML and urllib3 come with ansible-core and kubernetes
    for name in _imported() - {"pyyaml", "urllib3"}:
        assert name in requirements


def test_a_built_collection_has_the_files() -> None:
    definition = yaml.safe_load((_TOP / "meta/execution-environment.yml").read_text(encoding="utf-8"))
    ignored = yaml.safe_load((_TOP / "galaxy.yml").read_text(encoding="utf-8"))["build_ignore"]
    for file in ["meta/execution-environment.yml", *definition["dependencies"].values()]:
        assert (_TOP / file).is_file()
        for part in ("meta", file, Path(file).name):
            assert not any(fnmatch.fnmatch(part, pattern) for pattern in ignored)


def test_ansible_builder_finds_them(tmp_path: Path) -> None:
    collection = tmp_path / "ansible_collections" / "metal" / "nodenet"
    collection.parent.mkdir(parents=True)
    collection.symlink_to(_TOP)
    command = [Path(sys.executable).parent / "ansible-builder", "introspect", tmp_path]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    found = yaml.safe_load(run.stdout)
    # an environment has PyYAML from ansible-core
    assert {Requirement(line.partition("#")[0]).name for line in found["python"]} == _imported() - {"pyyaml"}
    assert any(line.startswith("openssh") for line in found["system"])
