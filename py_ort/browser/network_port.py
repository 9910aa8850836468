"""The port of a gateway, with limits for connections that have not shown the gateway's secret.

The limits are those of `Strangers`. They apply from the accepted socket on, before TLS: a connection that never
completes its handshake costs a file descriptor, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable, Coroutine, Hashable
from functools import partial
from typing import Any

from py_ort.browser.connection_limits import MOST, Strangers

_log = logging.getLogger("py_ort.browser")
#: Seconds between two checks for overdue connections, and after a connection that could not be accepted.
_INTERVAL = 0.5


class NetworkPort:
    """A port that other machines can reach; all methods run in the loop's thread.

    Args:
        protocol: Returns the protocol of a new connection.
        tls: Encryption of the connections, if any.

    Attributes:
        number: The port's number.
        strangers: Connections that have not shown the secret, by their addresses.
    """

    def __init__(self, protocol: Callable[[], asyncio.BaseProtocol], tls: ssl.SSLContext | None) -> None:
        self._protocol, self._tls = protocol, tls
        self._listening: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._told = False
        self.strangers = Strangers()
        self.number = 0

    async def listen(self, host: str, port: int) -> None:
        """Accept connections at all addresses of a host name.

        Raises:
            OSError: An address is taken, or none of this machine's.
        """
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, *_, address in dict.fromkeys(found):
            listening = socket.create_server(address, family=family, backlog=MOST)
            listening.setblocking(False)
            self._listening.append(listening)
            self._begin(self._accept(listening))
        self.number = self._listening[0].getsockname()[1]
        self._begin(self._close_overdue())

    def shown(self, peer: Hashable) -> None:
        """Note that the connection from this address has shown the secret."""
        self.strangers.leave(peer)

    async def close(self) -> None:
        """Stop listening. The protocols close their own connections."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for listening in self._listening:
            listening.close()

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _accept(self, listening: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                accepted, peer = await loop.sock_accept(listening)
            except OSError:  # the other end is gone already, or this process has no file descriptor left
                await asyncio.sleep(_INTERVAL)
                continue
            self.strangers.enter(peer, partial(self._hang_up, accepted))
            self._begin(self._connect(accepted))

    async def _connect(self, accepted: socket.socket) -> None:
        patience = self.strangers.patience if self._tls else None
        with contextlib.suppress(OSError):  # TLS failed
            await asyncio.get_running_loop().connect_accepted_socket(
                self._protocol, accepted, ssl=self._tls, ssl_handshake_timeout=patience
            )

    async def _close_overdue(self) -> None:
        while True:
            await asyncio.sleep(_INTERVAL)
            self.strangers.close_overdue()

    def _hang_up(self, accepted: socket.socket) -> None:
        if accepted.fileno() < 0:
            return  # the other end did
        if not self._told:
            _log.warning(
                "connections to port %d that do not show the secret of its URLs are closed: after %g s, or when there "
                "are more than %d; said once",
                self.number,
                self.strangers.patience,
                MOST,
            )
            self._told = True
        with contextlib.suppress(OSError):
            accepted.shutdown(socket.SHUT_RDWR)
