# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every recorded field case has a test of its number."""

from __future__ import annotations

import re
from pathlib import Path

#: Faults that people met in tools of this kind; the tests say what each is about.
CASES = """
f001 f002 f004 f005 f006 f008 f009 f010 f012 f013 f014 f016 f017 f018 f020 f021
f022 f024 f025 f026 f028 f029 f030 f032 f033 f034 f036 f037 f038 f040 f041 f042
f044 f045 f046 f048 f049 f050 f052 f053 f054 f056 f057 f058 f060 f061 f062 f064
f065 f066 f068 f069 f070 f072 f073 f074 f076 f077 f078 f080 f081 f082 f084 f085
f086 f088 f089 f090 f092 f093 f094 f096 f097 f098 f100 f101
"""

_TESTS = Path(__file__).resolve().parent.parent


def test_every_field_case_has_a_test() -> None:
    names = [name for path in _TESTS.rglob("test_*.py") for name in re.findall(r"def (test_\w+)", path.read_text())]
    tested = {number for name in names for number in re.findall(r"f\d{3}", name)}
    assert set(CASES.split()) - tested == set()
