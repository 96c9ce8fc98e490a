# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the documents name is there: files, targets of links and of make, tests, playbooks, plugins and roles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from ansible_collections.metal.nodenet.plugins.module_utils.calico import names as calico_names
from ansible_collections.metal.nodenet.plugins.module_utils.kube import names as kube_names
from ansible_collections.metal.nodenet.plugins.plugin_utils.api_source import KINDS
from ansible_collections.metal.nodenet.plugins.plugin_utils.cluster_source import load_items
from support.builders import render

_TOP = Path(__file__).parents[3]
_DOCUMENTS = [path for pattern in ("*.md", "docs/**/*.md", "roles/*/README.md", "molecule/README.md",
                                   "tests/**/README.md") for path in sorted(_TOP.glob(pattern))
              # written by antsibull-changelog, about versions that are past
              if path.name != "CHANGELOG.md"]
_link = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)").findall
_code = re.compile(r"`([^`\n]+)`").findall
#: Folders of the checkout that a path in a document may begin with.
_FOLDERS = ("changelogs/", "docs/", "meta/", "molecule/", "playbooks/", "plugins/", "roles/", "tests/", ".ci/")
#: In documents about the code, paths may begin here.
_INSIDE = ("", "plugins/", "plugins/module_utils/")
_path = re.compile(r"[\w.-]+(?:/[\w.-]+)*/?").fullmatch
_test = re.compile(r"test_\w+").fullmatch
_name = re.compile(r"metal\.nodenet\.([a-z_]+)").findall
_target = re.compile(r"\bmake ([a-z]+)\b").findall
_heading = re.compile(r"^#+ (.+)$", re.MULTILINE).findall


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@pytest.fixture(params=_DOCUMENTS, ids=lambda path: str(path.relative_to(_TOP)))
def document(request: pytest.FixtureRequest) -> Path:
    """Each document that people write or read."""
    path: Path = request.param
    return path


def test_links_lead_somewhere(document: Path) -> None:
    for link in _link(_text(document)):
        if "://" in link:
            continue
        file, _hash, anchor = link.partition("#")
        target = (document.parent / file).resolve() if file else document
        assert target.exists(), link
        if anchor:
            assert anchor in {_anchor(heading) for heading in _heading(_text(target))}, link


def _anchor(heading: str) -> str:
    """A heading's anchor, as git hosts make it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def test_paths_are_there(document: Path) -> None:
    for word in _paths(document):
        assert any(list(_TOP.glob(start + word.rstrip("/"))) for start in _INSIDE), word


def _paths(document: Path) -> Iterator[str]:
    for word in _code(_text(document)):
        file = word.partition("::")[0]
        about_code = document.name == "architecture.md" and "/" in file and file.endswith(".py")
        if _path(file.replace("*", "x")) and (file.startswith(_FOLDERS) or about_code):
            yield file


def test_tests_are_there(document: Path) -> None:
    tests = "\n".join(_text(path) for path in _TOP.glob("tests/**/test_*.py"))
    for word in _code(_text(document)):
        if _test(word):
            assert f"def {word}(" in tests, word


def test_names_of_the_collection_are_there(document: Path) -> None:
    here = {path.stem for pattern in ("plugins/*/*.py", "playbooks/*.yml", "roles/*") for path in _TOP.glob(pattern)}
    for word in _name(_text(document)):
        assert word in here, word


def test_targets_of_make_are_there(document: Path) -> None:
    makefile = _text(_TOP / "Makefile")
    for block in _code(_text(document)) + re.findall(r"^make [a-z]+.*$", _text(document), re.MULTILINE):
        for target in _target(block):
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_picture_of_the_tree_is_true_and_whole() -> None:
    text = _text(_TOP / "docs/architecture.md")
    tree = text.partition("## The parts\n\n```\n")[2].partition("```")[0]
    files = {path.name for path in _TOP.rglob("plugins/**/*.py")}
    named = set(re.findall(r"\b([a-z_]+\.py)\b", tree))
    assert named
    assert named <= files, named - files
    words = set(re.findall(r"[a-z_]+", tree))
    missing = {path.stem for path in (_TOP / "plugins").rglob("*.py")} - words - {"__init__"}
    assert not missing, missing


def test_the_page_about_migration_names_all_that_is_ours() -> None:
    text = _text(_TOP / "docs/migration.md")
    for module in (calico_names, kube_names):
        for name, value in vars(module).items():
            if name.isupper() and name.lstrip("_") == name:
                for word in (value,) if isinstance(value, str) else value:
                    assert word == "ipv4" or f"`{word}`" in text, word


def test_every_document_can_be_found() -> None:
    index = {link.partition("#")[0] for link in _link(_text(_TOP / "docs/README.md"))}
    missing = {str(path.relative_to(_TOP / "docs")) for path in (_TOP / "docs").rglob("*.md")} - index - {"README.md"}
    assert not missing, missing


def test_the_rights_of_the_page_about_security_are_those_that_reading_takes() -> None:
    text = _text(_TOP / "docs/security.md")
    role = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    given = {(group, resource) for rule in role["rules"] for group in rule["apiGroups"]
             for resource in rule["resources"]}
    paths = [path.split("/") for kind in KINDS.values() for path in kind.paths]
    # /api/v1/RESOURCE, and /apis/GROUP/VERSION/RESOURCE
    asked = {(path[2] if path[1] == "apis" else "", path[-1]) for path in paths}
    assert given == asked
    assert all(rule["verbs"] == ["list"] for rule in role["rules"])


def test_the_difference_in_the_readme_is_that_of_the_demo() -> None:
    shown = _text(_TOP / "README.md").partition("```diff\n")[2].partition("```")[0].splitlines()
    sides = {"-": _rendered("cluster.yml"), "+": _rendered("cluster-scaled.yml")}
    rules = [(line[0], line[1:]) for line in shown if line[1:].startswith(("-A ", ":"))]
    assert rules
    for sign, rule in rules:
        assert [rule in rules_of_side for rules_of_side in sides.values()] == [sign in "- ", sign in "+ "], rule


def _rendered(file: str) -> set[str]:
    """The lines of the table nat as the demo's node would have it."""
    options = {"detect_local": "cluster_cidr", "cidrs": ["10.244.0.0/16"], "node_name": "node-1"}
    table = render(load_items(str(_TOP / "playbooks/files" / file)), **options).state.tables["nat"]
    return {line for chain in table.chains.values()
            for line in (f":{chain.name} - [0:0]", *(f"-A {chain.name} {rule}" for rule in chain.rules))}
