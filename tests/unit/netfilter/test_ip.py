# Copyright (c) 2026 the metal.nodenet authors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
# SPDX-License-Identifier: GPL-3.0-or-later
"""Addresses and networks: lenient in, canonical out."""

from __future__ import annotations

import ipaddress
import time

import pytest
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.ip import (
    Address,
    family_of,
    is_loopback,
    number,
    parse_address,
    parse_network,
    single,
)
from ansible_collections.metal.nodenet.plugins.module_utils.netfilter.model import IPV4, IPV6
from hypothesis import assume, given
from hypothesis import strategies as st


@pytest.mark.parametrize(
    ("text", "family", "canonical", "zeros"),
    [
        ("10.0.0.1", IPV4, "10.0.0.1", False),
        (" 10.0.0.1\t", IPV4, "10.0.0.1", False),
        ("010.0.0.001", IPV4, "10.0.0.1", True),
        ("0.0.0.0", IPV4, "0.0.0.0", False),
        ("fd00::10.0.0.34", IPV6, "fd00::a00:22", False),
        ("fd00::10.0.0.034", IPV6, "fd00::a00:22", True),
        ("2001:DB8:0:0::1", IPV6, "2001:db8::1", False),
        ("2001:00db8::00001", IPV6, "2001:db8::1", False),
        ("1:0:0:2:0:0:0:3", IPV6, "1:0:0:2::3", False),
        ("1:0:2:3:4:5:6:7", IPV6, "1:0:2:3:4:5:6:7", False),
        ("::ffff:192.0.2.1", IPV4, "192.0.2.1", False),
        ("::ffff:c000:201", IPV4, "192.0.2.1", False),
        ("::192.0.2.1", IPV6, "::c000:201", False),
        ("::1", IPV6, "::1", False),
        ("::", IPV6, "::", False),
    ],
)
def test_f047_f048_addresses(text: str, family: str, canonical: str, zeros: bool) -> None:
    assert parse_address(text) == Address(family, canonical, zeros)
    assert family_of(text) == family


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.256",
        "1.2.3.-4",
        "1.2.3.4/32",
        "1.2.3.4:80",
        "1.2.3.4\n",
        "1.2.3.4\0",
        "0x1.2.3.4",
        "1 .2.3.4",
        "\u0661.2.3.4",
        "1.2.3.4%eth0",
        "fe80::1%eth0",
        "::1\n",
        "[::1]",
        "1::2::3",
        ":::",
        "12345::",
        "::1.2.3",
        "host",
        "1.2.3." + "9" * 10000,
    ],
)
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="not an IP address"):
        parse_address(text)
    assert family_of(text) is None


@pytest.mark.parametrize(
    ("text", "canonical", "zeros"),
    [
        ("10.1.2.3/8", "10.0.0.0/8", False),
        (" 192.0.2.0/24 ", "192.0.2.0/24", False),
        ("010.0.0.0/08", "10.0.0.0/8", True),
        ("2001:DB8:0:0::/64", "2001:db8::/64", False),
        ("2001:db8::1/128", "2001:db8::1/128", False),
        ("::ffff:10.1.2.3/112", "10.1.0.0/16", False),
        ("0.0.0.0/0", "0.0.0.0/0", False),
        ("::/0", "::/0", False),
    ],
)
def test_f045_f048_networks(text: str, canonical: str, zeros: bool) -> None:
    network = parse_network(text)
    assert (network.text, network.zeros) == (canonical, zeros)
    assert network.length == int(canonical.split("/")[1])


@pytest.mark.parametrize(
    "text",
    [
        "",
        "/",
        "10.0.0.0",
        "10.0.0.0/",
        "10.0.0.0/33",
        "10.0.0.0/-1",
        "10.0.0.0/8/8",
        "::/129",
        "10.0.0.0/ 8",
        "10.0.0.0 /8",
        "10.0.0.0/8\n",
        "10.0.0.0/\u0661",
        "/8",
        "fe80::1%eth0/64",
    ],
)
def test_what_is_no_network(text: str) -> None:
    with pytest.raises(ValueError, match="not a CIDR"):
        parse_network(text)


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6)))
def test_canonical_is_what_python_says(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    assert parse_address(str(address)).text == str(mapped or address)
    assert parse_address(address.exploded).text == str(mapped or address)


@given(st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6, network="2000::/3")), st.integers(0, 32), st.data())
def test_networks_hold_what_they_should(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, length: int, data: st.DataObject
) -> None:
    network = parse_network(f"{address}/{length}")
    expected = ipaddress.ip_network(f"{address}/{length}", strict=False)
    assert network.text == str(expected)
    other = data.draw(st.ip_addresses(v=address.version))
    assume(getattr(other, "ipv4_mapped", None) is None)  # is read as IPv4
    assert network.has(parse_address(str(other))) == (other in expected)
    assert network.has(parse_address(str(address)))


def test_families_do_not_mix() -> None:
    assert not parse_network("::/0").has(parse_address("10.0.0.1"))
    assert number(Address(IPV4, "0.0.1.0")) == 256


def test_small_helpers() -> None:
    assert [is_loopback(parse_address(text)) for text in ("127.8.0.1", "::1", "128.0.0.1", "::2")] == [
        True,
        True,
        False,
        False,
    ]
    assert [single(parse_address(text)) for text in ("10.0.0.1", "fd00::1")] == ["10.0.0.1/32", "fd00::1/128"]


def test_many_addresses_cost_little() -> None:
    texts = [f"10.{index >> 16}.{index >> 8 & 255}.{index & 255}" for index in range(50000)]
    start = time.process_time()
    for text in texts:
        parse_address(text)
    # measured 0.06 s; the limit leaves room for a busy machine and still catches a slow path
    assert time.process_time() - start < 0.5
