# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The controller asks for paths on a node, and what it has under the same path itself does not matter."""

from __future__ import annotations

from pathlib import Path

import pytest
from ansible.errors import AnsibleActionFail
from ansible_collections.metal.nodenet.plugins.module_utils.node.layout import StateDir, StateError
from ansible_collections.metal.nodenet.plugins.plugin_utils.transfer import state_dir_of


def test_a_directory_of_the_controller_is_not_looked_at(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    assert state_dir_of({"state_dir": str(tmp_path)}).file("cache") == str(tmp_path / "cache")
    with pytest.raises(StateError, match="nobody else may write there"):
        StateDir(str(tmp_path))


def test_a_path_that_can_be_none_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(AnsibleActionFail, match="state_dir: 'state' is not the absolute path"):
        state_dir_of({"state_dir": "state"})
