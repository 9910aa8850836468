"""The server: the user's folder, models compiled on request, the package's files under /py_ort/."""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import re
import secrets
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote, unquote

from aiohttp import web

from py_ort.content_types import content_type
from py_ort.exceptions import InvalidArgument, PyOrtError
from py_ort.exporting.page import RUNTIME
from py_ort.exporting.runtime_files import runtime_files
from py_ort.folders import ASSETS
from py_ort.providers import DEFAULT
from py_ort.serving.access import LOOPBACK, Access
from py_ort.serving.changes import Changes
from py_ort.serving.events import Events
from py_ort.serving.models import Models
from py_ort.serving.pages import PREFIX, SCRIPT, list_of_models, page_of, with_overlay
from py_ort.serving.served_files import place, send, send_bytes

#: The Accept header of a runtime that reads a `.pyort` file in place of the requested ONNX file.
_TAKES = content_type("model.pyort")
#: A model's file, or a further part of it.
_EXPORTED = re.compile(r"(.+)\.pyort((?:\.\d+)?)", re.DOTALL)
#: Seconds between checks of the folder; longer if a check takes more than a tenth of that.
_INTERVAL, _PART = 0.4, 10


@dataclass(frozen=True)
class ServeOptions:
    """The folder to serve, and its access.

    Attributes:
        folder: The user's folder.
        host: The address to listen on. Other addresses than loopback need a token.
        port: 0: a free one.
        origins: Other origins whose pages may fetch.
        providers: Providers to compile for.
        dims: Sizes of dimensions by name.
        kernels: Files of user kernels, loaded already.
        reload: True to reload pages when a file changes.
    """

    folder: Path
    host: str = "127.0.0.1"
    port: int = 8000
    origins: Sequence[str] = ()
    providers: Sequence[str] = DEFAULT
    dims: Mapping[str, int] = field(default_factory=dict)
    kernels: Sequence[Path] = ()
    reload: bool = True


class DevServer:
    """The development server; used in one loop. See `serving`.

    Attributes:
        token: The secret in its URL; "" on loopback.
    """

    def __init__(self, options: ServeOptions, say: Callable[[str], None]) -> None:
        self._options, self._say = options, say
        self._folder = options.folder.resolve()
        if not self._folder.is_dir():
            raise InvalidArgument(f"{options.folder} is no folder")
        self.token = "" if options.host in LOOPBACK else secrets.token_urlsafe(18)
        self._events = Events()
        self._models = Models(options.providers, options.dims, self._events.tell, say)
        self._own = {f"{folder}{file.name}": file for file in runtime_files() for folder in ("", f"{RUNTIME}/")}
        self._own |= {name: ASSETS / name for name in (SCRIPT, "model_page.js")}

    @contextlib.asynccontextmanager
    async def serving(self) -> AsyncIterator[int]:
        """Serve; the context's value is the port.

        Raises:
            OSError: The address is in use, or not one of this machine's.
        """
        access = Access(self.token, self._options.origins)
        app = web.Application(middlewares=[access.middleware()])
        app.on_response_prepare.append(access.with_headers)
        app.router.add_get(f"{PREFIX}events", self._events.listen)
        app.router.add_route("*", "/{path:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1)
        await runner.setup()
        watching = asyncio.ensure_future(self._watch())
        try:
            await web.TCPSite(runner, self._options.host, self._options.port).start()
            yield runner.addresses[0][1]
        finally:
            watching.cancel()
            self._events.close()
            await runner.cleanup()
            await self._models.close()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        if request.method not in ("GET", "HEAD"):
            raise web.HTTPMethodNotAllowed(request.method, ["GET", "HEAD"])
        path = request.rel_url.raw_path
        if path.startswith(PREFIX) and (own := self._own.get(path.removeprefix(PREFIX))):
            return await send(request, own.resolve())
        file = place(self._folder, path)
        if file is None:
            raise web.HTTPNotFound
        if "page" in request.query and file.suffix == ".pyort":
            return await self._page(request, file)
        if file.is_dir():
            return await self._of_folder(request, file)
        if file.is_file():
            name = unquote(path.rpartition("/")[2])
            if name.endswith(".onnx") and _TAKES in request.headers.get("Accept", ""):
                raise web.HTTPTemporaryRedirect("./" + quote(f"{name.removesuffix('.onnx')}.pyort"))
            return await self._file(request, file)
        if compiled := await self._compiled(file):
            return await send(request, compiled, file.name)
        if path == "/favicon.ico":
            return web.Response(status=204)
        raise web.HTTPNotFound

    async def _file(self, request: web.Request, file: Path) -> web.StreamResponse:
        if file.suffix.lower() not in (".html", ".htm"):
            return await send(request, file)
        try:
            content = await asyncio.to_thread(file.read_bytes)
        except OSError:
            raise web.HTTPNotFound from None
        return await self._html(request, with_overlay(content) if self._options.reload else content)

    async def _of_folder(self, request: web.Request, folder: Path) -> web.StreamResponse:
        path = request.rel_url.raw_path
        if not path.endswith("/"):  # a folder's page names files inside the folder
            raise web.HTTPFound(f"{quote(folder.name)}/")
        index = place(folder, "index.html")
        if index and index.is_relative_to(self._folder) and index.is_file():
            return await self._file(request, index)
        return await self._html(request, await asyncio.to_thread(list_of_models, folder))

    async def _page(self, request: web.Request, file: Path) -> web.StreamResponse:
        model = file if file.is_file() else await self._compiled(file)
        if model is None:
            raise web.HTTPNotFound
        try:
            return await self._html(request, await asyncio.to_thread(page_of, model))
        except PyOrtError as e:
            raise web.HTTPInternalServerError(text=f"{type(e).__name__}: {e}") from None

    async def _html(self, request: web.Request, content: bytes) -> web.StreamResponse:
        return await send_bytes(request, content, hashlib.sha256(content).hexdigest()[:32], "text/html; charset=utf-8")

    async def _compiled(self, file: Path) -> Path | None:
        """Return the compiled file, or part, for a missing `.pyort` file; None if there is no model."""
        if not (found := _EXPORTED.fullmatch(file.name)):
            return None
        name, part = found.groups()
        model = place(self._folder, quote((file.parent / f"{name}.onnx").relative_to(self._folder).as_posix()))
        if model is None or not model.is_file():
            return None
        try:
            exported = await self._models.exported(model, model.relative_to(self._folder).as_posix())
        except (PyOrtError, OSError) as e:
            raise web.HTTPInternalServerError(text=f"{type(e).__name__}: {e}") from None
        wanted = exported.with_name(f"{exported.name}{part}")
        return wanted.resolve() if wanted.is_file() else None

    async def _watch(self) -> None:
        kernels = [file.resolve() for file in self._options.kernels]
        changes = await asyncio.to_thread(Changes, self._folder, kernels)
        took = 0.0
        while True:
            await asyncio.sleep(max(_INTERVAL, _PART * took))
            began = time.perf_counter()
            changed = await asyncio.to_thread(changes.since)
            took = time.perf_counter() - began
            if not changed:
                continue
            wrong = {}
            for file in set(changed) & set(kernels):
                if text := await asyncio.to_thread(self._load, file):
                    wrong[file.name] = text
            # A model's weight files may have any name.
            self._models.forget()
            for name, text in wrong.items():
                self._events.tell("failed", file=name, text=text)
            if self._options.reload and not wrong:
                self._events.tell("changed", file=changed[0].name)

    def _load(self, file: Path) -> str:
        """Load a file of kernels again; return its error, or ""."""
        from py_ort.user_kernels import load_kernels

        text = ""
        try:
            load_kernels(file)
        except Exception as e:  # a Python file may raise anything
            text = f"{type(e).__name__}: {e}"
        self._say(f"{file.name}: {text or 'loaded again'}")
        return text
