"""`AsyncInferenceSession`: the session for asyncio programs."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Unpack

from py_ort.boundary import public
from py_ort.browser.browser_options import BrowserOptions
from py_ort.exceptions import WorkerEnded
from py_ort.runtime.engine import EngineRequest
from py_ort.runtime.options import RunOptions, SessionOptions
from py_ort.runtime.page_engine import PageEngine
from py_ort.runtime.session_base import SessionBase
from py_ort.runtime.session_creation import Providers
from py_ort.runtime.values.ort_value import as_values

if TYPE_CHECKING:
    from py_ort.runtime.generation.generation import AsyncGeneration
    from py_ort.runtime.generation.settings import Settings


@public
class AsyncInferenceSession(SessionBase):
    """An `InferenceSession` for asyncio. `create` makes one; `async with` closes it."""

    _engine: PageEngine

    @classmethod
    async def create(
        cls,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        browser: str | BrowserOptions | None = None,
        launcher: str | None = None,
        pages: int | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> AsyncInferenceSession:
        """Make a session, in a thread, because compiling takes time.

        Args:
            path_or_bytes: An ONNX file, or its bytes.
            sess_options: See `SessionOptions`.
            providers: Execution providers, best first: names, or pairs of a name and its options. Default:
                WebGPU, then the CPU.
            provider_options: Options for each of `providers`, as dicts.
            browser: A browser's name, or `BrowserOptions`. Default: "chromium".
            launcher: "playwright" or "process"; default: the better one for the browser.
            pages: Largest number of workers for the browser's sessions; see `BrowserOptions`. Default: 1.
            progress: Called in that thread with (stage, done, total) while the session is made.

        Raises:
            PyOrtError: As the constructor of `InferenceSession` does.
        """
        where = BrowserOptions.of(browser, launcher, pages)
        options = sess_options or SessionOptions()
        request = EngineRequest(path_or_bytes, options, providers, provider_options, where, progress)
        return await asyncio.to_thread(lambda: cls(PageEngine(request)))

    async def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Run the model. Cancelling the task ends the run in the page.

        Args:
            output_names: As for `InferenceSession.run`.
            input_feed: As for `InferenceSession.run`.
            run_options: As for `InferenceSession.run`.

        Returns:
            The outputs, as `InferenceSession.run` does.

        Raises:
            PyOrtError: As `InferenceSession.run` does.
        """
        engine, options, began, spent = self._engine, run_options or RunOptions(), time.perf_counter(), 0.0
        while True:
            start = partial(engine.start, output_names, input_feed, options, spent=spent)
            run = await asyncio.to_thread(start) if engine.may_compile(input_feed, options) else start()
            answer = asyncio.wrap_future(run.future)
            try:
                await asyncio.wait([answer])
            except asyncio.CancelledError:
                run.give_up()
                raise
            _ = answer.cancelled() or answer.exception()  # `finish` raises it
            try:
                return as_values(engine.finish(run))
            except WorkerEnded:
                if not run.repeatable:
                    raise
                spent = time.perf_counter() - began

    async def generate(
        self, prompt: Any, *, timeout: float | None = None, **settings: Unpack[Settings]
    ) -> AsyncGeneration[int | list[int | None]]:
        """Start a generation: `async for token in await session.generate(prompt, max_new_tokens=20)`.

        Args:
            prompt: As for `InferenceSession.generate`.
            timeout: As for `InferenceSession.generate`.
            settings: As for `InferenceSession.generate`.

        Raises:
            PyOrtError: As `InferenceSession.generate` does.
        """
        from py_ort.runtime.generation.generation import AsyncGeneration

        start, gone = (
            partial(self._engine.generating, prompt, settings, timeout),
            self._engine.sessions.main().session.gone,
        )
        return AsyncGeneration(self, *(await asyncio.to_thread(start) if gone else start()))

    async def __aenter__(self) -> AsyncInferenceSession:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.close()
