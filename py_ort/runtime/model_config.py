"""Session options in a model: JSON in its metadata, in the format of onnxruntime's servers."""

from __future__ import annotations

import json
from typing import Any

from py_ort.exceptions import InvalidArgument, PyOrtError
from py_ort.runtime.options import SessionOptions

#: Variable: with "1" sessions read such options, unless the keyword `read_config_from_model` decides otherwise.
VARIABLE = "ORT_LOAD_CONFIG_FROM_MODEL"
_KEY = "ort_config"
_SWITCH = range(2)
#: Options that a model may set, and their allowed numbers.
_ALLOWED: dict[str, range | tuple[int, ...]] = {
    "enable_profiling": _SWITCH,
    "execution_mode": _SWITCH,
    "graph_optimization_level": (0, 1, 2, 3, 99),
    "inter_op_num_threads": range(257),
    "intra_op_num_threads": range(257),
}


def options_in_model(source: Any) -> SessionOptions | None:
    """Return the options in a model, with defaults for all others; None if the model has no options.

    Args:
        source: The model's path or bytes.

    Raises:
        InvalidArgument: The options cannot be read, or a number is not allowed.
    """
    text = _metadata(source).get(_KEY)
    if text is None:
        return None
    try:
        config = json.loads(text)
    except ValueError as e:
        raise InvalidArgument(f"the model's metadata {_KEY!r} are no JSON: {e}") from None
    wanted = config.get("session_options") if isinstance(config, dict) else None
    if not isinstance(wanted, dict):
        return None
    options = SessionOptions()
    for name, value in wanted.items():
        if name not in _ALLOWED:
            continue
        if type(value) is not int or value not in _ALLOWED[name]:
            raise InvalidArgument(f"the model's metadata {_KEY!r} ask for {name} = {value!r}, which it does not take")
        setattr(options, name, bool(value) if name == "enable_profiling" else value)
    return options


def _metadata(source: Any) -> dict[str, str]:
    from py_ort.compiler.load import read_proto

    try:
        model = read_proto(source)
    except PyOrtError:
        return {}  # loading the model raises the error
    return {entry.key: entry.value for entry in model.metadata_props}
