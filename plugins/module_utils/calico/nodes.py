# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""The addresses of the cluster's hosts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ansible_collections.metal.nodenet.plugins.module_utils.calico.reading import network_of, read_address, read_member
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import Network
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import FAMILIES, IPV4
from ansible_collections.metal.nodenet.plugins.module_utils.objects import Fields, Item, flatten

_ANNOTATIONS = {family: f"projectcalico.org/{'IPv4' if family == IPV4 else 'IPv6'}Address" for family in FAMILIES}


def read_nodes(raws: Iterable[object]) -> tuple[list[Network], list[str]]:
    """The networks of a list of addresses, CIDRs and Node objects (or Lists of them; other kinds are not looked at).

    A Node counts with one address per family. Returns the networks, each once, and warnings.
    Raises :class:`ObjectError`.
    """
    warnings: list[str] = []
    networks: list[Network] = []
    option = Fields("", {}, warnings)
    for index, raw in enumerate(raws):
        if isinstance(raw, str):
            networks.append(read_member(option, f"hosts[{index}]", raw, bare=True))
        elif not isinstance(raw, dict):
            raise option.error(f"hosts[{index}]", raw, "is not an address, a CIDR or a Node object")
        else:
            networks += _of_objects(f"hosts[{index}]", raw, warnings)
    by_text = {network.text: network for network in networks}
    return [by_text[text] for text in sorted(by_text)], list(dict.fromkeys(warnings))


def _of_objects(place: str, raw: Mapping[str, Any], warnings: list[str]) -> list[Network]:
    networks: list[Network] = []
    for _place, each in flatten(place, [raw]):
        kind = each.get("kind")
        if not isinstance(kind, str):
            raise Fields(place, each, warnings).error("kind", kind, "is not the kind of an object")
        if kind == "Node":
            networks += _of_node(Item(kind, each, warnings, namespaced=False))
    return networks


def _of_node(item: Item) -> list[Network]:
    networks = []
    for family in FAMILIES:
        network = _annotated(item, family) or _from_status(item, family)
        if network is None:
            continue
        networks.append(network)
    if not networks:
        item.warn("status.addresses", item.mapping(item.raw, "status", "status").get("addresses"),
                  "has no address of the host: it is not excluded from masquerading")
    return networks


def _annotated(item: Item, family: str) -> Network | None:
    """The address that Calico itself has written down. It is a CIDR; Calico does not look at anything else."""
    key = _ANNOTATIONS[family]
    text = item.text(item.annotations, key, f"metadata.annotations[{key}]")
    address, slash, _length = text.partition("/")
    if not slash:
        return None
    network = network_of(read_address(item, f"metadata.annotations[{key}]", address))
    return network if network.family == family else None


def _from_status(item: Item, family: str) -> Network | None:
    status = item.mapping(item.raw, "status", "status")
    entries = item.mappings(status, "addresses", "status.addresses")
    for wanted in ("InternalIP", "ExternalIP"):
        for index, entry in enumerate(entries):
            if entry.get("type") == wanted:
                address = read_address(item, f"status.addresses[{index}].address", entry.get("address"))
                if address.family == family:
                    return network_of(address)
    return None
