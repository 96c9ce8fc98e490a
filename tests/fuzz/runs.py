# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Runs of modules without a node: options and objects in; what would be written, or an own error, out."""

from __future__ import annotations

import contextlib
import re
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from unittest import mock

from ansible.module_utils.common.arg_spec import ArgumentSpecValidator
from ansible_collections.metal.nodenet.plugins.module_utils import states
from ansible_collections.metal.nodenet.plugins.module_utils.cluster.file import ClusterFileError
from ansible_collections.metal.nodenet.plugins.module_utils.managers import MANAGERS
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.errors import NetfilterError
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, Desired
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.plan import plan_family
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.set_plan import plan_sets, session
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.transaction import transactions
from ansible_collections.metal.nodenet.plugins.module_utils.objects import ObjectError
from ansible_collections.metal.nodenet.plugins.modules import (
    calico_host_ips,
    calico_masq,
    floating_ip,
    kube_nat_chains,
    service_loop_block,
)
from fuzz.restore import Rule, read_restore, read_sets

MODULES = {"kube_nat_chains": kube_nat_chains, "calico_masq": calico_masq, "floating_ip": floating_ip,
           "service_loop_block": service_loop_block, "calico_host_ips": calico_host_ips}

#: What a message may be long: it goes to a terminal and a log.
MOST = 2000
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\ud800-\udfff\u2028\u2029\u202a-\u202e]")


class _Spec(Exception):
    pass


def _validator(name: str) -> ArgumentSpecValidator:
    found: dict[str, Any] = {}

    def take(**options: Any) -> None:
        options.pop("supports_check_mode")
        found.update(options)
        raise _Spec

    with mock.patch.object(MODULES[name], "AnsibleModule", take), contextlib.suppress(_Spec):
        MODULES[name].main()
    return ArgumentSpecValidator(**found)


_validators = {name: _validator(name) for name in MODULES}


class Output(NamedTuple):
    """What a run would write, and what it says."""

    desired: dict[str, Desired]
    rules: dict[str, list[Rule]]
    #: set to members
    sets: dict[str, list[str]]
    texts: dict[str, str]
    warnings: list[str]


class Refused(NamedTuple):
    """The message of an error of the project's own."""

    message: str


def options_of(name: str, **options: Any) -> dict[str, Any] | None:
    """The parameters that a module gets for these options; None where Ansible itself refuses them."""
    try:
        result = _validators[name].validate({"state": "rendered", **options})
    except (TypeError, ValueError, AttributeError, RecursionError, OverflowError):
        return None  # Ansible's own conversion of options
    return None if result.error_messages else dict(result.validated_parameters)


def run(name: str, params: dict[str, Any]) -> Output | Refused:
    """Run a module's ``rendered`` and read, strictly, what ``present`` would write on an empty node."""
    warnings: list[str] = []
    part = MANAGERS[name]
    return guarded(lambda: _run(params, part.tables, part.build, warnings))


def _run(params: dict[str, Any], tables: Sequence[str], build: Callable[[dict[str, Any]], states.Manager],
         warnings: list[str]) -> Output:
    result = states.run(params, True, tables, build, warnings.append)
    for warning in warnings:
        check_text(warning)
    for family in params["families"] or FAMILIES:
        for text in result["rendered"][family].values():
            read_restore(text)
    manager = build(params)
    desired = {family: manager.desired(family, None) for family in params["families"] or FAMILIES}
    texts, rules, sets = {}, {}, {}
    for family, one in desired.items():
        written = "".join(transaction.text for transaction in transactions(plan_family({}, one)))
        texts[family], rules[family] = written, read_restore(written)
        sets.update(read_sets(session(plan_sets({}, one), family)) if one.sets else {})
    return Output(desired, rules, sets, texts, warnings)


def guarded(action: Callable[[], Any]) -> Any:
    """The result of an action, or its error, which must be one of the project's own and fit to be read."""
    try:
        return action()
    except (NetfilterError, ClusterFileError, ObjectError) as error:
        return Refused(check_text(str(error)))
    except ValueError as error:
        # Options are refused with plain ones; a codec, a parser or a limit of Python's must not show.
        assert error.__class__ is ValueError, repr(error)[:MOST]
        assert re.match(r"[a-z_.\[\]0-9]+: ", str(error)), str(error)[:MOST]
        return Refused(check_text(str(error)))


def check_text(text: str) -> str:
    """A message must be short, and one line of what a terminal shows."""
    assert len(text) <= MOST, f"{len(text)} characters: {text[:300]}"
    assert not _UNPRINTABLE.search(text), repr(text)
    return text


def lines(output: Output) -> Counter[tuple[str, str, str, str]]:
    """How often each rule is there: family, table, chain and text."""
    return Counter((family, rule.table, rule.chain, rule.text) for family,
                   rules in output.rules.items() for rule in rules)
