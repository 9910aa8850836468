"""Options of sessions, named as in onnxruntime."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, NoReturn

from py_ort.boundary import public
from py_ort.compiler.load.files import DATA_FOLDER_ENTRY
from py_ort.compiler.saved.target import DATA_ENTRY, DISABLED_ENTRY, FORMAT_ENTRY, LEAST_ENTRY
from py_ort.exceptions import InvalidArgument, NotImplemented, WrongType
from py_ort.providers.options import of_provider
from py_ort.runtime.options.config_entries import ConfigEntries
from py_ort.runtime.options.option_types import check_option
from py_ort.runtime.values.ort_value import OrtValue
from py_ort.runtime.values.output_location import OutputLocation, check_location


class _Choice(enum.IntEnum):
    """Compares with numbers, as onnxruntime's do, and is shown by its name."""

    __str__ = enum.Enum.__str__


class GraphOptimizationLevel(_Choice):
    """How much Python's passes may change a model."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(_Choice):
    """The order of nodes. A page always takes them one after the other."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(_Choice):
    """How nodes are sorted. Without effect here."""

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
#: Options that a page has no use for, and the values that ask for what happens anyway.
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
#: Configuration entries that are heeded; any other is warned about.
_CONFIG_WITH_EFFECT = {
    *("session.disable_cpu_ep_fallback", "session.plan_cache", "session.require_providers"),
    *("session.specialize_shapes", "session.tiles", "session.wide_integers"),
    *(DATA_ENTRY, DATA_FOLDER_ENTRY, DISABLED_ENTRY, FORMAT_ENTRY, LEAST_ENTRY),
}
#: Entries with the values that say what happens anyway: a file itself tells of which format it is.
_CONFIG_AS_IT_IS: dict[str, tuple[str, ...]] = {
    "session.load_model_format": ("ONNX", "ORT"),
    "session.use_ort_model_bytes_directly": ("0",),
}


@public
class SessionOptions:
    """Options of an `InferenceSession`.

    Attributes:
        intra_op_num_threads: How many threads of the page share the work of a node on the CPU provider; 0: as many as
            the machine has cores, up to 8, for sessions without a GPU. Where the browser has no threads it is one:
            `stats()["created"]["wasm"]` says why, and a message if they were asked for.
        graph_optimization_level: Which passes run. Default: all.
        log_severity_level: The least severity of this session's messages, 0 (verbose) to 4 (fatal); -1: what
            `set_default_logger_severity` says.
        logid: A name put before them.
        enable_profiling: Keep what creation and runs spend their time on, until `InferenceSession.end_profiling`
            writes it to a file. Each GPU kernel then has a pass of its own, which costs some time.
        profile_file_prefix: Of that file's name.
        optimized_model_filepath: A file to write the optimized graph to, as ONNX: below the extended level, or if
            fusions are disabled ("optimization.disable_specified_optimizers"), with the source's opsets and operators,
            as tools expect it; else before layout and packing, fused operators in their parts. Native onnxruntime
            loads it unless it has operators that nobody else knows.
            The entry "session.optimized_model_external_initializers_file_name" names a file in its folder for
            initializers of at least "….optimized_model_external_initializers_min_size_in_bytes" (default: 1024).
        preferred_output_location: Where `run` leaves outputs: the name of a device (on one but the CPU, as
            `OrtValue`s), or names of devices by output.
        create_timeout: Seconds that reading the model, compiling it, and loading it into the page may take, each; None:
            no limit.
        run_timeout: Seconds that a run may take; None: no limit (a lost page or browser ends a run in any case).

    Options that have no effect in a browser are kept, and a warning says so when a session is made with them.

    Raises:
        AttributeError: An option is set that is not there.
        TypeError, ValueError: An option is set to what it does not take.
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
        """Set a configuration entry, e.g. "session.disable_cpu_ep_fallback" to "1"."""
        self._config.add(key, value)

    def get_session_config_entry(self, key: str) -> str:
        """Return a configuration entry.

        Raises:
            InvalidArgument: It was not set.
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
        """Fix the symbolic dimensions that have a denotation, e.g. "DATA_BATCH"."""
        self._free_dimensions["denotation"][denotation] = int(size)

    @property
    def free_dimensions_by_name(self) -> dict[str, int]:
        """What was fixed by name."""
        return dict(self._free_dimensions["name"])

    @property
    def free_dimensions_by_denotation(self) -> dict[str, int]:
        """What was fixed by denotation."""
        return dict(self._free_dimensions["denotation"])

    def add_input_shape(self, name: str, shape: Sequence[int]) -> None:
        """Fix the open dimensions of an input, by its name: of those that have no names of their own, too."""
        self._input_shapes[name] = [int(size) for size in shape]

    @property
    def input_shapes(self) -> dict[str, list[int]]:
        """What was fixed by the names of inputs."""
        return {name: list(shape) for name, shape in self._input_shapes.items()}

    # --- initializers

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Give an initializer of the model another value of its type and shape.

        Raises:
            InvalidArgument: It is not an `OrtValue`, or the name was given before.
        """
        _add(self._initializers, name, value)

    def add_external_initializers(self, names: Sequence[str], values: Sequence[OrtValue]) -> None:
        """Give initializers whose data lie outside the model: their files are then not needed.

        Raises:
            InvalidArgument: There are not as many values as names, or one is not an `OrtValue`.
        """
        if len(names) != len(values):
            raise InvalidArgument(f"there are {len(names)} names and {len(values)} values")
        for name, value in zip(names, values, strict=True):
            _add(self._external_initializers, name, value)

    def add_external_initializers_from_files_in_memory(
        self, names: Sequence[str], buffers: Sequence[bytes | bytearray | memoryview], lengths: Sequence[int]
    ) -> None:
        """Give the files in which the model's external data lie, from memory.

        Args:
            names: The files, as the model names them.
            buffers: The contents of each; they are read when a session is made, and not copied before.
            lengths: How many bytes of each buffer count.

        Raises:
            InvalidArgument: There are not as many of one as of the others, or a buffer is shorter than its length.
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
        """All initializers that were given."""
        return {**self._initializers, **self._external_initializers}

    # --- providers

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """Name a provider here, for sessions that are made without `providers`."""
        self._providers[name] = dict(options)

    def add_provider_for_devices(self, ep_devices: Sequence[Any], provider_options: Mapping[str, str]) -> None:
        """Name the provider of devices that `onnxruntime.get_ep_devices` listed.

        Raises:
            InvalidArgument: There are none, or they are not all of one provider.
        """
        names = {device.ep_name for device in ep_devices}
        if len(names) != 1:
            raise InvalidArgument(f"the devices are of one provider, and not of {sorted(names) or 'none'}")
        self.add_provider(names.pop(), provider_options)

    def has_providers(self) -> bool:
        """Return whether `add_provider` was called."""
        return bool(self._providers)

    def set_load_cancellation_flag(self, value: bool) -> None:
        """Have the making of sessions with these options end with `ModelLoadCanceled`; from any thread."""
        self._load_cancelled[0] = bool(value)

    # --- what does not run in a browser

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
        """There is none to clear."""

    # --- for sessions

    def _copy(self) -> SessionOptions:
        """What a session keeps: later changes are not for it."""
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
        """Return the options that were set and change nothing here."""
        options = [name for name, nothing in _WITHOUT_EFFECT.items() if getattr(self, name) not in nothing]
        entries = (key for key, value in self._config.items() if value not in _CONFIG_AS_IT_IS.get(key, ()))
        return options + [key for key in entries if key not in _CONFIG_WITH_EFFECT and not of_provider(key)]


def _add(values: dict[str, OrtValue], name: str, value: OrtValue) -> None:
    if not isinstance(value, OrtValue):
        raise WrongType(f"initializer {name!r} is to be an OrtValue, not {type(value).__name__}")
    if name in values:
        raise InvalidArgument(f"initializer {name!r} was given before")
    values[name] = value
