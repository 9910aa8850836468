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
        log_severity_level: The least severity of the messages of these runs, or -1: the session's.
        log_verbosity_level: Without effect (there is one verbose level), and a warning says so.
        logid: A name put before them.
        only_execute_path_to_fetches: Compute what the wanted outputs need, and nothing else. The first such run of a
            set of outputs makes a session for it in the page.
        timeout: Seconds that this run may take; None: what the session's options say.

    Raises:
        AttributeError: An option is set that is not there.
        TypeError, ValueError: An option is set to what it does not take.
    """

    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool
    timeout: float | None

    def __init__(self) -> None:
        self._terminate = False
        self._profile: Timed | None = None  # have the page tell of this run; for py_ort's own tools
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
        """Set it, from any thread, to end the runs that were given these options with `Cancelled`."""
        return self._terminate

    @terminate.setter
    def terminate(self, value: bool) -> None:
        self._terminate = value
        if value:
            for cancel in list(self._cancel):
                cancel()

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Set a configuration entry of this run.

        "gpu_graph_id" says which capture a run of a session with enableGraphCapture is of: "-1" is none, any other one
        has the input shapes of its first run. Without it there is one for each set of shapes. Others have no effect
        here, and a warning says so.
        """
        self._config.add(key, value)

    def get_run_config_entry(self, key: str) -> str:
        """Return a configuration entry.

        Raises:
            InvalidArgument: It was not set.
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
            InvalidArgument: It is none.
        """
        if GRAPH_ID not in self._config:
            return None
        text = self._config[GRAPH_ID]
        if not text.removeprefix("-").isdecimal() or int(text) < -1:
            raise InvalidArgument(f"{GRAPH_ID} is a whole number from -1, not {text!r}")
        return int(text)

    def add_active_adapter(self, adapter: LoraAdapter) -> None:
        """Have the runs with these options feed the adapter's parameters.

        They are initializers of the model that are inputs, too; see `InferenceSession.get_overridable_initializers`.

        Raises:
            TypeError: It is not a `LoraAdapter`.
        """
        from py_ort.runtime.values.adapters import LoraAdapter

        if not isinstance(adapter, LoraAdapter):
            raise TypeError(f"add_active_adapter takes a LoraAdapter, not {type(adapter).__name__}")
        self._adapters.append(adapter)

    def feeds(self, input_feed: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return what a run with these options is fed: what is given, and the parameters of its adapters."""
        given = [adapter.parameters for adapter in self._adapters]
        return {name: value for each in (*given, input_feed) for name, value in each.items()} if given else input_feed

    def without_effect(self) -> list[str]:
        """Return what was set and changes nothing here."""
        entries = (key for key in self._config if key != GRAPH_ID)
        return [*(["log_verbosity_level"] if self.log_verbosity_level else []), *entries]
