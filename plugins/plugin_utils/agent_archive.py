# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The node's agent as one file, made of the same code that the modules run."""

from __future__ import annotations

import functools
import hashlib
import io
import os
import zipfile
from collections.abc import Iterator

_SOURCE = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "module_utils")
_PACKAGES = ("ansible_collections", "metal", "nodenet", "plugins")
_MAIN = b"""import sys

from ansible_collections.metal.nodenet.plugins.module_utils.node.agent import main

sys.exit(main())
"""
#: The only file of module_utils that needs Ansible.
_LEFT_OUT = "entry.py"
_SHEBANG = b"#!/usr/bin/env python3\n"
_EPOCH = (1980, 1, 1, 0, 0, 0)


@functools.lru_cache(maxsize=1)
def agent_archive() -> tuple[bytes, str]:
    """The archive and its sha256. Equal code gives equal bytes: sorted names, no times."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in sorted(_files()):
            entry = zipfile.ZipInfo(name, _EPOCH)
            entry.external_attr = 0o644 << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, data)
    data = _SHEBANG + out.getvalue()
    return data, hashlib.sha256(data).hexdigest()


def _files() -> Iterator[tuple[str, bytes]]:
    yield "__main__.py", _MAIN
    for depth in range(1, len(_PACKAGES) + 1):
        yield "/".join((*_PACKAGES[:depth], "__init__.py")), b""
    for folder, _folders, names in os.walk(_SOURCE):
        for name in names:
            path = os.path.join(folder, name)
            if name.endswith(".py") and os.path.relpath(path, _SOURCE) != _LEFT_OUT:
                with open(path, "rb") as file:
                    yield "/".join((*_PACKAGES, "module_utils", *os.path.relpath(path, _SOURCE).split(os.sep))), \
                        file.read()
