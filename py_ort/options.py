"""Options of sessions and of runs, named as in onnxruntime."""

from __future__ import annotations

import enum
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from py_ort.exceptions import InvalidArgument, NotImplemented

_log = logging.getLogger("py_ort")

#: onnxruntime's severities (0 verbose … 4 fatal) as levels of Python's logging.
LEVELS = (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL)


class GraphOptimizationLevel(enum.IntEnum):
    """How much Python's passes may change a model."""

    ORT_DISABLE_ALL = 0
    ORT_ENABLE_BASIC = 1
    ORT_ENABLE_EXTENDED = 2
    ORT_ENABLE_LAYOUT = 3
    ORT_ENABLE_ALL = 99


class ExecutionMode(enum.IntEnum):
    """The order of nodes. A page always takes them one after the other."""

    ORT_SEQUENTIAL = 0
    ORT_PARALLEL = 1


class ExecutionOrder(enum.IntEnum):
    """How nodes are sorted. Without effect here."""

    DEFAULT = 0
    PRIORITY_BASED = 1
    MEMORY_EFFICIENT = 2


#: Options of onnxruntime that a page has no use for, and the values that ask for nothing.
_WITHOUT_EFFECT: dict[str, Any] = {
    "enable_cpu_mem_arena": True,
    "enable_mem_pattern": True,
    "enable_mem_reuse": True,
    "enable_profiling": False,
    "execution_mode": ExecutionMode.ORT_SEQUENTIAL,
    "execution_order": ExecutionOrder.DEFAULT,
    "inter_op_num_threads": 0,
    "intra_op_num_threads": 0,
    "log_verbosity_level": 0,
    "optimized_model_filepath": "",
    "profile_file_prefix": "onnxruntime_profile_",
    "use_deterministic_compute": False,
    "use_per_session_threads": True,
}


class SessionOptions:
    """Options of an `InferenceSession`.

    Attributes:
        graph_optimization_level: Which passes run. Default: all.
        log_severity_level: The least severity of this session's messages, 0 (verbose) to 4 (fatal); -1: what
            `set_default_logger_severity` says.
        logid: A name for them.
        create_timeout: Seconds that the page may take to load a model and compile its kernels; None: no limit.
        run_timeout: Seconds that a run may take; None: no limit (a lost page or browser ends a run in any case).

    Options that have no effect in a browser are kept, and a warning says so when a session is made with them.
    """

    graph_optimization_level: GraphOptimizationLevel
    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_verbosity_level: int
    optimized_model_filepath: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    use_per_session_threads: bool

    def __init__(self) -> None:
        self._config: dict[str, str] = {}
        self.free_dimensions_by_name: dict[str, int] = {}
        self.free_dimensions_by_denotation: dict[str, int] = {}
        self.initializers: dict[str, Any] = {}
        self.graph_optimization_level = GraphOptimizationLevel.ORT_ENABLE_ALL
        self.log_severity_level = -1
        self.logid = ""
        self.create_timeout: float | None = 600.0
        self.run_timeout: float | None = 600.0
        for name, value in _WITHOUT_EFFECT.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_") and name not in _KNOWN:  # a mistyped option must not be swallowed
            raise AttributeError(f"SessionOptions has no option {name!r}")
        object.__setattr__(self, name, value)

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry, e.g. "session.disable_cpu_ep_fallback" to "1"."""
        self._config[str(key)] = str(value)

    def get_session_config_entry(self, key: str) -> str:
        """Return a configuration entry.

        Raises:
            InvalidArgument: It was not set.
        """
        if key not in self._config:
            raise InvalidArgument(f"SessionOptions has no configuration entry {key!r}")
        return self._config[key]

    @property
    def config_entries(self) -> Mapping[str, str]:
        """All configuration entries."""
        return dict(self._config)

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Fix a symbolic dimension of the model's inputs, by its name."""
        self.free_dimensions_by_name[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Fix the symbolic dimensions that have a denotation, e.g. "DATA_BATCH"."""
        self.free_dimensions_by_denotation[denotation] = int(size)

    def add_initializer(self, name: str, value: Any) -> None:
        """Replace an initializer of the model by an `OrtValue`."""
        self.initializers[name] = value

    def add_external_initializers(self, names: Sequence[str], values: Sequence[Any]) -> None:
        """Give initializers whose data lie outside the model as `OrtValue`s."""
        self.initializers.update(zip(names, values, strict=True))

    def register_custom_ops_library(self, path: str) -> None:
        """Refuse: native libraries do not run in a browser."""
        raise NotImplemented(f"{path}: native libraries of custom operators do not run in a browser")

    def changed_without_effect(self) -> list[str]:
        """Return the options that were set and change nothing here."""
        return [name for name, value in _WITHOUT_EFFECT.items() if getattr(self, name) != value]


_KNOWN = {
    *_WITHOUT_EFFECT,
    "create_timeout",
    "free_dimensions_by_denotation",
    "free_dimensions_by_name",
    "graph_optimization_level",
    "initializers",
    "log_severity_level",
    "logid",
    "run_timeout",
}


class RunOptions:
    """Options of one run.

    Attributes:
        log_severity_level: The least severity of messages, or -1.
        logid: A name for them.
        only_execute_path_to_fetches: Accepted; a page computes what its outputs need.
        timeout: Seconds that this run may take; None: what the session's options say.
    """

    def __init__(self) -> None:
        self.log_severity_level = -1
        self.log_verbosity_level = 0
        self.logid = ""
        self.only_execute_path_to_fetches = False
        self.training_mode = False
        self.timeout: float | None = None
        self._terminate = False
        self._config: dict[str, str] = {}
        self._cancel: list[Callable[[], object]] = []

    @property
    def terminate(self) -> bool:
        """Set it, from any thread, to end the runs that were given these options with `Cancelled`."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = bool(value)
        if value:
            for cancel in list(self._cancel):
                cancel()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry of this run."""
        self._config[str(key)] = str(value)

    def get_run_config_entry(self, key: str) -> str:
        """Return a configuration entry.

        Raises:
            InvalidArgument: It was not set.
        """
        if key not in self._config:
            raise InvalidArgument(f"RunOptions has no configuration entry {key!r}")
        return self._config[key]

    @property
    def config_entries(self) -> Mapping[str, str]:
        """All configuration entries."""
        return dict(self._config)
