# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The chains of Felix's that several parts have entries in: hooks, ranks and ids."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.calico import names, rule
from ansible_collections.metal.nodenet.plugins.module_utils.calico.options import INSERT, CalicoOptions
from ansible_collections.metal.nodenet.plugins.module_utils.calico.pieces import jump
from ansible_collections.metal.nodenet.plugins.module_utils.calico.rule import FelixRule
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import (
    APPEND,
    HEAD,
    LAST,
    Entry,
    Jump,
    SharedChain,
    target_of,
)

LOOPBACK_COMMENT = "BPF loopback SNAT"
METADATA = "169.254.169.254/32"

# Ranks. Rules of Felix's that are no entries of ours (tunnels, policy) have rank 0.
PREROUTING_FIP, PREROUTING_METADATA = -2, -1
OUTPUT_FIP = -1
POSTROUTING_LOOPBACK, POSTROUTING_FIP, POSTROUTING_OUTGOING = -3, -2, -1
FORWARD_BLOCK = 1


class _Known(NamedTuple):
    """How to tell an entry by its text: its target, and what else must be in it."""

    rank: int
    target: str
    part: str = ""


_KNOWN: dict[str, tuple[_Known, ...]] = {
    names.PREROUTING: (_Known(PREROUTING_FIP, names.FIP_DNAT),
                       _Known(PREROUTING_METADATA, "DNAT", f"-d {METADATA} -p tcp ")),
    names.OUTPUT: (_Known(OUTPUT_FIP, names.FIP_DNAT),),
    names.POSTROUTING: (_Known(POSTROUTING_LOOPBACK, "MASQUERADE", f'--comment "{LOOPBACK_COMMENT}" '),
                        _Known(POSTROUTING_FIP, names.FIP_SNAT),
                        _Known(POSTROUTING_OUTGOING, names.NAT_OUTGOING)),
    names.FORWARD: (_Known(FORWARD_BLOCK, names.CIDR_BLOCK),),
}


def shared_chain(name: str, ranks: Sequence[int], entries: Mapping[int, FelixRule],
                 options: CalicoOptions) -> SharedChain:
    """A shared chain as one part sees it: ``ranks`` are its own, ``entries`` what it wants at some of them."""
    own = {entry.saved(): entry.felix() for entry in entries.values()}
    return SharedChain(
        name,
        tuple(Entry(entries[rank].saved(), rank) for rank in sorted(entries)),
        frozenset(ranks),
        (hook(name, options),),
        functools.partial(rank_of, name),
        functools.partial(stamp, name, own, options.rule_hashes),
    )


def hook(name: str, options: CalicoOptions) -> Jump:
    """The jump from the built-in chain to a shared chain."""
    parent = name[len("cali-"):]
    # Behind kube-proxy's rules, which clear their mark before this chain masquerades.
    at_end = name == names.POSTROUTING and options.version.nat_hook_last and not options.bpf
    position = LAST if at_end else HEAD if options.insert_mode == INSERT else APPEND
    listed_as = f"{parent}*appends*" if at_end else parent
    leading = FelixRule((jump(name),))
    rule_id = rule.ids(listed_as, [leading.felix()])[0] if options.rule_hashes else ""
    return Jump(parent, leading.saved(rule_id), position)


def rank_of(name: str, text: str) -> int | None:
    """The rank of a rule of a shared chain, whatever its id; None for a rule that is no entry."""
    bare = rule.split_id(text)[0]
    target = target_of(bare)
    for known in _KNOWN[name]:
        if target == known.target and known.part in bare:
            return known.rank
    return None


def stamp(name: str, own: Mapping[str, str], with_ids: bool, rules: Sequence[str]) -> list[str]:
    """The rules of a shared chain with the ids of all entries made anew, or without them.

    Rules that are no entries keep their text. Those of Felix's before an entry count for its id where we can tell how
    Felix wrote them, which their own id proves. ``own``: entries without id to how Felix writes them.
    """
    digest = rule.first_digest(name)
    stamped = []
    for text in rules:
        bare, old_id = rule.split_id(text)
        following = rule.next_digest(digest, name, own.get(bare) or rule.felix_text(bare))
        # An entry with a line break in its comment stays as it is: no input can say it.
        if rank_of(name, text) is not None and "\n" not in text:
            digest = following
            text = rule.join_id(bare, rule.id_of(digest)) if with_ids else bare
        elif old_id == rule.id_of(following):
            digest = following
        stamped.append(text)
    return stamped
