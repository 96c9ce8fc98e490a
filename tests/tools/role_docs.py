# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The tables of variables in the roles' README.md, from their argument_specs.

    role_docs.py           write them
    role_docs.py --check   fail if one is out of date, or if a default is not the documented one
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

TOP = Path(__file__).resolve().parents[2]
BEGIN = "<!-- variables: written by tests/tools/role_docs.py -->"
END = "<!-- end of variables -->"
_markup = re.compile(r"\b(?:RV|O|V|C|I|B|E|M)\(((?:[^()]|\([^()]*\))*)\)")


def main(arguments: list[str]) -> int:
    """Write, or check; the exit code."""
    check = arguments == ["--check"]
    if arguments and not check:
        print(__doc__, file=sys.stderr)
        return 2
    faults: list[str] = []
    for role in sorted(path.parent.parent for path in TOP.glob("roles/*/meta/argument_specs.yml")):
        specs = yaml.safe_load((role / "meta/argument_specs.yml").read_text())["argument_specs"]
        faults += _wrong_defaults(role, specs["main"].get("options") or {})
        readme = role / "README.md"
        old = readme.read_text()
        new = _with_tables(old, specs)
        if new is None:
            faults.append(f"{readme.relative_to(TOP)}: the lines {BEGIN} and {END} are missing")
        elif new != old and check:
            faults.append(f"{readme.relative_to(TOP)} is out of date: run tests/tools/role_docs.py")
        elif new != old:
            readme.write_text(new)
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def _wrong_defaults(role: Path, options: dict[str, Any]) -> Iterator[str]:
    found = yaml.safe_load((role / "defaults/main.yml").read_text()) or {}
    documented = {name: option["default"] for name, option in options.items() if "default" in option}
    # one that is taken from another variable is not of the option's type: its description says what it is
    found = {name: value for name, value in found.items()
             if name not in options or name in documented or "{{" not in str(value)}
    for name in sorted(found.keys() | documented.keys()):
        if name not in documented or name not in found or found[name] != documented[name]:
            yield (f"{role.name}: {name}: the default is {found.get(name, 'not set')!r} in defaults/main.yml and "
                   f"{documented.get(name, 'not set')!r} in meta/argument_specs.yml")


def _with_tables(text: str, specs: dict[str, Any]) -> str | None:
    head, begin, rest = text.partition(BEGIN)
    _old, end, tail = rest.partition(END)
    if not begin or not end:
        return None
    parts = []
    for entry, spec in specs.items():
        title = "" if entry == "main" else f"### With `tasks_from: {entry}`\n\n{_plain(spec['short_description'])}.\n\n"
        parts.append(title + _table(spec.get("options") or {}))
    return f"{head}{BEGIN}\n\n" + "\n".join(parts) + f"\n{END}{tail}"


def _table(options: dict[str, Any]) -> str:
    if not options:
        return "No variables.\n"
    rows = ["| variable | type | default | meaning |", "|---|---|---|---|"]
    rows += [f"| `{name}` | {_type(option)} | {_default(option)} | {_meaning(option)} |"
             for name, option in _flat(options, "")]
    return "\n".join(rows) + "\n"


def _flat(options: dict[str, Any], prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each option, and below it those that it is made of."""
    for name, option in options.items():
        yield prefix + name, option
        inner = f"{prefix}{name}[]." if option.get("type") == "list" else f"{prefix}{name}."
        yield from _flat(option.get("options") or {}, inner)


def _type(option: dict[str, Any]) -> str:
    kind = option.get("type", "str")
    return f"{kind} of {option['elements']}" if "elements" in option else str(kind)


def _default(option: dict[str, Any]) -> str:
    if option.get("required"):
        return "**required**"
    return f"`{json.dumps(option['default'])}`" if "default" in option else ""


def _meaning(option: dict[str, Any]) -> str:
    lines = option["description"]
    text = " ".join([lines] if isinstance(lines, str) else lines)
    if "choices" in option:
        text += " One of " + ", ".join(f"`{choice}`" for choice in option["choices"]) + "."
    return _plain(text).replace("|", "\\|")


def _plain(text: str) -> str:
    """Ansible's markup as that of Markdown."""
    return _markup.sub(lambda found: f"`{found[1]}`", re.sub(r"\s+", " ", text)).strip()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
