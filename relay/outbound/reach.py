"""Decides which addresses requests of the relay may reach: public internet addresses, and those that the
operator allows.

Internal servers can be reached by some addresses for which the standard library's `is_global` is true. These
contain an IPv4 address (`::127.0.0.1`, NAT64, 6to4), or are `192.0.0.8`, multicast or `fec0::`. So among IPv6
addresses only global unicast counts as public here, without its ranges for translation to IPv4.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable
from dataclasses import dataclass

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_PRIVATE_4 = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",  # carriers' NAT
            "127.0.0.0/8",
            "169.254.0.0/16",  # link-local, and the metadata of clouds
            "172.16.0.0/12",
            "192.0.0.0/24",
            "192.0.2.0/24",
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/3",  # multicast, reserved, broadcast
        ),
    )
)
_GLOBAL_6 = ipaddress.IPv6Network("2000::/3")
_INSIDE_6 = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # Teredo and other protocols
            "2001:db8::/32",
            "2002::/16",  # 6to4
            "3fff::/20",
        ),
    )
)
_LOOPBACK: tuple[Network, ...] = (ipaddress.IPv4Network("127.0.0.0/8"), ipaddress.IPv6Network("::1/128"))


@dataclass(frozen=True, slots=True)
class Reach:
    """The addresses that the relay's own requests may reach. `allowed`: networks (address ranges) that may be
    reached besides the public internet."""

    allowed: tuple[Network, ...] = ()

    @classmethod
    def of(cls, allowed: Iterable[Network], *, dev: bool) -> Reach:
        """Make a Reach that allows these networks. `dev`: this machine may be reached too."""
        return cls((*allowed, *(_LOOPBACK if dev else ())))

    def may(self, address: Address) -> bool:
        return public(address) or any(
            address in network for network in self.allowed if network.version == address.version
        )


def public(address: Address) -> bool:
    if isinstance(address, ipaddress.IPv4Address):
        return not any(address in network for network in _PRIVATE_4)
    if address.scope_id is not None or address not in _GLOBAL_6:
        return False
    return not any(address in network for network in _INSIDE_6)


def parse_address(host: str) -> Address | None:
    """The address if the host is an address, in any spelling that resolvers accept (`127.1`, `0x7f000001`);
    None for a name."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        pass
    try:
        return ipaddress.IPv4Address(socket.inet_aton(host))
    except (OSError, ValueError):
        return None
