"""Models that arrive at the compile server: uploaded, or fetched from allowed origins, up to a size limit."""

from __future__ import annotations

import asyncio
import hashlib
import ipaddress
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from pathlib import Path

import aiohttp
from aiohttp import web
from aiohttp.abc import ResolveResult
from yarl import URL

_MOST_REDIRECTS = 5
_CHUNK = 1 << 18
#: An upload has these seconds, and one more for each of so many bytes: slow clients keep no place from others.
_PATIENCE, _SLOWEST = 10.0, 1 << 14
#: Number of URLs whose contents are remembered.
_MOST_KNOWN = 10_000


class Refused(Exception):
    """A refused model.

    Attributes:
        status: HTTP status of the answer.
    """

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


@dataclass(frozen=True)
class Received:
    """A model.

    Attributes:
        sha256: Hash of its contents.
        file: Its file; None if it has not changed and was not fetched.
    """

    sha256: str
    file: Path | None


class _PublicAddresses(aiohttp.ThreadedResolver):
    """Looks up names; a public name that leads to this machine or its network is refused."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await super().resolve(host, port, family)
        private = [each["host"] for each in found if not ipaddress.ip_address(each["host"]).is_global]
        if private and host != "localhost":
            why = f"{host} has the private address {private[0]}"
            raise Refused(403, f"{why}: py-ort compile-server --private-sources allows such addresses")
        return found


class Sources:
    """Receives models; used in the server's loop.

    Args:
        origins: Origins that models may be fetched from, redirects too.
        largest: Bytes that a model may have.
        seconds: Seconds that one may take to arrive.
        private: True if names other than localhost may lead to private addresses.
    """

    def __init__(self, origins: Sequence[str], largest: int, seconds: float, private: bool = False) -> None:
        self._origins = frozenset(map(str, (URL(each).origin() for each in origins)))
        self._largest, self._seconds = largest, seconds
        self._resolver = aiohttp.ThreadedResolver if private else _PublicAddresses
        self._known: dict[str, tuple[dict[str, str], str]] = {}  # headers that ask for changes, and SHA-256, by URL

    async def accept(self, chunks: AsyncIterator[bytes], file: Path, announced: int | None) -> Received:
        """Write a model that a client sends.

        Raises:
            Refused: It is too large, takes too long, or is empty.
        """
        return await self._write(chunks, file, announced, _SLOWEST)

    async def _write(self, chunks: AsyncIterator[bytes], file: Path, announced: int | None, slowest: float) -> Received:
        """Write a model that arrives with so many bytes in a second at least; 0: any number."""
        self._check_size(announced or 0)
        digest, size = hashlib.sha256(), 0
        now = asyncio.get_running_loop().time()
        until, patience = now + self._seconds, now + _PATIENCE
        try:
            async with asyncio.timeout_at(min(until, patience) if slowest else until) as limit:
                with file.open("wb") as out:
                    async for chunk in chunks:
                        size += len(chunk)
                        self._check_size(size)
                        digest.update(chunk)
                        await asyncio.to_thread(out.write, chunk)
                        if slowest:
                            limit.reschedule(min(until, patience + size / slowest))
        except TimeoutError:
            if limit.when() == until:
                raise Refused(408, f"the model took longer to arrive than {self._seconds:g} s") from None
            least = f"{_SLOWEST >> 10} KiB in each second after the first {_PATIENCE:g}"
            raise Refused(408, f"the model arrived too slowly, with {size} bytes: send at least {least}") from None
        except (aiohttp.ClientError, ConnectionError) as e:
            raise Refused(502, f"the model broke off after {size} bytes: {e}") from None
        except web.RequestPayloadError:
            raise Refused(400, "the request's body cannot be decoded") from None
        except OSError as e:
            raise Refused(503, f"the model could not be kept: {e.strerror}") from None
        if not size:
            raise Refused(400, "there is no model: send its bytes")
        return Received(digest.hexdigest(), file)

    async def fetch(self, url: str, file: Path, settled: Callable[[str], Awaitable[bool]]) -> Received:
        """Fetch a model, unless it is settled and unchanged.

        Args:
            url: Its URL.
            file: The file to write.
            settled: Returns True if a model with this SHA-256 need not be fetched.

        Raises:
            Refused: Its origin is not allowed, it cannot be fetched, is too large, or takes too long.
        """
        headers, known = self._known.get(url, ({}, ""))
        if not (known and await settled(known)):
            headers = {}
        # Without this user's proxies and passwords.
        timeout = aiohttp.ClientTimeout(total=self._seconds)
        async with aiohttp.ClientSession(
            headers=headers,
            connector=aiohttp.TCPConnector(resolver=self._resolver()),
            trust_env=False,
            timeout=timeout,
            cookie_jar=aiohttp.DummyCookieJar(),
        ) as client:
            try:
                response = await self._final(client, url)
                async with response:
                    if response.status == 304 and headers:
                        return Received(known, None)
                    if response.status != 200:
                        raise Refused(502, f"{url} answered {response.status} {response.reason}")
                    length = response.content_length
                    found = await self._write(response.content.iter_chunked(_CHUNK), file, length, 0)
            except (aiohttp.ClientError, TimeoutError, OSError) as e:
                raise Refused(502, f"{url} could not be fetched: {e or type(e).__name__}") from None
        self._known.pop(url, None)
        if asking := _asking(response.headers):
            self._known[url] = asking, found.sha256
            while len(self._known) > _MOST_KNOWN:
                del self._known[next(iter(self._known))]
        return found

    async def _final(self, client: aiohttp.ClientSession, asked: str) -> aiohttp.ClientResponse:
        url = self._allowed(URL(), asked)
        for _ in range(_MOST_REDIRECTS + 1):
            response = await client.get(url, allow_redirects=False)
            location = response.headers.get("Location")
            if response.status not in (301, 302, 303, 307, 308) or location is None:
                return response
            response.release()
            url = self._allowed(url, location)
        raise Refused(502, f"{asked}: more than {_MOST_REDIRECTS} redirects")

    def _allowed(self, base: URL, location: str) -> URL:
        """Return the URL of a location, parsed as it is fetched: one reading decides, and no other."""
        try:
            url = base.join(URL(location))
            origin = str(url.origin())
        except ValueError:
            raise Refused(403, f"{location} is no URL that models are fetched from: see --source") from None
        if origin not in self._origins or url.user is not None:
            raise Refused(403, f"models of {origin} are not fetched: py-ort compile-server --source {origin}")
        return url

    def _check_size(self, size: int) -> None:
        if size > self._largest:
            raise Refused(413, f"a model may have {self._largest >> 20} MiB at most: --max-size")


def _asking(answer: Mapping[str, str]) -> dict[str, str]:
    """Return the headers that ask whether an answer has changed; none if its server does not say."""
    if tag := answer.get("ETag"):
        return {"If-None-Match": tag}
    try:
        changed, now = (parsedate_to_datetime(answer[name]) for name in ("Last-Modified", "Date"))
        age = (now - changed).total_seconds()
    except (KeyError, ValueError, TypeError):
        return {}
    # Dates have seconds: a file that is as new as its answer may change without another date.
    return {"If-Modified-Since": answer["Last-Modified"]} if age > 1 else {}
