# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Service addresses as they are given: CIDRs, or the BGPConfiguration object that advertises them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ansible_collections.metal.nodenet.plugins.module_utils.calico.pools import check_api
from ansible_collections.metal.nodenet.plugins.module_utils.calico.reading import has_host_bits, read_network
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Network
from ansible_collections.metal.nodenet.plugins.module_utils.objects import Fields, Item, flatten

_LISTS = ("serviceClusterIPs", "serviceExternalIPs", "serviceLoadBalancerIPs")
#: The only BGPConfiguration that says anything about service addresses.
_DEFAULT = "default"


class ServiceCidr(NamedTuple):
    """One range of service addresses."""

    #: As Felix has it: the text of its rules, and what they are sorted by.
    text: str
    network: Network


def read_cidrs(texts: Iterable[object]) -> tuple[list[ServiceCidr], list[str]]:
    """The ranges of a list of CIDRs or addresses, and warnings. Empty texts are none. Raises :class:`ObjectError`."""
    warnings: list[str] = []
    item = Fields("", {}, warnings)
    found = [_read(item, f"cidrs[{index}]", text) for index, text in enumerate(texts) if text != ""]
    return found, warnings


def read_bgp_configuration(raws: Iterable[object]) -> tuple[list[ServiceCidr], list[str]]:
    """The ranges of the BGPConfiguration ``default`` in a list of objects (or Lists of them), and warnings.

    Other objects are not looked at; without it there are no ranges. Raises :class:`ObjectError`.
    """
    warnings: list[str] = []
    chosen: Item | None = None
    for place, raw in flatten("bgp_configuration", raws):
        if not isinstance(raw.get("kind"), str):
            raise Fields(place, raw, warnings).error("kind", raw.get("kind"), "is not the kind of an object")
        if raw["kind"] != "BGPConfiguration":
            continue
        item = Item("BGPConfiguration", raw, warnings, namespaced=False)
        check_api(item)
        if item.name != _DEFAULT:
            item.warn("metadata.name", item.name, f"is left out: only {_DEFAULT} says anything about service addresses")
        elif chosen is not None and chosen.raw.get("spec") != raw.get("spec"):
            raise item.error("metadata.name", item.name, "is there twice, with different content")
        else:
            chosen = item
    if chosen is None:
        warnings.append(f"bgp_configuration: there is no BGPConfiguration {_DEFAULT}, so no address is blocked")
        return [], warnings
    return _of_object(chosen), list(dict.fromkeys(warnings))


def _of_object(item: Item) -> list[ServiceCidr]:
    spec = item.mapping(item.raw, "spec", "spec")
    found = []
    for key in _LISTS:
        for index, entry in enumerate(item.mappings(spec, key, f"spec.{key}")):
            field = f"spec.{key}[{index}].cidr"
            text = item.text(entry, "cidr", field)
            if text:
                found.append(_read(item, field, text))
    return found


def _read(item: Fields, field: str, value: object) -> ServiceCidr:
    network = read_network(item, field, value, bare=True)
    if network.length == 0:
        raise item.error(field, value, "holds every address: nothing would be forwarded any more")
    text = str(value)
    verbatim = text == text.strip() and not network.zeros and not has_host_bits(text, network)
    return ServiceCidr(text if verbatim else network.text, network)
