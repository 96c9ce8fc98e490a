# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Hostile files: JSON and YAML that is cut, flipped, doubled, deep, wide or not text at all."""

from __future__ import annotations

import gzip
import hashlib
import json
import tempfile
from pathlib import Path
from typing import Any

import yaml
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import read_items
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.reduce import reduce_items
from ansible_collections.metal.nodenet.plugins.plugin_utils.cluster_source import load_items
from ansible_collections.metal.nodenet.plugins.plugin_utils.reduction import reduced
from fuzz import clusters
from fuzz.budget import counted, fuzzed
from fuzz.hostile import broken, real, scattered, texts, values
from fuzz.runs import MODULES, Output, Refused, guarded, lines, options_of, run
from hypothesis import given
from hypothesis import strategies as st

FILE_MODULES = {
    "kube_nat_chains": {"node_name": clusters.NODE, "allow_empty": True},
    "calico_masq": {"allow_empty": True, "exclusions": "pools_and_hosts"},
    "floating_ip": {"node_name": clusters.NODE},
    "service_loop_block": {},
}

documents = broken(st.sampled_from((
    {"apiVersion": "v1", "kind": "List", "items": clusters.cluster()},
    [{"kind": "ServiceList", "apiVersion": "v1", "items": clusters.services("shop", 1)[:1]},
     {"kind": "IPPoolList", "apiVersion": "projectcalico.org/v3", "items": clusters.calico()[:2]}])))

#: Text that is JSON or YAML in a way that a parser may not like.
ODD = (
    b"", b"\x00", b"\xff\xfe", b"\xef\xbb\xbf{}", b"{", b"[", b"[" * 200_000, b'{"a":' * 200_000, b"- " * 100_000,
    b"null", b"~",
    b"{}", b"[]", b'"List"', b"---\n---\n", b"%YAML 9.9\n---\n", b"!!python/object/apply:os.system [touch x]",
    b"kind: List\nitems: &a [*a]", b"&a {kind: List, items: [*a]}", b"kind: List\nkind: List\nitems: []",
    b'{"kind":"List","kind":"List","items":[]}', b'{"kind":"List","items":[NaN, Infinity, -Infinity, 1e999]}',
    b'{"kind":"List","items":[' + b"9" * 5000 + b"]}", b"kind: List\nitems: [0x" + b"f" * 6000 + b"]",
    b"kind: List\nitems: [.nan, .inf, 1:20:30, 0o7, 017, 1_000, 2026-11-30, =, <<, yes]",
    b"kind: List\nitems: {<<: {a: 1}}",
    b'{"kind":"List","items":["\\ud800"]}', b"kind: List\nitems: [\xed\xa0\x80]", b"kind: List\nitems: [!!binary AA==]",
    b"kind: List\nitems: [? [a] : b]", b"a: [" * 5000, b"kind: List\nitems: [1:" + b"59:" * 3000 + b"0]",
    b"a: &a [x]\n" + b"".join(b"%s: &%s [%s]\n" % (b"bcdefghijk"[n:n + 1], b"bcdefghijk"[n:n + 1], b",".join(
        [b"*" + b"abcdefghijk"[n:n + 1]] * 10)) for n in range(10)) + b"kind: List\nitems: [*k]",
    b"kind: List\na: &a " + b"x" * 1_000_000 + b"\nitems: [" + b"*a, " * 5000 + b"]",
    gzip.compress(b""), gzip.compress(b"{}")[:-4], b"\x1f\x8b" + b"\x00" * 20, gzip.compress(gzip.compress(b"{}")),
)


def on_disk(folder: str, data: bytes) -> str:
    path = Path(folder) / "cluster.json"
    path.write_bytes(data)
    return str(path)


def check_file(data: bytes) -> None:
    """The controller and the node take the file or say what is wrong with it; what goes to a node, it can read."""
    with tempfile.TemporaryDirectory() as folder:
        path = on_disk(folder, data)
        guarded(lambda: reduce_items(read_items(path)))
        found = guarded(lambda: load_items(path))
        sent = guarded(lambda: reduced(path, folder, lambda _text: None))
        assert not (isinstance(found, Refused) and not isinstance(sent, Refused))
        if not isinstance(sent, Refused):
            assert hashlib.sha256(Path(sent.path).read_bytes()).hexdigest() == sent.sha256
            for name, options in FILE_MODULES.items():
                params = options_of(name, cluster=sent.path, cluster_sha256=sent.sha256, **options)
                assert params is not None
                run(name, params)


def as_json(document: Any) -> bytes:
    """As bytes, surrogates and NaN included."""
    return json.dumps(document, ensure_ascii=False).encode("utf-8", "surrogatepass")


def as_yaml(document: Any) -> bytes:
    """With anchors where it holds a value twice."""
    text: str = yaml.dump(document, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), allow_unicode=True)
    return text.encode("utf-8", "surrogatepass")


@fuzzed()
@given(documents, st.sampled_from((as_json, as_yaml)), st.booleans())
@counted
def test_a_file_with_wrong_values_anywhere(drawn: Any, written: Any, packed: bool) -> None:
    try:
        data = written(real(drawn))
    except (RecursionError, ValueError, yaml.YAMLError):
        return  # no such file can be written
    check_file(gzip.compress(data, 1) if packed else data)


WHOLE = {"apiVersion": "v1", "kind": "List", "items": clusters.cluster()}


@fuzzed()
@given(st.sampled_from((as_json(WHOLE), as_yaml(WHOLE), gzip.compress(as_json(WHOLE)))), st.integers(0, 10 ** 9),
       st.integers(1, 12), st.integers(0, 40_000))
@counted
def test_a_file_that_is_damaged_or_cut(data: bytes, seed: int, flips: int, end: int) -> None:
    check_file(scattered(seed, data[:end], flips) if seed % 2 else scattered(seed, data, flips))


@fuzzed(0.5)
@given(st.sampled_from(ODD) | st.binary(max_size=300) | texts.map(lambda text: text.encode("utf-8", "surrogatepass")))
@counted
def test_a_file_of_anything(data: bytes) -> None:
    check_file(data)


def test_each_odd_file_is_taken_or_refused() -> None:
    for data in ODD:
        check_file(data)


@fuzzed(0.5)
@given(st.lists(values, max_size=3), st.sampled_from(clusters.LAYOUTS))
@counted
def test_reducing_changes_no_rule(strangers: list[Any], layout: str) -> None:
    """The node makes of the reduced file what it makes of the whole one."""
    items = [*clusters.services("shop", 1), clusters.node(clusters.NODE, 11),
             *({"kind": "ConfigMap", "data": one} for one in (
                 real(strangers)))]
    try:
        data = as_json({"kind": "List", "items": items})
    except (RecursionError, ValueError):
        return
    with tempfile.TemporaryDirectory() as folder:
        path = on_disk(folder, data)
        sent = guarded(lambda: reduced(path, folder, lambda _text: None))
        if isinstance(sent, Refused):
            return
        outputs = []
        for more in ({"cluster": path}, {"cluster": sent.path, "cluster_sha256": sent.sha256}):
            params = options_of("kube_nat_chains", layout=layout, **FILE_MODULES["kube_nat_chains"], **more)
            assert params is not None
            outputs.append(run("kube_nat_chains", params))
        assert all(isinstance(output, Output) for output in outputs), outputs
        assert lines(outputs[0]) == lines(outputs[1])


def test_every_module_that_reads_a_file_is_here() -> None:
    reading = {name for name in MODULES if options_of(name, cluster="/c", **FILE_MODULES.get(name, {}))}
    assert reading == set(FILE_MODULES)
