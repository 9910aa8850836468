"""`InferenceSession`: a model that runs in a browser's page, with onnxruntime's methods."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, Unpack

from py_ort.boundary import public
from py_ort.browser.browser_options import BrowserOptions
from py_ort.exceptions import (
    NotImplemented,
)
from py_ort.runtime.engine import EngineRequest
from py_ort.runtime.engines import OURS
from py_ort.runtime.keywords import Keywords
from py_ort.runtime.native.session_names import NativeSessionNames
from py_ort.runtime.options import RunOptions, SessionOptions
from py_ort.runtime.page_engine import PageEngine
from py_ort.runtime.run import in_thread
from py_ort.runtime.session_creation import Providers
from py_ort.runtime.values.io_binding import IOBinding
from py_ort.runtime.values.ort_device import DEVICES, PROVIDER_OF, device_kind
from py_ort.runtime.values.ort_value import OrtValue, as_values, make_value

if TYPE_CHECKING:
    from py_ort.runtime.generation.generation import Generation
    from py_ort.runtime.generation.settings import Settings


@public
class InferenceSession(NativeSessionNames):
    """Loads a model and runs it in a browser, with onnxruntime's methods.

    The browser starts (or is shared with other sessions) while Python reads and checks the model. The page opens each
    provider of the list. Python optimizes the model, places every node on a provider and writes a plan. The page loads
    the plan and its weights. `run` sends feeds and receives outputs.

    Args:
        path_or_bytes: An ONNX file, or its bytes.
        sess_options: See `SessionOptions`.
        providers: Execution providers, best first: names, or pairs of a name and its options. Default: WebGPU, then
            the CPU. A provider that cannot run in this browser is skipped with a warning, unless it is the only one, or
            the configuration entry "session.require_providers" is "1".
        provider_options: Options for each of `providers`, as dicts.
        browser: A browser's name, or `BrowserOptions`. Default: "chromium".
        launcher: "playwright" or "process"; default: the better one for the browser.
        pages: Largest number of workers for the browser's sessions; see `BrowserOptions`. Default: 1.
        progress: Called with (stage, done, total) while the session is made, and in another thread while runs compile
            shaders. Without it, a step of more than 3 s has a line on a terminal, or a log message (INFO).
        engine: The runtime in the browser: "py_ort"; or, to compare, "onnxruntime-web" or
            "onnxruntime-web:jsep" (see `py_ort.runtime.peer.engine.PeerEngine`).
        keywords: onnxruntime's keywords: `enable_fallback` (1: as `enable_fallback()`; our default is 0),
            `read_config_from_model` (1: options in the model's metadata replace `sess_options`; default: the variable
            ORT_LOAD_CONFIG_FROM_MODEL), and `disabled_optimizers`, for the file of `optimized_model_filepath`. Other
            keywords cause a warning, once in a process.

    Raises:
        NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented: The model cannot be used; the message has the reason.
        BrowserNotFound, BrowserCrashed, Timeout: The browser cannot be used.
        NoAdapter, EPFail: No provider can run in this browser, or a required one cannot.
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
        pages: int | None = None,
        progress: Callable[[str, int, int], None] | None = None,
        engine: str = OURS,
        **keywords: Any,
    ) -> None:
        if engine != OURS and type(self) is not InferenceSession:
            raise NotImplemented(f"engine={engine!r} of {type(self).__name__}: only InferenceSession itself has others")
        asked = Keywords.read(keywords) if engine == OURS else Keywords()
        where, options = BrowserOptions.of(browser, launcher, pages), asked.options(path_or_bytes, sess_options)
        request = EngineRequest(path_or_bytes, options, providers, provider_options, where, progress)
        if engine == OURS:
            super().__init__(PageEngine(request, asked.fallback))
            self._read_config_from_model = asked.read_config
            asked.warn(options, self._engine.log)
        else:
            from py_ort.runtime.peer.engine import PeerEngine  # a tool, which most programs never use

            super().__init__(PeerEngine(request, engine, keywords))

    # --- running

    def run(
        self,
        output_names: Sequence[str] | None,
        input_feed: Mapping[str, Any],
        run_options: RunOptions | None = None,
    ) -> list[Any]:
        """Run the model.

        Args:
            output_names: Wanted outputs, in this order; None or empty: all.
            input_feed: Feeds by the input's name: arrays (or `OrtValue`s, or lists that numpy understands); for a
                sequence a list of these; for an optional its element, or None (or no feed) if it is empty.
            run_options: See `RunOptions`.

        Returns:
            The outputs: arrays, lists of arrays for sequences, None for empty optionals; `OrtValue`s if
            `SessionOptions.preferred_output_location` leaves outputs on the GPU.

        Raises:
            InvalidArgument: A feed or an output's name does not fit the model; the message has the expected form.
            RuntimeException: A kernel failed on these inputs.
            Cancelled: `run_options.terminate` was set.
            BrowserCrashed, PageCrashed, ConnectionLost, Timeout: The page is lost, or took too long.
            CoreCrashed: This run crashed the core in wasm; the session continues in another worker.
            DeviceLost: The GPU is lost; as WorkerEnded: a value on the GPU was lost with an ended worker.
        """
        return as_values(self._engine.run(output_names, input_feed, run_options))

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
            user_data: Passed to the callback.
            run_options: As for `run`.

        Returns:
            A future of the outputs: inside a running asyncio loop an `asyncio.Future`, else a
            `concurrent.futures.Future`. It raises the errors of `run`.
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
        """Run the model on `OrtValue`s.

        Args:
            output_names: As for `run`.
            input_dict_ort_values: Values by the inputs' names, of the inputs' dtypes and shapes. Values on the GPU are
                read in place if they are in this session's page, and copied from other pages.
            run_options: As for `run`.

        Returns:
            The outputs, on the CPU unless `SessionOptions.preferred_output_location` leaves them on the GPU.

        Raises:
            PyOrtError: As `run` does.
        """
        outputs = self.run(output_names, input_dict_ort_values, run_options)
        types = self._output_types()
        return [OrtValue(value, types[name]) for name, value in zip(output_names or types, outputs, strict=True)]

    def run_with_ortvaluevector(
        self,
        run_options: RunOptions | None,
        feed_names: Sequence[str],
        feeds: Sequence[OrtValue],
        fetch_names: Sequence[str],
        fetches: list[OrtValue],
        fetch_devices: Sequence[Any],
    ) -> None:
        """Run the model on lists of names and values.

        Args:
            run_options: As for `run`.
            feed_names: The names of the inputs.
            feeds: A value for each input, of the input's dtype and shape.
            fetch_names: The wanted outputs.
            fetches: A list whose content is replaced by the outputs, in this order.
            fetch_devices: An `OrtDevice` for each output.

        Raises:
            PyOrtError: As `run` does.
            InvalidArgument: The numbers of feeds and names differ.
        """
        on_gpu = [n for n, device in zip(fetch_names, fetch_devices, strict=False) if device.name in DEVICES]
        feed = dict(zip(feed_names, feeds, strict=True))
        engine = self._offering("run_with_ortvaluevector()")
        outputs = engine.run(fetch_names, feed, run_options, dict.fromkeys(on_gpu))
        types = self._output_types()
        fetches[:] = [OrtValue(value, types[name]) for name, value in zip(fetch_names, outputs, strict=True)]

    def io_binding(self) -> IOBinding:
        """Return an empty binding of this session's inputs and outputs."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run the model with the feeds and outputs of a binding."""
        iobinding.run(run_options)

    def create_ortvalue_from_shape_and_type(
        self, shape: Sequence[int], element_type: Any, device_type: str, device_id: int = 0, vendor_id: int = -1
    ) -> OrtValue:
        """Return a value of zeros; on a provider's device, this session's runs read and write it in place.

        Args:
            shape: Dimensions, in elements.
            element_type: A numpy dtype, or ONNX's number of an element type.
            device_type: The name of a device, see `OrtDevice`; "gpu" is the session's own.
            device_id: A device of this session's page; 0: the session's own.
            vendor_id: Must be omitted: a browser's devices have none.

        Raises:
            InvalidArgument: A size is negative, ONNX has no such type, the GPU has no form for it, there is no such
                device, or `vendor_id` is given.
            NoAdapter: WebGPU has no adapter there.
            NotImplemented: It is a device of native onnxruntime ("cuda").
        """
        engine = self._offering("create_ortvalue_from_shape_and_type()")
        runtime, own = engine.ready().runtime, engine.page_device
        kind = device_kind(device_type, own and own.provider)
        number = device_id or runtime.number_of(PROVIDER_OF[kind])
        return make_value(shape, element_type, kind, number, vendor_id, runtime.lease)

    def release_captured_graph(self, graph_annotation_id: int = 0) -> None:
        """Release the captures of runs with this "gpu_graph_id"; with 0 also captures of runs without an id.

        The next such run captures again. Without enableGraphCapture there are no captures.
        """
        opened = self._offering("release_captured_graph()").sessions.main()
        opened.steadily(lambda: opened.runtime.release_graph(opened.session, graph_annotation_id))

    def generate(
        self, prompt: Any, *, timeout: float | None = None, **settings: Unpack[Settings]
    ) -> Generation[int | list[int | None]]:
        """Generate tokens with a decoder; the loop runs in the page, and only tokens are sent back.

        Args:
            prompt: Tokens; or a batch, which has rows of tokens of any length.
            timeout: Seconds for the whole generation; None: no limit.
            settings: See `py_ort.runtime.generation.settings.Settings`: `max_new_tokens`, `eos_token_id`, `do_sample`,
                `top_k`, …

        Returns:
            An iterator of the new tokens as they arrive; a search by `num_beams` has only a `result()`.

        Raises:
            WrongType: A keyword, or the prompt, has a wrong type.

        The iterator raises:
            NotImplemented: The model is not such a decoder; the message names an unknown input or output.
            InvalidArgument: A setting is out of range, or prompt and new tokens are too long for the model.
            PyOrtError: As `run` does.
        """
        from py_ort.runtime.generation.generation import Generation

        return Generation(self, *self._offering("generate()").generating(prompt, settings, timeout))

    # --- changing

    def set_providers(
        self, providers: Providers | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Load the model again, for other providers. If that fails, the session stays as it is."""
        engine = self._offering("set_providers()")
        engine.sessions.main()  # raises if the session is closed
        engine.set_providers(providers, provider_options)

    def enable_fallback(self) -> None:
        """From now on, repeat a run whose GPU is lost on wasm, with a warning; later runs are on wasm, too."""
        self._engine.fallback = True

    def disable_fallback(self) -> None:
        """From now on, as at first, raise `DeviceLost` from a run whose GPU is lost."""
        self._engine.fallback = False

    # --- ending

    def __enter__(self) -> InferenceSession:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
