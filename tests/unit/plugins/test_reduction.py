# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""A reduced file that cannot be put where it belongs."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.plugin_utils.reduction import reduced


def test_a_temporary_directory_that_is_gone_is_named(tmp_path: Path) -> None:
    source = tmp_path / "cluster.json"
    source.write_text('{"kind": "List", "apiVersion": "v1", "items": []}')
    with pytest.raises(ClusterFileError, match="^cluster: .*/gone/nodenet-.*: No such file or directory$"):
        reduced(str(source), str(tmp_path / "gone"), lambda _text: None)
