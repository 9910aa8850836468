"""Captured browsers that another process of py_ort lends, as pytest-xdist's controller does to its workers."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

from py_ort.browser.captured import none_came
from py_ort.exceptions import ConnectionLost

#: A variable with the lender's address: see `Bridge.lend`.
LENDER = "PY_ORT_CAPTURED"


class Borrowed:
    """One browser, as long as the connection to its lender is open.

    Args:
        lender: The lender's address.
    """

    def __init__(self, lender: str) -> None:
        self._origin, self._address = lender.split()
        self._connection: Any = None

    async def open(self, url: str, patience: float) -> None:
        """Open a session's page in the next browser; `patience` as for `Captured.take`.

        Raises:
            Timeout: No browser was captured.
            ConnectionLost: The lender has ended.
        """
        from websockets.asyncio.client import connect
        from websockets.exceptions import ConnectionClosed
        from websockets.typing import Origin

        query = urlencode({"open": url, "patience": patience})
        try:
            self._connection = await connect(f"{self._address}&{query}", origin=Origin(self._origin), proxy=None)
            await self._connection.recv()
        except ConnectionClosed:
            raise none_came(patience) from None
        except OSError as e:
            raise ConnectionLost(f"the process that captures browsers has ended: {e}") from e

    async def close(self) -> None:
        """Return the browser."""
        if self._connection:
            await self._connection.close()
