"""`InferenceSession._sess`: a session with the native class's methods, properties and argument orders."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from py_ort.providers import FIRST_DEVICE
from py_ort.runtime.options import RunOptions, SessionOptions
from py_ort.runtime.values.ort_device import OrtDevice
from py_ort.runtime.values.ort_value import OrtValue
from py_ort.runtime.values.ort_value_vector import OrtValueVector

#: Methods that are `InferenceSession`'s own.
_SAME = frozenset(
    {
        *("end_profiling", "get_provider_graph_assignment_info", "get_provider_options", "get_providers"),
        *("get_tuning_results", "release_captured_graph", "run", "run_with_ortvaluevector"),
        *("set_ep_dynamic_options", "set_tuning_results"),
    }
)
#: Properties with the results of these methods; onnxruntime's Python class has them, too, behind an underscore.
DESCRIPTIONS = {
    "inputs_meta": "get_inputs",
    "outputs_meta": "get_outputs",
    "overridable_initializers": "get_overridable_initializers",
    "model_meta": "get_modelmeta",
    "input_meminfos": "get_input_memory_infos",
    "output_meminfos": "get_output_memory_infos",
    "input_epdevices": "get_input_epdevices",
}
_PROPERTIES = {
    **DESCRIPTIONS,
    "session_options": "get_session_options",
    "get_profiling_start_time_ns": "get_profiling_start_time_ns",
}


class NativeSession:
    """A session in native form.

    Args:
        options: Options of the session.
        model: The path of a model, or its bytes.
        is_path: True if `model` is a path.
        read_config: True to use options in the model.

    Attributes:
        session: The `InferenceSession`, once it was initialized.
        session_class: Its class; a subclass of this one that can be initialized names it.
    """

    session_class: type[Any]

    def __init__(self, options: SessionOptions, model: Any, is_path: bool, read_config: bool = False) -> None:
        self._options, self._model, self._read_config = options, model, read_config
        self.session: Any

    @classmethod
    def of(cls, session: Any) -> NativeSession:
        """Return a session's native form."""
        made = cls.__new__(cls)
        made.session = session
        return made

    def initialize_session(
        self,
        providers: Sequence[str],
        provider_options: Sequence[Mapping[str, str]],
        disabled_optimizers: Collection[str] = (),
    ) -> None:
        """Create the session; see `InferenceSession`."""
        self.session = self.session_class(
            self._model,
            self._options,
            providers or None,
            provider_options or None,
            disabled_optimizers=disabled_optimizers or None,
            read_config_from_model=self._read_config,
        )

    def __getattr__(self, name: str) -> Any:
        if name in _SAME:
            return getattr(self.session, name)
        if name in _PROPERTIES:
            return getattr(self.session, _PROPERTIES[name])()
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *_SAME, *_PROPERTIES})

    def run_async(
        self,
        output_names: Sequence[str],
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], None],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """Start a run; the callback receives its result."""
        self.session.run_async(output_names, input_feed, callback, user_data, run_options)

    def run_with_ort_values(
        self, feeds: Mapping[str, OrtValue], output_names: Sequence[str], run_options: RunOptions | None = None
    ) -> OrtValueVector:
        """Run the model on `OrtValue`s."""
        return OrtValueVector(self.session.run_with_ort_values(output_names, feeds, run_options))

    def run_with_iobinding(self, binding: Any, run_options: RunOptions | None = None) -> None:
        """Run the model with the feeds and outputs of a `SessionIOBinding`."""
        self.session.run_with_iobinding(binding.binding, run_options)

    def create_ortvalue_from_shape_and_type(
        self, shape: Sequence[int], element_type: Any, device: OrtDevice
    ) -> OrtValue:
        """Return a value of zeros on a device of this session."""
        return self.session.create_ortvalue_from_shape_and_type(shape, element_type, device.name, device.device_id())

    create_ortvalue_from_shape_and_onnx_type = create_ortvalue_from_shape_and_type

    def is_webgpu_graph_capture_enabled(self) -> bool:
        """Return True if runs on WebGPU are captured."""
        return self.session._offering("graph capture").captures

    def webgpu_context_id(self) -> int:
        """Return the number of WebGPU's device in the session's page."""
        return self.session._offering("webgpu_context_id()").sessions.main().runtime.number_of(FIRST_DEVICE)
