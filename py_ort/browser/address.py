"""This machine's addresses, as other machines name them."""

from __future__ import annotations

import socket

#: Names for all addresses.
ANY = ("0.0.0.0", "::")


def in_url(host: str) -> str:
    """Return the host part of a URL for an address that a server listens at."""
    address = own_address() if host in ANY else host
    return f"[{address}]" if ":" in address else address


def own_address() -> str:
    """Return the address that this machine would send from; nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
            return str(probe.getsockname()[0])
        except OSError:
            return socket.gethostname()
