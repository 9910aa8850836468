"""`InferenceSession`: a model, compiled here, that runs in a browser's page."""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from py_ort.browser.options import BrowserOptions
from py_ort.exceptions import PyOrtError
from py_ort.io_binding import IOBinding
from py_ort.opening import Opened, Providers, open_session
from py_ort.options import RunOptions, SessionOptions
from py_ort.ort_value import OrtValue
from py_ort.running import Run, in_thread, output_names

if TYPE_CHECKING:
    from py_ort.load import ModelMetadata
    from py_ort.plan import NodeArg
    from py_ort.providers import Placement

_log = logging.getLogger("py_ort")


class InferenceSession:
    """Loads a model and runs it in a browser, with onnxruntime's methods.

    What happens: the browser starts (or is shared with other sessions) while Python reads and checks the model; each
    provider of the list is opened in the page; Python optimises the model, places every node on a provider and writes a
    plan; the page loads the plan and its weights; `run` sends feeds and gets outputs.

    Args:
        path_or_bytes: An ONNX file, or its bytes.
        sess_options: See `SessionOptions`.
        providers: Execution providers, best first: names, or pairs of a name and its options. Default: "webgpu", then
            "wasm". One that cannot run in this browser is left out with a warning.
        provider_options: Options for each of `providers`, as dicts.
        browser: Which browser; see `BrowserOptions`. Default: "chromium".
        launcher: "playwright" or "process"; default: what suits the browser.
        progress: Called with (stage, done, total) while the session is made.

    Raises:
        NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented: The model cannot be used; the message says why.
        BrowserNotFound, BrowserCrashed, Timeout: There is no browser to run it in.
        NoAdapter, EPFail: None of the providers can run in this browser.
    """

    def __init__(
        self,
        path_or_bytes: str | os.PathLike[str] | bytes,
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        *,
        browser: str | BrowserOptions | None = None,
        launcher: str | None = None,
        progress: Callable[[str, int, int], None] | None = None,
    ) -> None:
        self._opened: Opened | None = None
        self._options = sess_options or SessionOptions()
        self._last_run: dict[str, Any] = {}
        self._opened = open_session(
            path_or_bytes,
            self._options,
            providers,
            provider_options,
            BrowserOptions.of(browser, launcher),
            progress or (lambda stage, done, total: None),
        )
        # What is asked for after the end, too.
        self._inputs, self._outputs = self._opened.inputs, self._opened.outputs
        self._metadata, self._placement = self._opened.metadata, self._opened.placement
        _log.info("%s", self)

    # --- running

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Run the model.

        Args:
            output_names: Outputs wanted, in this order; None or empty: all.
            input_feed: By the name of the input: arrays (or `OrtValue`s, or lists that numpy understands); for a
                sequence a list of them; for an optional the element, or None (or no feed) for one without.
            run_options: See `RunOptions`.

        Returns:
            The outputs: arrays, lists of arrays for sequences, None for optionals without an element.

        Raises:
            InvalidArgument: A feed or an output name does not fit the model; names it, what was expected and what came.
            RuntimeException: A kernel failed on these inputs.
            Cancelled: `run_options.terminate` was set.
            BrowserCrashed, PageCrashed, ConnectionLost, Timeout: The page is gone, or took too long.
        """
        return self._run(output_names, input_feed, run_options)

    def _run(
        self,
        names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None,
        on_gpu: Collection[str] = (),
    ) -> list[Any]:
        opened = self._open()
        wanted = output_names(opened, names)
        run = Run(opened, wanted, input_feed, run_options, self._options.run_timeout, on_gpu)
        results = run.wait()
        self._last_run = run.info
        opened.times.setdefault("first_run_ms", run.info["total_ms"])
        return results

    def run_async(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None] | None = None,
        user_data: Any = None,
        run_options: RunOptions | None = None,
    ) -> asyncio.Future[list[Any]] | Future[list[Any]]:
        """Start a run and return at once.

        Args:
            output_names: As for `run`.
            input_feed: As for `run`.
            callback: If given, called in another thread with (outputs, user_data, error text or "").
            user_data: Passed to it.
            run_options: As for `run`.

        Returns:
            A future of the outputs: inside a running asyncio loop one to await, else a `concurrent.futures.Future`.
        """
        future = in_thread(lambda: self.run(output_names, input_feed, run_options))
        if callback is not None:

            def tell(done: Future[list[Any]]) -> None:
                error = done.exception()
                callback([] if error else done.result(), user_data, str(error) if error else "")

            future.add_done_callback(tell)
        try:
            return asyncio.wrap_future(future, loop=asyncio.get_running_loop())
        except RuntimeError:
            return future

    def run_with_ort_values(
        self,
        output_names: Sequence[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """Run the model on `OrtValue`s; return `OrtValue`s."""
        return [OrtValue(array) for array in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        """Return an empty binding of this session's inputs and outputs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run the model on what is bound."""
        iobinding.run(run_options)

    # --- asking

    def get_inputs(self) -> list[NodeArg]:
        """Return the inputs."""
        return list(self._inputs)

    def get_outputs(self) -> list[NodeArg]:
        """Return the outputs."""
        return list(self._outputs)

    def get_modelmeta(self) -> ModelMetadata:
        """Return what the model says of itself."""
        return self._metadata

    def get_providers(self) -> list[str]:
        """Return the providers of this session, onnxruntime's names, best first."""
        from py_ort.providers import onnxruntime_name

        return [onnxruntime_name(name) for name in self._open().providers]

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """Return the providers' options, by onnxruntime's names."""
        options = self._open().backend.options
        from py_ort.providers import onnxruntime_name

        return {
            onnxruntime_name(name): {key: str(value) for key, value in options.get(name, {}).items()}
            for name in self._open().providers
        }

    def get_session_options(self) -> SessionOptions:
        """Return the options that this session was made with."""
        return self._options

    def placement(self) -> Placement:
        """Return which node runs on which provider, and why. Prints as a table."""
        return self._placement

    def stats(self) -> dict[str, Any]:
        """Return times and counters.

        Keys: `create_ms`, `compile_ms` and `first_run_ms` as seen from here; `created`: the page's account of creation;
        `last_run`: its account of the last run (times, counters, whether it was replayed) and `total_ms`, seen from
        here; `session`: its recordings and memory; `page`: counters and memory of the whole page.
        """
        opened = self._open()
        backend = opened.backend
        return {
            **opened.times,
            "created": opened.created,
            "last_run": dict(self._last_run),
            "session": backend.stats(backend.session),
            "page": backend.stats(0),
        }

    @property
    def browser(self) -> str:
        """The browser and its version."""
        return self._opened.backend.lease.launcher.description if self._opened else ""

    @property
    def adapter(self) -> str:
        """The WebGPU adapter, in words; "" without WebGPU."""
        return self._opened.backend.adapter if self._opened else ""

    # --- ending

    def close(self) -> None:
        """Release the session in the page. The browser goes some time after its last session."""
        opened, self._opened = self._opened, None
        if opened is not None:
            opened.backend.release()

    def __enter__(self) -> InferenceSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_opened", None) is not None:
            self.close()

    def __repr__(self) -> str:
        if self._opened is None:
            return "<InferenceSession, closed>"
        counts = ", ".join(f"{n} nodes on {provider}" for provider, n in self.placement().counts().items())
        return f"<InferenceSession {self._metadata.graph_name!r}: {counts}; {self.browser}>"

    def _open(self) -> Opened:
        if self._opened is None:
            raise PyOrtError("this session is closed")
        return self._opened
