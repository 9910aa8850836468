"""Names by which other code reaches beneath onnxruntime's `InferenceSession`: attributes of its Python code."""

from __future__ import annotations

import os
import weakref
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from py_ort.exceptions import Fail, NotImplemented
from py_ort.providers import PROVIDERS
from py_ort.runtime.native.memory import OrtMemoryInfo, of_place
from py_ort.runtime.native.native_session import DESCRIPTIONS, NativeSession
from py_ort.runtime.session_base import SessionBase
from py_ort.runtime.values.feeds import check_names
from py_ort.runtime.values.native_names import result_of, with_names
from py_ort.runtime.values.ort_device import HEAP
from py_ort.runtime.values.output_location import preferred

if TYPE_CHECKING:
    from py_ort.runtime.native.assignment import OrtEpAssignedSubgraph

#: Configuration entry that onnxruntime requires for reports of the nodes' providers.
RECORD_ASSIGNMENT = "session.record_ep_graph_assignment_info"


def _native(session: Any) -> NativeSession:
    native = None if session._native is None else session._native()
    if native is None:
        native = NativeSession.of(session)
        session._native = weakref.ref(native)
    return native


def _model_path(session: Any) -> str | None:
    source = session._engine.origin.source
    return None if isinstance(source, (bytes, bytearray, memoryview)) else os.fspath(source)


def _model_bytes(session: Any) -> Any:
    return None if session._model_path is not None else session._engine.origin.source


def _validate_input(session: Any, feed_input_names: Sequence[str]) -> None:
    check_names(session.get_inputs(), dict.fromkeys(feed_input_names))


def _reset_session(session: Any, providers: Any, provider_options: Any, disabled_optimizers: Any = None) -> None:
    session.set_providers(providers, provider_options)


#: Names of `InferenceSession`, as onnxruntime's Python code keeps them.
SESSION: dict[str, Any] = {
    "_native": None,  # the native form, weakly
    "_sess": property(_native),
    "_model_path": property(_model_path),
    "_model_bytes": property(_model_bytes),
    **{f"_{name}": result_of(method) for name, method in DESCRIPTIONS.items()},
    "_providers": result_of("get_providers"),
    "_provider_options": result_of("get_provider_options"),
    "_profiling_start_time_ns": result_of("get_profiling_start_time_ns"),
    "_sess_options": result_of("get_session_options"),
    "_sess_options_initial": result_of("get_session_options"),
    "_enable_fallback": property(lambda session: session._engine.fallback),
    "_fallback_providers": ("CPUExecutionProvider",),
    "_read_config_from_model": False,
    "_validate_input": _validate_input,
    "_reset_session": _reset_session,
    "_create_inference_session": _reset_session,
}


@with_names(SESSION)
class NativeSessionNames(SessionBase):
    """The part of `InferenceSession` that only code for native onnxruntime calls."""

    def get_input_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return the memory of each input: the CPU's, which is always accepted."""
        return [of_place(HEAP) for _ in self.get_inputs()]

    def get_output_memory_infos(self) -> list[OrtMemoryInfo]:
        """Return the memory of each output of `run`; see `SessionOptions.preferred_output_location`."""
        outputs, engine = self.get_outputs(), self._offering("get_output_memory_infos()")
        on_gpu = preferred(engine.location, outputs, [arg.name for arg in outputs])
        provider = engine.placement.device()
        device = HEAP if provider is None else PROVIDERS[provider].device_name
        return [of_place(device if arg.name in on_gpu else HEAP) for arg in outputs]

    def get_input_epdevices(self) -> list[None]:
        """Return None for each input: browsers do not list their devices."""
        return [None for _ in self.get_inputs()]

    def get_provider_graph_assignment_info(self) -> list[OrtEpAssignedSubgraph]:
        """Return the provider of each node of the model; `placement()` has more details, for all sessions.

        Raises:
            Fail: The session was made without the configuration entry "session.record_ep_graph_assignment_info".
        """
        from py_ort.runtime.native.assignment import assigned

        if self._engine.options.config_entries.get(RECORD_ASSIGNMENT) != "1":
            raise Fail(
                f"Session configuration entry '{RECORD_ASSIGNMENT}' must be set to \"1\" before the session is made; "
                "placement() tells of every session"
            )
        return assigned(self.placement(), self._engine.origin.source)

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """Return []: no provider of a browser reports results of tuning."""
        return []

    def set_tuning_results(self, results: Sequence[Mapping[str, Any]], *, error_on_invalid: bool = False) -> None:
        """Ignore results, which are of native providers.

        Raises:
            NotImplemented: `error_on_invalid` is set, and there are results.
        """
        if results and error_on_invalid:
            raise NotImplemented("no provider of a browser takes tuning results: they are of native ones")

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> NoReturn:
        """Refuse: no provider of a browser has options that can change.

        Raises:
            NotImplemented: Always.
        """
        raise NotImplemented("no provider of a browser has options that change while a session lives")
