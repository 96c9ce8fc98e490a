# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pools of addresses: IPPool objects, or their short form, as Felix sees them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.calico.reading import read_member
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Network
from ansible_collections.metal.nodenet.plugins.module_utils.objects import Fields, Item, flatten

API_VERSIONS = ("projectcalico.org/v3", "crd.projectcalico.org/v1")
_USES = ("Workload", "Tunnel", "LoadBalancer")


class Pool(NamedTuple):
    """One pool. There is one per CIDR."""

    #: Of the object; the place in the list for a short form.
    name: str
    network: Network
    #: Traffic from here to outside of all pools is masqueraded.
    masquerade: bool
    #: The addresses are for load balancers alone.
    lb_only: bool = False


def read_pools(raws: Iterable[object]) -> tuple[list[Pool], list[str]]:
    """The pools of a list of IPPool objects (or Lists of them; other kinds are not looked at) and of short forms.

    A short form is ``{cidr: 10.0.0.0/16, masquerade: true}``. Of two pools with one CIDR, the one with the lowest name
    counts, as for Felix. A disabled pool counts like any other. Returns the pools, lowest address first, and warnings.
    Raises :class:`ObjectError`.
    """
    warnings: list[str] = []
    objects: dict[str, tuple[Item, Pool]] = {}
    short: list[tuple[Fields, Pool]] = []
    found = False
    for place, raw in flatten("pools", raws):
        found = True
        if "kind" not in raw and "metadata" not in raw:
            short.append(_read_short(Fields(place, raw, warnings), place))
        elif raw.get("kind") == "IPPool":
            item, pool = _read_object(raw, warnings)
            if objects.setdefault(pool.name, (item, pool))[1] != pool:
                raise item.error("metadata.name", pool.name, "is there twice, with different content")
        elif not isinstance(raw.get("kind"), str):
            raise Fields(place, raw, warnings).error("kind", raw.get("kind"), "is not the kind of an object")
    if found and not objects and not short:
        warnings.append("pools: there is no IPPool among the objects")
    pools = _one_per_cidr([*(objects[name] for name in sorted(objects)), *short])
    return sorted(pools, key=_by_address), list(dict.fromkeys(warnings))


def _by_address(pool: Pool) -> tuple[str, int, int]:
    return pool.network.family, pool.network.first, pool.network.length


def _read_object(raw: Mapping[str, Any], warnings: list[str]) -> tuple[Item, Pool]:
    item = Item("IPPool", raw, warnings, namespaced=False)
    check_api(item)
    spec = item.mapping(raw, "spec", "spec")
    uses = item.texts(spec, "allowedUses", "spec.allowedUses")
    for use in uses:
        if use not in _USES:
            raise item.error("spec.allowedUses", use, f"is not one of {', '.join(_USES)}")
    network = read_member(item, "spec.cidr", spec.get("cidr"))
    masquerade = item.flag(spec, "natOutgoing", "spec.natOutgoing", False)
    return item, Pool(item.name, network, masquerade, uses == ["LoadBalancer"])


def _read_short(item: Fields, place: str) -> tuple[Fields, Pool]:
    item.only(("cidr", "masquerade"))
    network = read_member(item, "cidr", item.raw.get("cidr"))
    return item, Pool(place, network, item.flag(item.raw, "masquerade", "masquerade", False))


def _one_per_cidr(read: list[tuple[Any, Pool]]) -> list[Pool]:
    """The first pool of each CIDR. Short forms have no name to decide by, so they must not contradict another pool."""
    chosen: dict[str, Pool] = {}
    for item, pool in read:
        other = chosen.setdefault(pool.network.text, pool)
        if other is pool:
            continue
        if isinstance(item, Item):
            item.warn("spec.cidr", pool.network.text, f"is that of pool {other.name} too, which counts alone")
        elif other.masquerade != pool.masquerade:
            raise item.error("masquerade", pool.masquerade, f"contradicts {other.name}, which has the same CIDR")
    return list(chosen.values())


def check_api(item: Item) -> None:
    """Refuse an object of another API that happens to have a kind of this name."""
    version = item.raw.get("apiVersion")
    if version not in API_VERSIONS:
        raise item.error("apiVersion", version, f"is not one of {', '.join(API_VERSIONS)}")
