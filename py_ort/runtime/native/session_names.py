"""Names by which other people's code reaches beneath onnxruntime's `InferenceSession`: what its Python code keeps."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from py_ort.exceptions import Fail, NotImplemented
from py_ort.providers import PROVIDERS
from py_ort.runtime.values.ort_device import HEAP

if TYPE_CHECKING:
    from py_ort.runtime.native.assignment import OrtEpAssignedSubgraph
    from py_ort.runtime.native.memory import OrtMemoryInfo
    from py_ort.runtime.native.session import NativeSession
    from py_ort.runtime.session import InferenceSession

#: The configuration entry without which onnxruntime does not tell which node runs where.
RECORD_ASSIGNMENT = "session.record_ep_graph_assignment_info"


def _told_by(method: str) -> property:
    return property(lambda session: getattr(session, method)())


class NativeSessionNames:
    """A part of `InferenceSession`."""

    _native: weakref.ref[NativeSession] | None = None
    #: Where a session goes when its provider fails, if it may.
    _fallback_providers = ("CPUExecutionProvider",)
    _read_config_from_model = False

    @property
    def _sess(self) -> NativeSession:
        from py_ort.runtime.native.session import NativeSession

        native = None if self._native is None else self._native()
        if native is None:
            native = NativeSession.of(self._self())
            self._native = weakref.ref(native)
        return native

    def _self(self) -> InferenceSession:
        return self  # type: ignore[return-value]

    @property
    def _model_path(self) -> str | None:
        source = self._self()._origin.source
        return None if isinstance(source, (bytes, bytearray, memoryview)) else os.fspath(source)

    @property
    def _model_bytes(self) -> Any:
        return None if self._model_path is not None else self._self()._origin.source

    _inputs_meta = _told_by("get_inputs")
    _outputs_meta = _told_by("get_outputs")
    _overridable_initializers = _told_by("get_overridable_initializers")
    _input_meminfos = _told_by("get_input_memory_infos")
    _output_meminfos = _told_by("get_output_memory_infos")
    _input_epdevices = _told_by("get_input_epdevices")
    _model_meta = _told_by("get_modelmeta")
    _providers = _told_by("get_providers")
    _provider_options = _told_by("get_provider_options")
    _profiling_start_time_ns = _told_by("get_profiling_start_time_ns")
    _sess_options = _sess_options_initial = _told_by("get_session_options")

    @property
    def _enable_fallback(self) -> bool:
        return self._self()._fallback

    def _validate_input(self, feed_input_names: Sequence[str]) -> None:
        from py_ort.runtime.values.feeds import check_names

        check_names(self._self().get_inputs(), dict.fromkeys(feed_input_names))

    def _reset_session(self, providers: Any, provider_options: Any, disabled_optimizers: Any = None) -> None:
        self._self().set_providers(providers, provider_options)

    _create_inference_session = _reset_session

    # --- what onnxruntime tells of its devices

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return for each input where it is taken from: the CPU's memory always will do."""
        from py_ort.runtime.native.memory import of_place

        return [of_place(HEAP) for _ in self._self().get_inputs()]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return for each output where `run` leaves it; see `SessionOptions.preferred_output_location`."""
        from py_ort.runtime.native.memory import of_place
        from py_ort.runtime.values.output_location import preferred

        outputs = self._self().get_outputs()
        on_gpu = preferred(self._self()._location, outputs, [arg.name for arg in outputs])
        provider = self._self().placement().device()
        device = HEAP if provider is None else PROVIDERS[provider].device_name
        return [of_place(device if arg.name in on_gpu else HEAP) for arg in outputs]

    def get_input_epdevices(self) -> list[None]:
        """Return None for each input: a browser does not list its devices."""
        return [None for _ in self._self().get_inputs()]

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Return which node of the model runs on which provider; `placement()` tells more, and of every session.

        Raises:
            Fail: The session was made without the configuration entry "session.record_ep_graph_assignment_info".
        """
        from py_ort.runtime.native.assignment import assigned

        session = self._self()
        if session._options.config_entries.get(RECORD_ASSIGNMENT) != "1":
            raise Fail(
                f"Session configuration entry '{RECORD_ASSIGNMENT}' must be set to \"1\" before the session is made; "
                "placement() tells of every session"
            )
        return assigned(session.placement(), session._origin.source)

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """Return nothing: no provider of a browser tunes its kernels by results that it gives out."""
        return []

    def set_tuning_results(self, results: Sequence[Mapping[str, Any]], *, error_on_invalid: bool = False) -> None:
        """Leave results of native providers alone.

        Raises:
            NotImplemented: `error_on_invalid` is set, and there are any.
        """
        if results and error_on_invalid:
            raise NotImplemented("no provider of a browser takes tuning results: they are of native ones")

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> NoReturn:
        """Refuse: no provider of a browser has options that change.

        Raises:
            NotImplemented: Always.
        """
        raise NotImplemented("no provider of a browser has options that change while a session lives")
