"""The compile server: GET /export?url=…, POST /export, GET /models/KEY.pyort, and its health and metrics."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from weakref import WeakValueDictionary

from aiohttp import web

from py_ort import __version__
from py_ort.exceptions import PyOrtError
from py_ort.schema.gen.PlanVersion import PlanVersion
from py_ort.serving.access import LOOPBACK, Access
from py_ort.serving.compiling.metrics import Metrics
from py_ort.serving.compiling.server_options import CompileServerOptions
from py_ort.serving.compiling.sources import Received, Refused, Sources
from py_ort.serving.compiling.store import Busy, Job, Store
from py_ort.serving.served_files import send

_SHA256 = re.compile("[0-9a-f]{64}")
_EVENTS = "text/event-stream"
#: Seconds between checks of a job's progress, and the longest time without an event to a client.
_INTERVAL, _QUIET = 0.25, 15.0
#: Models that are fetched at the same time, and models that one client sends: of a proxy's, all of its clients.
_MOST_FETCHED, _MOST_SENT = 8, 32
#: Contents never change under a key.
_FOREVER = "public, max-age=31536000, immutable"


class CompileServer:
    """The server; used in one loop. See `serving.compiling`."""

    def __init__(self, options: CompileServerOptions, say: Callable[[str], None]) -> None:
        self._options, self._say = options, say
        self._metrics = Metrics()
        o = options
        self._sources = Sources(o.sources, o.largest, o.limits.seconds or 600, o.private_sources)
        self._fetches = asyncio.Semaphore(_MOST_FETCHED)
        #: Places for uploads, by the client's address; each while it is in use.
        self._uploads: WeakValueDictionary[str, asyncio.Semaphore] = WeakValueDictionary()
        #: Current downloads, by URL and expected hash.
        self._fetching: dict[tuple[str, str], Job] = {}
        self._asked: set[asyncio.Task[str]] = set()

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Serve; the context's value is the port.

        Raises:
            EngineError: The object store cannot be used.
            OSError: The address is taken, or the folder cannot be written.
        """
        o = self._options
        self._store = Store(o, self._metrics, self._say)
        access = Access("", o.origins, names=(*LOOPBACK, *o.names), command="compile-server", methods="GET, HEAD, POST")
        app = web.Application(middlewares=[access.middleware()])
        app.on_response_prepare.append(access.with_headers)
        app.router.add_get("/export", self._export)
        app.router.add_post("/export", self._export)
        app.router.add_get("/models/{name}", self._model)
        app.router.add_get("/health", self._health)
        app.router.add_get("/metrics", self._show_metrics)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        try:
            await web.TCPSite(runner, o.host, o.port).start()
            yield runner.addresses[0][1]
        finally:
            for task in [*self._asked, *(job.task for job in self._fetching.values())]:
                task.cancel()
            await self._store.close()
            await runner.cleanup()

    async def _health(self, request: web.Request) -> web.StreamResponse:
        return web.json_response({"status": "ok", "py_ort": __version__, "plans": PlanVersion.current})

    async def _show_metrics(self, request: web.Request) -> web.StreamResponse:
        return web.Response(text=self._metrics.text())

    async def _model(self, request: web.Request) -> web.StreamResponse:
        file = await self._store.file(request.match_info["name"])
        if file is None:
            raise web.HTTPNotFound(text="no such model: it may have made room for others; ask for it by /export")
        return await send(request, file, keep=_FOREVER)

    async def _export(self, request: web.Request) -> web.StreamResponse:
        self._metrics.add("requests_total")
        job = Job()
        job.task = asyncio.create_task(self._key(request, job))
        self._asked.add(job.task)  # a client that leaves does not end the work: others may have requested the model
        job.task.add_done_callback(self._asked.discard)
        if _EVENTS in request.headers.get("Accept", ""):
            return await self._tell(request, job)
        await asyncio.wait({job.task})
        status, text = self._outcome(job)
        if status != 303:
            headers = {"Retry-After": "10"} if status == 503 else {}
            return web.Response(status=status, text=text, headers=headers)
        return web.Response(status=303, headers={"Location": text})

    async def _tell(self, request: web.Request, job: Job) -> web.StreamResponse:
        """Answer with events: progress, and finally done or failed."""
        response = web.StreamResponse(headers={"Content-Type": _EVENTS, "Cache-Control": "no-store"})
        told, said = None, time.monotonic()
        with contextlib.suppress(ConnectionError):
            await response.prepare(request)
            while not job.task.done():
                await asyncio.wait({job.task}, timeout=_INTERVAL)
                if job.progress != told:
                    told, said = job.progress, time.monotonic()
                    await response.write(_event("progress", **dict(zip(("stage", "done", "total"), told, strict=True))))
                elif time.monotonic() - said > _QUIET:
                    said = time.monotonic()
                    await response.write(b":\n\n")
            status, text = self._outcome(job)
            last = _event("done", url=text) if status == 303 else _event("failed", status=status, text=text)
            await response.write(last)
        return response

    def _outcome(self, job: Job) -> tuple[int, str]:
        """Return the status and text of an answer: for 303, the URL of the model."""
        try:
            return 303, f"/models/{job.task.result()}.pyort"
        except Refused as e:
            status, text = e.status, str(e)
        except Busy:
            status, text = 503, "too many models wait to be compiled, or the disk is full: try again in a while"
        except PyOrtError as e:
            return 422, f"{type(e).__name__}: {e}"
        self._metrics.add("refused_total")
        return status, text

    async def _key(self, request: web.Request, shown: Job) -> str:
        """Return the key of the model that is asked for, compiled by then."""
        query, sha256 = request.query, _wanted(request.query)
        if sha256 and (key := await self._known(self._store.key(sha256), shown)):
            return key
        if request.method == "POST":
            self._metrics.add("uploads_total")
            chunks = request.content.iter_chunked(1 << 18)
            size = request.content_length
            if not self._store.has_room(size or 0):
                raise Busy
            places = self._uploads.setdefault(request.remote or "", asyncio.Semaphore(_MOST_SENT))
            return await self._arrive(lambda file: self._sources.accept(chunks, file, size), places, sha256, shown)
        if url := query.get("url", ""):
            return await self._fetched(url, sha256, shown)
        if sha256:
            raise Refused(404, "this model is not known: send its bytes by POST")
        raise Refused(400, "GET /export?url=URL, or POST the bytes of a model to /export")

    async def _known(self, key: str, shown: Job) -> str | None:
        if await self._store.has(key):
            self._metrics.add("found_total")
            return key
        job = self._store.job(key)
        if job is None:
            return None
        return await _follow(job, shown)

    async def _settled(self, sha256: str) -> bool:
        """Return True if a model is in the store, is being compiled, or cannot be compiled."""
        key = self._store.key(sha256)
        try:
            return await self._store.has(key) or self._store.job(key) is not None
        except PyOrtError:
            return True

    async def _fetched(self, url: str, sha256: str, shown: Job) -> str:
        """Download once for all current requests of a URL."""
        asked = url, sha256
        job = self._fetching.get(asked)
        if job is None:
            self._metrics.add("downloads_total")
            job = self._fetching[asked] = Job()
            fetch = functools.partial(self._sources.fetch, url, settled=self._settled)
            job.task = asyncio.create_task(self._arrive(fetch, self._fetches, sha256, job))
            job.task.add_done_callback(lambda task: (self._fetching.pop(asked), task.cancelled() or task.exception()))
        return await _follow(job, shown)

    async def _arrive(
        self, take: Callable[[Path], Awaitable[Received]], places: asyncio.Semaphore, sha256: str, shown: Job
    ) -> str:
        with self._store.workspace() as folder:
            async with places:
                shown.progress = "receiving the model", 0, 0
                found = await take(folder / "model.onnx")
            if sha256 and found.sha256 != sha256:
                raise Refused(409, f"the model has the SHA-256 {found.sha256}, not {sha256}")
            key = self._store.key(found.sha256)
            if await self._known(key, shown):
                return key
            if found.file is None:  # it has just been deleted to make room
                raise Refused(503, "the model must be fetched again: try again")
            return await _follow(self._store.compile(key, found.file), shown)


def _wanted(query: Mapping[str, str]) -> str:
    """Return the hash of the model that is asked for, "" if the request names none."""
    sha256 = query.get("sha256", "").lower()
    if sha256 and not _SHA256.fullmatch(sha256):
        raise Refused(400, "sha256 is that of the model, 64 hexadecimal digits")
    if query.get("plan", str(PlanVersion.current)) != str(PlanVersion.current):
        raise Refused(
            409,
            f"this server compiles plans of version {PlanVersion.current} (py_ort {__version__}), and the page "
            f"reads version {query['plan']}: use a runtime and a server of one version",
        )
    return sha256


async def _follow(job: Job, shown: Job) -> str:
    """Wait for a job, copying its progress to `shown`; return the key of its model."""
    while not job.task.done():
        shown.progress = job.progress
        await asyncio.wait({job.task}, timeout=_INTERVAL)
    try:
        return job.task.result()
    except PyOrtError as e:
        raise e.again() from None


def _event(kind: str, **about: object) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(about)}\n\n".encode()
