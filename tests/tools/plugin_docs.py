# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pages docs/modules/*.md and docs/plugins/*.md, from the plugins' documentation; docs/playbooks.md, from how each
playbook begins; and the list in docs/README.md.

    plugin_docs.py           write them
    plugin_docs.py --check   fail if one is out of date
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import yaml

TOP = Path(__file__).resolve().parents[2]
NAMESPACE = "metal.nodenet."
MARK = "<!-- written by tests/tools/plugin_docs.py from {source}: change it there -->"
BEGIN = "<!-- list: written by tests/tools/plugin_docs.py -->"
END = "<!-- end of list -->"
#: In the order in which one runs them.
PLAYBOOKS = ("prepare", "plan", "apply", "verify", "rollback", "remove", "demo")
#: Kind of plugin, where its code is, where its page goes.
KINDS = (("module", "modules", "modules"), ("connection", "connection", "plugins"), ("filter", "filter", "plugins"))
_markup = re.compile(r"\b(RV|O|V|C|I|B|E|M|P)\(((?:[^()]|\([^()]*\))*)\)")


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as they are."""


def _represented(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


_Dumper.add_representer(str, _represented)


def main(arguments: list[str]) -> int:
    """Write, or check; the exit code."""
    check = arguments == ["--check"]
    if arguments and not check:
        print(__doc__, file=sys.stderr)
        return 2
    pages = dict(_pages())
    pages[TOP / "docs/playbooks.md"] = _playbooks()
    index = TOP / "docs/README.md"
    pages[index] = _with_list(index.read_text(encoding="utf-8"), pages)
    faults = [f"{path.relative_to(TOP)} is about nothing that is there" for path in _written() if path not in pages]
    faults += [f"playbooks/{name}.yml is not among PLAYBOOKS of tests/tools/plugin_docs.py"
               for name in sorted(_found_playbooks() - set(PLAYBOOKS))]
    for path, text in pages.items():
        old = path.read_text(encoding="utf-8") if path.exists() else None
        if old == text:
            continue
        if check:
            faults.append(f"{path.relative_to(TOP)} is out of date: run tests/tools/plugin_docs.py")
        else:
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
    for fault in faults:
        print(fault, file=sys.stderr)
    return 1 if faults else 0


def _written() -> Iterator[Path]:
    for folder in {folder for _kind, _code, folder in KINDS}:
        yield from (TOP / "docs" / folder).glob("*.md")


def _pages() -> Iterator[tuple[Path, str]]:
    for kind, code, folder in KINDS:
        names = sorted({path.stem for path in (TOP / "plugins" / code).glob("*.py")} - {"__init__"})
        command = ["ansible-doc", "--json", "--type", kind, *(NAMESPACE + name for name in names)]
        run = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        documented = json.loads(run.stdout)
        for name in names:
            texts, code_file = (TOP / "plugins" / code / f"{name}.{suffix}" for suffix in ("yml", "py"))
            source = texts if texts.exists() else code_file
            page = _page(kind, name, documented[NAMESPACE + name], source.relative_to(TOP))
            yield TOP / "docs" / folder / f"{name}.md", page


def _page(kind: str, name: str, found: dict[str, Any], source: Path) -> str:
    doc = found["doc"]
    parts = [MARK.format(source=source), f"# {NAMESPACE}{name} ({kind})", _sentence(doc["short_description"]),
             *map(_text, _lines(doc.get("description")))]
    if "requirements" in doc:
        parts += ["## Requirements", _list(doc["requirements"])]
    parts += ["## Options" if kind != "filter" else "## Input and options", *_options(doc.get("options") or {})]
    if doc.get("attributes"):
        parts += ["## Attributes", _attributes(doc["attributes"])]
    if doc.get("notes"):
        parts += ["## Notes", _list(doc["notes"])]
    if doc.get("seealso"):
        parts += ["## See also", _list([_reference(entry) for entry in doc["seealso"]])]
    if found.get("examples"):
        parts += ["## Examples", f"```yaml\n{found['examples'].strip()}\n```"]
    if found.get("return"):
        parts += ["## Return values", *_returns(found["return"])]
    return "\n\n".join(parts) + "\n"


def _options(options: dict[str, Any]) -> Iterator[str]:
    if not options:
        yield "None."
    # what must be given first, then by name
    for name, option in sorted(options.items(), key=lambda pair: (not pair[1].get("required"), pair[0])):
        yield f"### {name}"
        yield _facts(option)
        yield from map(_text, _lines(option["description"]))
        if option.get("suboptions"):
            yield "\n".join(_nested(option["suboptions"], "suboptions", ""))


def _returns(values: dict[str, Any]) -> Iterator[str]:
    for name, value in values.items():
        yield f"### {name}"
        yield f"{_kind(value)}, returned {_text(str(value.get('returned', 'always')))}"
        yield from map(_text, _lines(value["description"]))
        if value.get("contains"):
            yield "\n".join(_nested(value["contains"], "contains", ""))
        if "sample" in value:
            sample = yaml.dump(value["sample"], Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
            yield f"```yaml\n{sample.removesuffix('...' + chr(10)).strip()}\n```"


def _nested(options: dict[str, Any], inner: str, indent: str) -> Iterator[str]:
    for name, option in options.items():
        yield f"{indent}- `{name}` ({_facts(option)}): {' '.join(map(_text, _lines(option['description'])))}"
        yield from _nested(option.get(inner) or {}, inner, indent + "  ")


def _facts(option: dict[str, Any]) -> str:
    facts = [_kind(option)]
    if option.get("required"):
        facts.append("**required**")
    if "default" in option:
        facts.append(f"default `{json.dumps(option['default'])}`")
    if "choices" in option:
        facts.append("one of " + ", ".join(f"`{choice}`" for choice in option["choices"]))
    return ", ".join(facts)


def _kind(value: dict[str, Any]) -> str:
    kind = value.get("type", "str")
    return f"{kind} of {value['elements']}" if "elements" in value else str(kind)


def _attributes(attributes: dict[str, Any]) -> str:
    # what an attribute means is ansible-core's to say, and in another core it says it otherwise
    rows = ["| attribute | support | details |", "|---|---|---|"]
    for name, attribute in attributes.items():
        support = attribute.get("platforms") or attribute.get("membership") or attribute["support"]
        support = support if isinstance(support, str) else ", ".join(support)
        details = " ".join(map(_text, _lines(attribute.get("details"))))
        rows.append(f"| {name} | {support} | {details.replace('|', chr(92) + '|')} |")
    return "\n".join(rows)


def _reference(entry: dict[str, str]) -> str:
    if "module" in entry:
        target = f"M({entry['module']})"
    elif "plugin" in entry:
        target = f"P({entry['plugin']}#{entry['plugin_type']})"
    else:
        target = f"[{entry['name']}]({entry['link']})"
    return f"{target}: {entry['description']}" if entry.get("description") else target


def _found_playbooks() -> set[str]:
    files = (TOP / "playbooks").glob("*.yml")
    # a playbook is a list of plays, an inventory is none
    return {path.stem for path in files if isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), list)}


def _playbooks() -> str:
    parts = [MARK.format(source="playbooks/"), "# Playbooks", "What each does, and its variables."]
    for name in PLAYBOOKS:
        comment = []
        for line in (TOP / f"playbooks/{name}.yml").read_text(encoding="utf-8").splitlines()[1:]:
            if not line.startswith("#"):
                break
            comment.append(line[2:])
        # Commands and lists of variables are indented there.
        blocks = re.split(r"\n\n+", "\n".join(comment))
        parts += [f"## {NAMESPACE}{name}", *(f"```\n{dedent(block)}\n```" if block.startswith("  ") else block
                                             for block in blocks)]
    return "\n\n".join(parts) + "\n"


def _with_list(index: str, pages: dict[Path, str]) -> str:
    head, begin, rest = index.partition(BEGIN)
    _old, end, tail = rest.partition(END)
    if not begin or not end:
        raise SystemExit(f"docs/README.md: the lines {BEGIN} and {END} are missing")
    rows = ["| page | |", "|---|---|"]
    for path, text in pages.items():
        _mark, title, short, *_more = text.strip().split("\n\n")
        rows.append(f"| [{title[2:]}]({path.relative_to(TOP / 'docs').as_posix()}) | {short} |")
    for role in sorted(TOP.glob("roles/*/meta/argument_specs.yml")):
        spec = yaml.safe_load(role.read_text(encoding="utf-8"))["argument_specs"]["main"]
        name, short = role.parents[1].name, _sentence(spec["short_description"])
        rows.append(f"| [{NAMESPACE}{name} (role)](../roles/{name}/README.md) | {short} |")
    table = "\n".join(rows)
    return f"{head}{BEGIN}\n\n{table}\n\n{END}{tail}"


def _lines(text: str | list[str] | None) -> list[str]:
    return [text] if isinstance(text, str) else list(text or [])


def _list(items: list[str]) -> str:
    return "\n".join(f"- {_text(item)}" for item in items)


def _sentence(text: str) -> str:
    return _text(text).rstrip(".") + "."


def _text(text: str) -> str:
    """Ansible's markup as that of Markdown."""
    words = re.sub(r"\s+", " ", text).strip()
    return _markup.sub(_marked, words.replace("<", "&lt;"))


def _marked(found: re.Match[str]) -> str:
    mark, inner = found[1], found[2].replace("&lt;", "<")
    if mark == "B":
        return f"**{inner}**"
    if mark == "I":
        return f"*{inner}*"
    if mark == "M" and inner.startswith(NAMESPACE):
        return f"[{inner}](../modules/{inner.removeprefix(NAMESPACE)}.md)"
    if mark in ("O", "RV"):
        inner = inner.removeprefix("ignore:")
    if mark == "P":
        inner = inner.partition("#")[0]
    return f"`{inner}`"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
