"""Visits of static pages, each first visit in a browser context of its own: nothing is in its cache."""

from __future__ import annotations

import asyncio
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from py_ort.bench.in_pages.site import Site
from py_ort.bench.peer import FLAVORS, find_dist
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.launchers.with_playwright import PlaywrightLauncher
from py_ort.browser.loop import loop_thread
from py_ort.compiler.package.format import is_package
from py_ort.exceptions import EngineError, InvalidArgument
from py_ort.exporting.runtime_files import runtime_files
from py_ort.folders import ASSETS
from py_ort.providers import on_device
from py_ort.testing.model_inputs import ModelInputs
from py_ort.testing.random_feeds import random_feeds

OURS, PEER = "py_ort", "onnxruntime-web"
#: Seconds before a navigation in which the browser finishes its new window, whose own pages take a CPU meanwhile.
_PAUSE = 0.5


@dataclass
class PageRow:
    """One engine's page with one model. Times in milliseconds, medians over the visits.

    Attributes:
        visit: "cold", in a new browser context; or "warm", the second one there: the browser's cache has all files.
        module_ms: From navigation until the engine's module has run.
        created_ms: From navigation until the session is there.
        first_ms: From navigation to the first outputs.
        steady_ms: The median of the later runs.
        bytes: Bodies that the server sent, compressed where servers do that.
        visits: How many there were.
        error: Why there are no times; "" if there are.
    """

    model: str
    engine: str
    provider: str
    threads: int
    visit: str
    module_ms: float | None = None
    created_ms: float | None = None
    first_ms: float | None = None
    steady_ms: float | None = None
    bytes: int = 0
    visits: int = 0
    error: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Return the row for JSON."""
        return asdict(self)


@dataclass
class _Course:
    """A page and the results of its visits."""

    engine: str
    flavor: str
    path: str
    told: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: {"cold": [], "warm": []})
    error: str = ""


def measure_pages(
    model: str | Path,
    providers: Sequence[str],
    *,
    source: str | Path | None = None,
    threads: int = 1,
    runs: int = 10,
    visits: int = 3,
    against: bool = False,
    browser: BrowserOptions | None = None,
    shapes: Mapping[str, Sequence[int]] | None = None,
    dims: Mapping[str, int] | None = None,
    timeout: float = 600,
    progress: Callable[[str, int, int], None] = lambda stage, done, total: None,
) -> list[PageRow]:
    """Time pages that run a model with random inputs, both engines from one static server and by turns.

    Args:
        model: A `.pyort` file.
        providers: Their names.
        source: The ONNX file for the other engine. Default: that of the same name beside the model.
        threads: Threads of wasm, in both engines.
        runs: Steady runs of a visit.
        visits: How often each page is visited, cold and then warm.
        against: True to time onnxruntime-web, too.
        browser: The browser: Chromium, by Playwright.
        shapes: Shapes of random inputs; see `py_ort.testing.random_feeds`.
        dims: Numbers for dimensions that have a name.
        timeout: Seconds for a visit.
        progress: Called with the stage, its number, and the number of stages.

    Raises:
        InvalidArgument: The model is no `.pyort` file, or the other engine has none.
        EngineError: onnxruntime-web or the runtime's files are not there.
        PyOrtError: A file cannot be read, or no feeds can be made for it.
    """
    path = Path(model)
    if not is_package(path):
        raise InvalidArgument(f"{path} is no .pyort file: `py-ort export` writes one")
    onnx = Path(source) if source else path.with_suffix(".onnx")
    if against and not onnx.is_file():
        raise InvalidArgument(f"{onnx} is not there: the other engine needs the ONNX model, by --model")
    inputs = ModelInputs.of(onnx if against else path)
    feeds = random_feeds(inputs.args, shapes, dims=dims, values=inputs.accepted)
    site = Site()
    try:
        settings = {"threads": threads, "runs": runs, "feeds": _add_feeds(site, feeds)}
        site.add("/page_bench.js", ASSETS / "page_bench.js")
        courses = [c for name in providers for c in _add_pages(site, path, onnx if against else None, name, settings)]
        work = _visit_all(site, courses, visits, browser or BrowserOptions(), timeout, progress)
        loop_thread().call(work)
    finally:
        site.close()
    for provider in providers:
        _compare([c for c in courses if FLAVORS[c.flavor].provider == provider])
    return [_row(path.stem, course, threads, visit) for course in courses for visit in ("cold", "warm")]


def _add_feeds(site: Site, feeds: Mapping[str, np.ndarray]) -> list[dict[str, Any]]:
    described, data = [], bytearray()
    for name, array in feeds.items():
        data += bytes(-len(data) % 8)
        kind = array.dtype.name
        described.append(
            {"name": name, "type": kind, "dims": list(array.shape), "offset": len(data), "size": array.nbytes}
        )
        data += np.ascontiguousarray(array).tobytes()
    site.add("/feeds.bin", bytes(data))
    return described


def _add_pages(site: Site, model: Path, onnx: Path | None, provider: str, settings: Mapping[str, Any]) -> list[_Course]:
    """Add what the pages of one provider need."""
    folder = f"/ours-{provider}"
    files = runtime_files("" if on_device(provider) else ".wasm")
    for file in files:
        site.add(f"{folder}/{file.name}", file)
    site.add(f"{folder}/model.pyort", model)
    page = {"module": f"./{files[0].name}", "model": "model.pyort", "provider": provider}
    site.add_page(f"{folder}/index.html", OURS, {**settings, **page})
    courses = [_Course(OURS, provider, f"{folder}/index.html")]
    if onnx is None:
        return courses
    for name, flavor in FLAVORS.items():
        if flavor.provider != provider:
            continue
        folder = f"/peer-{name}"
        for part in (flavor.module, f"{flavor.glue}.mjs", f"{flavor.glue}.wasm"):
            site.add(f"{folder}/{part}", find_dist() / part)
        site.add(f"{folder}/model.onnx", onnx)
        page = {"module": f"./{flavor.module}", "model": "model.onnx", "provider": provider}
        site.add_page(f"{folder}/index.html", PEER, {**settings, **page})
        courses.append(_Course(PEER, name, f"{folder}/index.html"))
    return courses


async def _visit_all(
    site: Site,
    courses: Sequence[_Course],
    visits: int,
    options: BrowserOptions,
    timeout: float,
    progress: Callable[[str, int, int], None],
) -> None:
    launcher = PlaywrightLauncher(options.settled(), lambda error: None)
    await launcher.start("about:blank")
    try:
        browser = launcher._browser
        for i in range(visits):
            for number, course in enumerate(courses):
                if course.error:
                    continue
                progress(f"{course.engine} {course.flavor}", i * len(courses) + number, visits * len(courses))
                context = await browser.new_context()
                try:
                    for told in course.told.values():
                        told.append(await _visit(site, context, course.path, timeout))
                except EngineError as e:
                    course.error = e.message
                finally:
                    await context.close()
    finally:
        await launcher.close()


async def _visit(site: Site, context: Any, path: str, timeout: float) -> dict[str, Any]:
    page = await context.new_page()
    await asyncio.sleep(_PAUSE)
    site.sent, telling = 0, site.told()
    try:
        await page.goto(site.origin + path, wait_until="commit", timeout=timeout * 1000)
        told: dict[str, Any] = await asyncio.wait_for(telling, timeout)
    except TimeoutError:
        raise EngineError(f"no outputs within {timeout:.0f} s") from None
    finally:
        await page.close()
    if "error" in told:
        raise EngineError(str(told["error"]))
    return {**told, "bytes": site.sent}


def _compare(courses: Sequence[_Course]) -> None:
    """Times of an engine whose outputs are not ours are none: its rows say so."""
    ours, *others = courses
    for course in others:
        if not (ours.told["cold"] and course.told["cold"]):
            continue
        for mine, other in zip(ours.told["cold"][0]["sums"], course.told["cold"][0]["sums"], strict=True):
            if mine[:-1] != other[:-1] or not math.isclose(mine[-1], other[-1], rel_tol=0.02, abs_tol=0.01):
                course.error = f"other outputs than ours: {other}, not {mine} (name, type, shape, sum of magnitudes)"
                break


def _row(model: str, course: _Course, threads: int, visit: str) -> PageRow:
    row = PageRow(model, course.engine, course.flavor, threads, visit, error=course.error)
    told = course.told[visit]
    if told and not course.error:
        row.module_ms, row.created_ms, row.first_ms = (
            statistics.median(each[name] for each in told) for name in ("loaded_ms", "created_ms", "first_ms")
        )
        steady = [ms for each in told for ms in each["steady_ms"]]
        row.steady_ms = statistics.median(steady) if steady else None
        row.bytes, row.visits = told[-1]["bytes"], len(told)
    return row
