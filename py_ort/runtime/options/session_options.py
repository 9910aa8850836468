"""Options of sessions, named as in onnxruntime."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NoReturn

from py_ort.boundary import public
from py_ort.compiler.load.model_files import DATA_FOLDER_ENTRY
from py_ort.compiler.saved.target import DATA_ENTRY, DISABLED_ENTRY, FORMAT_ENTRY, LEAST_ENTRY
from py_ort.exceptions import InvalidArgument, NotImplemented, WrongType
from py_ort.providers.provider_options import of_provider
from py_ort.runtime.options.config_entries import ConfigEntries
from py_ort.runtime.options.option_types import check_option
from py_ort.runtime.values.ort_value import OrtValue
from py_ort.runtime.values.output_location import OutputLocation, check_location


class _Choice(enum.IntEnum):
    """Base of choices: they compare with numbers, like onnxruntime's, and print as their names."""

    __str__ = enum.Enum.__str__


class GraphOptimizationLevel(_Choice):
    """Levels of Python's passes."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Choice):
    """Orders of nodes. A page always runs nodes one after the other."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Choice):
    """Priorities in the order of nodes. Without effect here."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


_DEFAULTS: dict[str, Any] = {
    "create_timeout": 600.0,
    "enable_cpu_mem_arena": True,
    "enable_mem_pattern": True,
    "enable_mem_reuse": True,
    "enable_profiling": False,
    "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
    "execution_order": ExecutionOrder.DEFAULT,
    "graph_optimization_level": GraphOptimizationLevel.ORT_ENABLE_ALL,
    "inter_op_num_threads": 0,
    "intra_op_num_threads": 0,
    "log_severity_level": -1,
    "log_verbosity_level": 0,
    "logid": "",
    "optimized_model_filepath": "",
    "preferred_output_location": "cpu",
    "profile_file_prefix": "onnxruntime_profile_",
    "run_timeout": 600.0,
    "use_deterministic_compute": False,
    "use_per_session_threads": True,
}
_MOST_THREADS = 256
#: Options without effect, and the values that match the actual behavior.
_WITHOUT_EFFECT: dict[str, tuple[Any, ...]] = {
    "enable_cpu_mem_arena": (True,),
    "enable_mem_pattern": (True,),
    "enable_mem_reuse": (True,),
    "execution_mode": (ExecutionMode.ORT_SEQUENTIAL,),
    "execution_order": (ExecutionOrder.DEFAULT,),
    "inter_op_num_threads": (0, 1),
    "log_verbosity_level": (0,),
    "use_deterministic_compute": (False,),
    "use_per_session_threads": (True,),
}
#: Configuration entries with an effect; others cause a warning.
_CONFIG_WITH_EFFECT = {
    *("session.disable_cpu_ep_fallback", "session.plan_cache", "session.require_providers"),
    *("session.specialize_shapes", "session.tiles", "session.wide_integers"),
    *(DATA_ENTRY, DATA_FOLDER_ENTRY, DISABLED_ENTRY, FORMAT_ENTRY, LEAST_ENTRY),
}
#: Entries with the values that match the actual behavior: the format of a model is read from its file.
_CONFIG_AS_IT_IS: dict[str, tuple[str, ...]] = {
    "session.load_model_format": ("ONNX", "ORT"),
    "session.use_ort_model_bytes_directly": ("0",),
}


@public
class SessionOptions:
    """Options of an `InferenceSession`.

    Attributes:
        intra_op_num_threads: Threads of the page that share the work of a node on the CPU provider; 0: one for each
            core of the machine, up to 8, in sessions without a GPU. A browser without threads uses one:
            `stats()["created"]["wasm"]` has the reason, and a message if threads were requested.
        graph_optimization_level: The passes that run. Default: all.
        log_severity_level: The least severity of this session's messages, 0 (verbose) to 4 (fatal); -1: the severity of
            `set_default_logger_severity`.
        logid: A prefix of these messages.
        enable_profiling: Record the times of creation and runs, until `InferenceSession.end_profiling` writes them to a
            file. Each GPU kernel then has a pass of its own, which costs some time.
        profile_file_prefix: Prefix of that file's name.
        optimized_model_filepath: A file for the optimized graph, as ONNX. Below the extended level, or if fusions are
            disabled ("optimization.disable_specified_optimizers"), it has the source's opsets and operators, as tools
            expect; otherwise it is the graph before layout and packing, with fused operators in their parts. Native
            onnxruntime loads the file unless it has py_ort's own operators.
            The entry "session.optimized_model_external_initializers_file_name" names a file in the same folder for
            initializers of at least "….optimized_model_external_initializers_min_size_in_bytes" (default: 1024).
        preferred_output_location: Device of the outputs of `run`: a name (outputs on devices other than the CPU are
            `OrtValue`s), or names by output.
        create_timeout: Seconds for each of reading the model, compiling it, and loading it into the page; None: no
            limit.
        run_timeout: Seconds for a run; None: no limit (a lost page or browser ends a run in any case).

    Options without effect in a browser are kept, and a warning says so when a session is made with them.

    Raises:
        AttributeError: There is no such option.
        TypeError, ValueError: The option does not accept this value.
    """

    create_timeout: float | None
    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    optimized_model_filepath: str
    preferred_output_location: OutputLocation
    profile_file_prefix: str
    run_timeout: float | None
    use_deterministic_compute: bool
    use_per_session_threads: bool

    def __init__(self) -> None:
        self._config = ConfigEntries("SessionOptions")
        self._free_dimensions: dict[str, dict[str, int]] = {"name": {}, "denotation": {}}
        self._input_shapes: dict[str, list[int]] = {}
        self._initializers: dict[str, OrtValue] = {}
        self._external_initializers: dict[str, OrtValue] = {}
        self._files: dict[str, memoryview] = {}
        self._providers: dict[str, Mapping[str, str]] = {}
        self._refused: dict[str, tuple[str, str]] = {}  # see `CompileOptions.refused`
        self._load_cancelled = [False]  # shared with the copies that sessions make
        for name, value in _DEFAULTS.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if name == "preferred_output_location":
            value = check_location(value)
        elif not name.startswith("_"):
            value = check_option(self, name, value, _DEFAULTS, optional=("create_timeout", "run_timeout"))
        if name == "intra_op_num_threads" and not 0 <= value <= _MOST_THREADS:
            raise InvalidArgument(
                f"intra_op_num_threads is a number from 0 (which is automatic) to {_MOST_THREADS}, not {value}"
            )
        object.__setattr__(self, name, value)

    # --- configuration entries

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry, for example "session.disable_cpu_ep_fallback" to "1"."""
        self._config.add(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """Return a configuration entry.

        Raises:
            InvalidArgument: The entry was not set.
        """
        return self._config.get(key)

    @property
    def config_entries(self) -> dict[str, str]:
        """All configuration entries."""
        return dict(self._config)

    # --- free dimensions

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix a symbolic dimension of the model's inputs, by its name."""
        self._free_dimensions["name"][name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix the symbolic dimensions with a denotation, for example "DATA_BATCH"."""
        self._free_dimensions["denotation"][denotation] = int(size)

    @property
    def free_dimensions_by_name(self) -> dict[str, int]:
        """Sizes of fixed dimensions, by the dimension's name."""
        return dict(self._free_dimensions["name"])

    @property
    def free_dimensions_by_denotation(self) -> dict[str, int]:
        """Sizes of fixed dimensions, by denotation."""
        return dict(self._free_dimensions["denotation"])

    def add_input_shape(self, name: str, shape: Sequence[int]) -> None:
        """Fix the open dimensions of an input, by the input's name; also dimensions without names."""
        self._input_shapes[name] = [int(size) for size in shape]

    @property
    def input_shapes(self) -> dict[str, list[int]]:
        """Fixed shapes, by the input's name."""
        return {name: list(shape) for name, shape in self._input_shapes.items()}

    # --- initializers

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Replace the value of an initializer by another one of the same type and shape.

        Raises:
            InvalidArgument: The value is not an `OrtValue`, or the name was given before.
        """
        _add(self._initializers, name, value)

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Set the values of initializers whose data are outside the model; their files are then not needed.

        Raises:
            InvalidArgument: The numbers of names and values differ, or a value is not an `OrtValue`.
        """
        if len(names) != len(values):
            raise InvalidArgument(f"there are {len(names)} names and {len(values)} values")
        for name, value in zip(names, values, strict=True):
            _add(self._external_initializers, name, value)

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[bytes | bytearray | memoryview], lengths: Sequence[int]
    ) -> None:
        """Set the contents of the files of external data.

        Args:
            names: The model's names of the files.
            buffers: Contents of the files; a session reads them when it is made, without an earlier copy.
            lengths: Number of used bytes of each buffer.

        Raises:
            InvalidArgument: The numbers of arguments differ, or a buffer is shorter than its length.
        """
        if not len(names) == len(buffers) == len(lengths):
            raise InvalidArgument(f"there are {len(names)} names, {len(buffers)} buffers and {len(lengths)} lengths")
        for name, buffer, length in zip(names, buffers, lengths, strict=True):
            data = memoryview(buffer).cast("B")
            if not 0 <= length <= data.nbytes:
                raise InvalidArgument(f"{name}: a length of {length} and a buffer of {data.nbytes} bytes")
            self._files[name] = data[:length]

    @property
    def initializers(self) -> dict[str, OrtValue]:
        """All replaced initializers, by name."""
        return {**self._initializers, **self._external_initializers}

    # --- providers

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Add a provider for sessions that are made without `providers`."""
        self._providers[name] = dict(options)

    def add_provider_for_devices(self, ep_devices: Sequence[Any], provider_options: Mapping[str, str]) -> None:
        """Add the provider of devices from `onnxruntime.get_ep_devices`.

        Raises:
            InvalidArgument: There are no devices, or they belong to several providers.
        """
        names = {device.ep_name for device in ep_devices}
        if len(names) != 1:
            raise InvalidArgument(f"the devices are of one provider, and not of {sorted(names) or 'none'}")
        self.add_provider(names.pop(), provider_options)

    def has_providers(self) -> bool:
        """Return True if `add_provider` was called."""
        return bool(self._providers)

    def set_load_cancellation_flag(self, value: bool) -> None:
        """Set to True, in any thread, to end the creation of sessions with these options by `ModelLoadCanceled`."""
        self._load_cancelled[0] = bool(value)

    # --- features that cannot run in a browser

    def register_custom_ops_library(self, path: str) -> NoReturn:
        """Refuse: native libraries do not run in a browser."""
        raise NotImplemented(
            f"{path}: native libraries of custom operators do not run in a browser; py_ort.register_kernel takes "
            "operators as a formula or as WGSL"
        )

    def set_provider_selection_policy(self, policy: Any) -> NoReturn:
        """Refuse: a page cannot list devices."""
        raise NotImplemented("a browser does not list its devices: name the providers, best first")

    def set_provider_selection_policy_delegate(self, delegate: Any) -> NoReturn:
        """Refuse: a page cannot list devices."""
        raise NotImplemented("a browser does not list its devices: name the providers, best first")

    def set_ep_context_data_read_func(self, read_func: Any, max_data_size: int) -> NoReturn:
        """Refuse: there are no compiled contexts of providers here."""
        raise NotImplemented("no provider of a browser has context data")

    def clear_ep_context_data_read_func(self) -> None:
        """Do nothing: there is no such function."""

    # --- for sessions

    def _copy(self) -> SessionOptions:
        """Return a copy for a session, independent of later changes."""
        made = copy(self)
        for name in (
            "_config",
            "_input_shapes",
            "_initializers",
            "_external_initializers",
            "_files",
            "_providers",
            "_refused",
        ):
            object.__setattr__(made, name, copy(getattr(self, name)))
        made._free_dimensions = {kind: dict(found) for kind, found in self._free_dimensions.items()}
        return made

    def changed_without_effect(self) -> list[str]:
        """Return the names of options and entries that were set and have no effect."""
        options = [name for name, nothing in _WITHOUT_EFFECT.items() if getattr(self, name) not in nothing]
        entries = (key for key, value in self._config.items() if value not in _CONFIG_AS_IT_IS.get(key, ()))
        return options + [key for key in entries if key not in _CONFIG_WITH_EFFECT and not of_provider(key)]


def _add(values: dict[str, OrtValue], name: str, value: OrtValue) -> None:
    if not isinstance(value, OrtValue):
        raise WrongType(f"initializer {name!r} is to be an OrtValue, not {type(value).__name__}")
    if name in values:
        raise InvalidArgument(f"initializer {name!r} was given before")
    values[name] = value
