"""Options of one run, named as in onnxruntime."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from py_ort.boundary import public
from py_ort.exceptions import InvalidArgument
from py_ort.runtime.options.config_entries import ConfigEntries
from py_ort.runtime.options.option_types import check_option

if TYPE_CHECKING:
    from py_ort.runtime.values.adapters import LoraAdapter
    from py_ort.wire.json_fields import Timed

#: onnxruntime's name of the configuration entry.
GRAPH_ID = "gpu_graph_id"

_DEFAULTS: dict[str, Any] = {
    "log_severity_level": -1,
    "log_verbosity_level": 0,
    "logid": "",
    "only_execute_path_to_fetches": False,
    "terminate": False,
    "timeout": None,
}


@public
class RunOptions:
    """Options of one run.

    Attributes:
        log_severity_level: The least severity of these runs' messages; -1: the session's.
        log_verbosity_level: Without effect (there is one verbose level), and a warning says so.
        logid: A prefix of these messages.
        only_execute_path_to_fetches: Compute only the nodes for the wanted outputs. The first such run with a set of
            outputs creates a session for it in the page.
        timeout: Seconds for the run; None: the session's `run_timeout`.

    Raises:
        AttributeError: There is no such option.
        TypeError, ValueError: The option does not accept this value.
    """

    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool
    timeout: float | None

    def __init__(self) -> None:
        self._terminate = False
        self._profile: Timed | None = None  # detail of the page's account of times; for py_ort's own tools
        self._config = ConfigEntries("RunOptions")
        self._cancel: list[Callable[[], object]] = []
        self._adapters: list[LoraAdapter] = []
        for name, value in _DEFAULTS.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: Any) -> None:
        if not name.startswith("_"):
            value = check_option(self, name, value, _DEFAULTS, optional=("timeout",))
        object.__setattr__(self, name, value)

    @property
    def terminate(self) -> bool:
        """True to end the runs with these options, with `Cancelled`; it may be set in any thread."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = value
        if value:
            for cancel in list(self._cancel):
                cancel()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry of this run.

        "gpu_graph_id" is the number of a run's capture in a session with enableGraphCapture: "-1" for none; any other
        capture has the input shapes of its first run. Without an entry there is a capture for each set of shapes. Other
        entries have no effect, and a warning says so.
        """
        self._config.add(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """Return a configuration entry.

        Raises:
            InvalidArgument: The entry was not set.
        """
        return self._config.get(key)

    @property
    def config_entries(self) -> dict[str, str]:
        """All configuration entries."""
        return dict(self._config)

    @property
    def graph_id(self) -> int | None:
        """The entry "gpu_graph_id" as a number.

        Raises:
            InvalidArgument: The entry is not a number from -1.
        """
        if GRAPH_ID not in self._config:
            return None
        text = self._config[GRAPH_ID]
        if not text.removeprefix("-").isdecimal() or int(text) < -1:
            raise InvalidArgument(f"{GRAPH_ID} is a whole number from -1, not {text!r}")
        return int(text)

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Feed an adapter's parameters in the runs with these options.

        Parameters are initializers that are also inputs; see `InferenceSession.get_overridable_initializers`.

        Raises:
            TypeError: The argument is not a `LoraAdapter`.
        """
        from py_ort.runtime.values.adapters import LoraAdapter

        if not isinstance(adapter, LoraAdapter):
            raise TypeError(f"add_active_adapter takes a LoraAdapter, not {type(adapter).__name__}")
        self._adapters.append(adapter)

    def feeds(self, input_feed: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the feeds of a run with these options: the given feeds, and the parameters of adapters."""
        given = [adapter.parameters for adapter in self._adapters]
        return {name: value for each in (*given, input_feed) for name, value in each.items()} if given else input_feed

    def without_effect(self) -> list[str]:
        """Return the names of options and entries that were set and have no effect."""
        entries = (key for key in self._config if key != GRAPH_ID)
        return [*(["log_verbosity_level"] if self.log_verbosity_level else []), *entries]
