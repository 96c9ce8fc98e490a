# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Keeps each host's result on the controller, for reports over many hosts."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from typing import Any

from ansible.errors import AnsibleActionFail
from ansible_collections.metal.nodenet.plugins.plugin_utils.files import write_private

_LEFT_OUT = ("invocation",)


class Recorder:
    """Writes ``<folder>/<host>/<module>.json``. What an earlier run wrote there goes first."""

    def __init__(self, folder: str, host: str, module: str) -> None:
        if host in ("", ".", "..") or "/" in host or "\0" in host:
            raise AnsibleActionFail(f"nodenet_results_dir: the host name {host!r} is not the name of a folder")
        self._folder = os.path.join(os.path.expanduser(folder), host)
        self._path = os.path.join(self._folder, module + ".json")
        with suppress(FileNotFoundError):
            os.unlink(self._path)

    def write(self, result: dict[str, Any]) -> None:
        """Keep the result, its diff included, but not the task's arguments."""
        kept = {key: [_text(one) for one in value] if key == "warnings" else value
                for key, value in result.items() if key not in _LEFT_OUT and not key.startswith("_ansible_")}
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        write_private(self._path, json.dumps(kept, default=str).encode())


def _text(warning: Any) -> str:
    """A warning as it reads; between plugins it is an object, from ansible-core 2.19 on."""
    return str(getattr(getattr(warning, "event", None), "msg", warning))
