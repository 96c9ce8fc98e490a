# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands behind the hashed names of chains that go: their rules' comments still say it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

_HASHED = re.compile(r"KUBE-(?:SVC|SVL|SEP|FW|EXT|XLB)-")
#: The first word with a slash in it is the service port, whatever the sentence around it.
_SERVICE = re.compile(r'--comment "(?:[^"/]* )?([^" /]+/[^" ]+)')
_TO = re.compile(r" --to-destination (\S+)")


def titles(removals: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Chain name to ``namespace/name:port`` (and the endpoint), for those with a hashed name."""
    out: dict[str, str] = {}
    for name, rules in removals.items():
        if not _HASHED.match(name):
            continue
        text = "\n".join(rules)
        service, endpoint = _SERVICE.search(text), _TO.search(text)
        parts = [found.group(1) for found in (service, endpoint) if found]
        if parts:
            out[name] = " -> ".join(parts)
    return out
