"""By which of its network interfaces a node reaches another."""

from __future__ import annotations

import ipaddress
import socket

import psutil

from gpubench.basics.errors import UnusableError


def resolve_address(name: str) -> str:
    """The IP address of a host, as this node knows it. Raises UnusableError."""
    try:
        addresses = socket.getaddrinfo(name, None, type=socket.SOCK_DGRAM)
    except OSError as error:
        raise UnusableError(
            f"the first node, {name}, is not known here ({error.strerror or error}); give its IP address (--network)"
        ) from None
    return str(addresses[0][4][0])


def find_interface_towards(address: str) -> str:
    """The interface of this node by which `address` (an IP address) is reached. Raises UnusableError."""
    family = socket.AF_INET6 if ipaddress.ip_address(address).version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:  # nothing is sent: the kernel looks its routes up
        try:
            probe.connect((address, 9))
        except OSError as error:
            raise UnusableError(f"there is no way to {address} from here ({error.strerror})") from None
        source_address = str(probe.getsockname()[0])
    return find_interface_by_address(source_address)


def find_interface_by_address(address: str) -> str:
    """The interface of this node that has `address`. Raises UnusableError where none has it."""
    wanted = ipaddress.ip_address(address.partition("%")[0])
    for name, addresses in psutil.net_if_addrs().items():
        for entry in addresses:
            if entry.family in (socket.AF_INET, socket.AF_INET6):
                candidate = ipaddress.ip_address(entry.address.partition("%")[0])
                if candidate == wanted or (candidate.is_loopback and wanted.is_loopback):
                    return name
    raise UnusableError(f"no network interface of this node has the address {address}")
