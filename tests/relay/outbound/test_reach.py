"""Where requests of the relay may go: what is public, and what is not, in every spelling."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from relay.outbound.reach import Reach, parse_address, public

INSIDE = """
0.0.0.0 0.1.2.3 10.0.0.1 10.255.255.255 100.64.0.1 100.127.255.255 127.0.0.1 127.255.0.1 169.254.169.254
172.16.0.1 172.31.255.255 192.0.0.8 192.0.0.192 192.0.2.1 192.88.99.1 192.168.1.1 198.18.0.1 198.19.255.255
198.51.100.1 203.0.113.1 224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255
:: ::1 ::127.0.0.1 ::ffff:127.0.0.1 ::ffff:10.0.0.1 ::ffff:8.8.8.8 64:ff9b::7f00:1 64:ff9b::808:808
64:ff9b:1::a00:1 100::1 2001::1 2001:0:7f00:1:: 2001:db8::1 2001:10::1 2001:20::1 2002:7f00:1:: 2002:a00:1::
3fff::1 5f00::1 fc00::1 fd00:ec2::254 fe80::1 fe80::1%eth0 fec0::1 ff02::1 ff0e::1
"""
OUTSIDE = """
1.1.1.1 8.8.8.8 93.184.216.34 172.15.0.1 172.32.0.1 100.128.0.1 2606:4700:4700::1111 2a00:1450::1
"""


@pytest.mark.parametrize("text", INSIDE.split())
def test_what_leads_inside_is_not_public(text: str) -> None:
    assert not public(ipaddress.ip_address(text))
    assert not Reach().may(ipaddress.ip_address(text))


@pytest.mark.parametrize("text", OUTSIDE.split())
def test_what_is_outside_is_public(text: str) -> None:
    assert Reach().may(ipaddress.ip_address(text))


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("2130706433", "127.0.0.1"),
        ("0x7f.1", "127.0.0.1"),
        ("0177.0.0.1", "127.0.0.1"),
        ("127.1", "127.0.0.1"),
        ("0xa9fea9fe", "169.254.169.254"),
        ("::1", "::1"),
        ("example.com", None),
        ("1.2.3.4.5", None),
        ("", None),
    ],
)
def test_an_address_is_known_in_any_spelling(text: str, address: str | None) -> None:
    assert parse_address(text) == (ipaddress.ip_address(address) if address else None)


@given(st.ip_addresses())
def test_nothing_is_public_that_the_standard_library_calls_private(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    if not address.is_global or address.is_multicast or getattr(address, "ipv4_mapped", None):
        assert not public(address)


def test_the_operator_names_what_else_may_be_reached() -> None:
    nets = [ipaddress.ip_network("10.1.2.0/24"), ipaddress.ip_network("fd00::/8")]
    reach = Reach.of(nets, dev=False)
    assert reach.may(ipaddress.ip_address("10.1.2.3"))
    assert reach.may(ipaddress.ip_address("fd00::7"))
    for text in ("10.1.3.1", "127.0.0.1", "::1", "::ffff:10.1.2.3"):
        assert not reach.may(ipaddress.ip_address(text))
    dev = Reach.of([], dev=True)
    assert dev.may(ipaddress.ip_address("127.0.0.1")) and dev.may(ipaddress.ip_address("::1"))
    assert not dev.may(ipaddress.ip_address("10.0.0.1"))
    assert not dev.may(ipaddress.ip_address("::ffff:127.0.0.1"))
