"""A browser that runs jobs with `py_ort.mjs`, in a page of a server started for it."""

from __future__ import annotations

import asyncio
import json
import secrets
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.http_server import HEADERS
from py_ort.browser.page_visit import visit
from py_ort.content_types import content_type
from py_ort.exceptions import EngineError
from py_ort.exporting.page import RUNTIME
from py_ort.exporting.runtime_files import runtime_files
from py_ort.folders import ASSETS
from py_ort.wire.tensors import Layout, from_bytes, pack

if TYPE_CHECKING:
    from aiohttp import web

_SCRIPT = "check_page.js"
_PAGE = f"""<!doctype html><meta charset="utf-8"><title>py-ort export --check</title>
<link rel="icon" href="data:,"><script type="module" src="{_SCRIPT}"></script>"""


@dataclass(frozen=True)
class Job:
    """A run.

    Attributes:
        provider: Its name.
        dimensions: Sizes by the names of dimensions, which select a plan for single shapes.
        feeds: By input name.
    """

    provider: str
    feeds: Mapping[str, np.ndarray]
    dimensions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """Result of a job.

    Attributes:
        outputs: In the model's order; None if it failed.
        times_ms: Loading, the first run, the second.
        code: Code of its error, by `ErrorCode`'s names; "".
        error: Text of its error; "".
    """

    outputs: Sequence[Any] | None = None
    times_ms: Sequence[float] = ()
    code: str = ""
    error: str = ""


async def run_jobs(
    files: Sequence[Path], jobs: Sequence[Job], browser: BrowserOptions, timeout: float
) -> tuple[str, list[Result]]:
    """Run jobs in a browser; return its name and version, and their results.

    Args:
        files: The model's files, the one to open first.
        jobs: The jobs.
        browser: The browser.
        timeout: Seconds for all jobs.

    Raises:
        BrowserError: It could not be started, crashed, or took too long.
    """
    from aiohttp import web

    done: asyncio.Future[list[Result]] = asyncio.get_running_loop().create_future()
    arrived, results = asyncio.Event(), dict[int, Result]()
    feeds: list[bytes] = []
    told = [_told(files[0].name, job, feeds) for job in jobs]
    served = {file.name: file for file in files}
    served |= {_SCRIPT: ASSETS / _SCRIPT, **{f"{RUNTIME}/{file.name}": file for file in runtime_files()}}
    if not served[_SCRIPT].is_file():
        raise EngineError(f"{_SCRIPT} is not in {ASSETS}: run `make build` in the repository, or install a wheel")

    async def file(request: web.Request) -> web.StreamResponse:
        found = served.get(request.match_info["name"])
        return web.FileResponse(found) if found else web.Response(status=404)

    async def page(request: web.Request) -> web.Response:
        return web.Response(text=_PAGE, content_type="text/html")

    async def ask(request: web.Request) -> web.Response:
        arrived.set()
        return web.json_response(told)

    async def feed(request: web.Request) -> web.Response:
        return web.Response(body=feeds[int(request.match_info["number"])])

    async def answer(request: web.Request) -> web.Response:
        results[int(request.match_info["number"])] = _result(await request.read())
        if len(results) == len(jobs) and not done.done():
            done.set_result([results[number] for number in range(len(jobs))])
        return web.Response(status=204)

    # Only the page knows the path: other users of the machine can reach this port, too.
    secret = f"/{secrets.token_urlsafe(18)}"
    app = web.Application(client_max_size=1 << 34)
    app.router.add_get(f"{secret}/", page)
    app.router.add_get(f"{secret}/jobs", ask)
    app.router.add_get(secret + r"/feeds/{number:\d+}", feed)
    app.router.add_post(secret + r"/results/{number:\d+}", answer)
    app.router.add_get(secret + "/{name:.+}", file)
    app.on_response_prepare.append(_with_headers)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        return await visit(browser, f"http://127.0.0.1:{port}{secret}/", arrived, done, timeout)
    finally:
        await runner.cleanup()


async def _with_headers(request: web.Request, response: web.StreamResponse) -> None:
    response.headers.update({name: value for name, value in HEADERS.items() if name != "Accept-Ranges"})
    if request.path.endswith((".mjs", ".js", ".wasm")):
        response.content_type = content_type(request.path)


def _told(model: str, job: Job, contents: list[bytes]) -> dict[str, Any]:
    feeds = []
    for name, array in job.feeds.items():
        layout = Layout()
        description = pack(name, array, layout)
        feeds.append(
            {
                "name": name,
                "dtype": description.dtype,
                "dims": list(array.shape),
                "url": f"feeds/{len(contents)}",
            }
        )
        contents.append(b"".join(layout.buffers))
    return {"model": model, "provider": job.provider, "dimensions": dict(job.dimensions), "feeds": feeds}


def _result(body: bytes) -> Result:
    (size,) = struct.unpack_from("<I", body)
    told, data = json.loads(body[4 : 4 + size]), memoryview(body)[4 + size :]
    if "error" in told:
        return Result(code=told["code"], error=told["error"])
    return Result([_value(value, data) for value in told["outputs"]], told["times"])


def _value(told: Any, data: memoryview) -> Any:
    if told is None:
        return None
    if isinstance(told, list):
        return [_value(item, data) for item in told]
    return from_bytes(data[told["offset"] : told["offset"] + told["size"]], told["dtype"], tuple(told["dims"]))
