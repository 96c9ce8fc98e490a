# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's half: what was sent is checked, kept, and old copies go."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.input import clean, read_input
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.reduce import packed
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import StateDir
from support.builders import service


def sent(folder: Path, *items: Any) -> dict[str, Any]:
    """The parameters of a module whose file has just arrived."""
    data = packed(list(items))
    (folder / "sent.json.gz").write_bytes(data)
    return {"cluster": str(folder / "sent.json.gz"), "cluster_sha256": hashlib.sha256(data).hexdigest(),
            "state": "present", "state_dir": str(folder / "state")}


def test_what_was_sent_is_read_and_kept(tmp_path: Path) -> None:
    params = sent(tmp_path, service())
    warnings: list[str] = []
    assert read_input(params, warnings) == [service()]
    kept = tmp_path / "state" / "cache" / (params["cluster_sha256"] + ".json.gz")
    assert kept.read_bytes() == (tmp_path / "sent.json.gz").read_bytes()
    assert read_input({**params, "cluster": str(kept)}, warnings) == [service()]
    assert warnings == []
    assert [path.name for path in kept.parent.iterdir()] == [kept.name]


def test_rendering_keeps_nothing(tmp_path: Path) -> None:
    assert read_input({**sent(tmp_path, service()), "state": "rendered"}, []) == [service()]
    assert not (tmp_path / "state").exists()


def test_another_content_is_refused(tmp_path: Path) -> None:
    params = sent(tmp_path, service())
    (tmp_path / "sent.json.gz").write_bytes(packed([]))
    with pytest.raises(ClusterFileError, match="is not what was sent"):
        read_input(params, [])


def test_a_hash_is_no_path(tmp_path: Path) -> None:
    with pytest.raises(ClusterFileError, match="cluster_sha256: '../../x' is not a SHA-256"):
        read_input({**sent(tmp_path, service()), "cluster_sha256": "../../x"}, [])


def test_nothing_goes_where_a_document_cannot_be_read(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    for number in range(5):
        (cache / f"{number:064x}.json.gz").write_bytes(b"")
    (tmp_path / "applied").write_text("")
    with pytest.raises(NotADirectoryError):
        clean(StateDir(str(tmp_path)), "f" * 64)
    assert len(list(cache.iterdir())) == 5


def test_what_killed_runs_left_goes_with_the_old_copies(tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    for number in range(5):
        path = cache / f"{number:064x}.json.gz"
        path.write_bytes(b"")
        os.utime(path, (number, number))
    (cache / ".new-old").write_bytes(b"")
    os.utime(cache / ".new-old", (1, 1))
    (cache / ".new-now").write_bytes(b"")
    (cache / "of-somebody-else").write_bytes(b"")
    (tmp_path / "guard").mkdir()
    (tmp_path / "guard" / "snapshot.json").write_text(f'{{"applied": {{"x": {{"input": "{1:064x}"}}}}}}')
    clean(StateDir(str(tmp_path)), f"{0:064x}")
    assert {path.name for path in cache.iterdir()} == {
        ".new-now", "of-somebody-else", *(f"{number:064x}.json.gz" for number in (0, 1, 3, 4))}
