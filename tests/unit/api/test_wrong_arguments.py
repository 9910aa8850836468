"""For any argument of the API, errors that leave it are py_ort's, or those in the docstring."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import py_ort
from py_ort.exceptions import InternalError, InvalidArgument, PyOrtError, WrongType


class Raises:
    """An object that raises at each question."""

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise ZeroDivisionError

    def __len__(self) -> int:
        raise ZeroDivisionError

    def __iter__(self) -> Iterator[int]:
        raise ZeroDivisionError

    def __repr__(self) -> str:
        return "Raises()"


VALUES = [
    *(None, True, -1, 2**70, 1.5, float("nan"), float("inf"), "", "\0", "\ud800", b"\xff", [], [None], [[1], [1, 2]]),
    *(
        (),
        {},
        {1: 2},
        set(),
        object(),
        np.float32(1),
        np.int64(5),
        np.zeros((2, 3), np.float32),
        np.array("2020", "M8[D]"),
    ),
    *(
        np.zeros(3, [("a", "i4")]),
        np.ma.masked_array([1, 2], [0, 1]),
        np.array([object()]),
        Raises(),
        bytearray(b"ab"),
        int,
    ),
]
#: Values for the other arguments: such as fit.
FITTING = {
    **{
        "shape": (2,),
        "element_type": np.float32,
        "name": "x::Y",
        "key": "k",
        "value": "v",
        "size": 1,
        "device_type": "cpu",
    },
    **{"data": np.ones(2, np.float32), "numpy_obj": np.ones(2, np.float32), "ort_device_name": "cpu", "device_id": 0},
    **{
        "onnx_element_type": 1,
        "denotation": "d",
        "options": {},
        "names": [],
        "values": [],
        "buffers": [],
        "lengths": [],
    },
    **{"expression": "x", "src": [], "dst": [], "severity": 2, "verbosity": 0, "path": "p"},
}


def _callables() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Each function, constructor and method that needs no browser, by name; a method of a fresh object."""
    for name in ("BrowserOptions", "OrtDevice", "UserKernel", "copy_tensors", "register_kernel", "unregister_kernel"):
        yield name, lambda name=name: getattr(py_ort, name)  # type: ignore[misc]
    for owner, make in {
        "SessionOptions": py_ort.SessionOptions,
        "RunOptions": py_ort.RunOptions,
        "OrtDevice": lambda: py_ort.OrtDevice.make("cpu", 0),
        "OrtValue": lambda: py_ort.OrtValue.ortvalue_from_numpy(np.ones(2, np.float32)),
    }.items():
        for name in dir(getattr(py_ort, owner)):
            if not name.startswith("_") and callable(inspect.getattr_static(getattr(py_ort, owner), name)):
                yield f"{owner}.{name}", lambda make=make, name=name: getattr(make(), name)  # type: ignore[misc]


CALLABLES = dict(_callables())


@pytest.mark.parametrize("name", CALLABLES)
def test_errors_are_typed(name: str) -> None:
    function = CALLABLES[name]()
    parameters = list(inspect.signature(function).parameters.values())
    for wrong in parameters:
        for value in VALUES:
            positional, named = [], {}
            for p in parameters:
                if p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) or (p is not wrong and p.default is not p.empty):
                    continue
                given = value if p is wrong else FITTING.get(p.name)
                if p.kind == p.POSITIONAL_ONLY:
                    positional.append(given)
                else:
                    named[p.name] = given
            _call(CALLABLES[name](), positional, named)


def _call(function: Any, positional: list[Any], named: dict[str, Any]) -> None:
    try:
        function(*positional, **named)
    except InternalError as e:
        raise AssertionError(f"{function} {positional} {named}") from e
    except PyOrtError as e:
        assert str(e)
    except Exception as e:
        assert type(e).__name__ in (inspect.getdoc(function) or ""), f"{function} {positional} {named}: {e!r}"


def _shown(value: Any) -> str:
    """Return the same text in every process."""
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


@pytest.mark.parametrize("value", [v for v in VALUES if not isinstance(v, (str, bytes, bytearray))], ids=_shown)
def test_what_is_no_model(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="a model is"):
        py_ort.InferenceSession(value)


def test_errors_of_callbacks_pass() -> None:
    """An argument that a function does not have raises Python's TypeError, too."""

    class Mine(Exception):
        pass

    class Angry(Raises):
        def __len__(self) -> int:
            raise Mine

    with pytest.raises(Mine):
        py_ort.SessionOptions().add_external_initializers(Angry(), [])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword"):
        py_ort.OrtDevice.make("cpu", 0, color="red")  # type: ignore[call-arg]
    with pytest.raises(WrongType, match="size is a whole number, not str"):
        py_ort.SessionOptions().add_free_dimension_override_by_name("n", "many")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgument, match="shape: list") as caught:
        py_ort.SessionOptions().add_input_shape("n", ["many"])  # type: ignore[list-item]
    assert isinstance(caught.value.__cause__, ValueError)


#: Calls with an argument of a type that onnxruntime refuses: a class, its constructor, and the call.
CALLS = {
    "entry": ("SessionOptions", "add_session_config_entry", (1, 2)),
    "entry's value": ("SessionOptions", "add_session_config_entry", ("k", 2)),
    "asked for": ("SessionOptions", "get_session_config_entry", (1,)),
    "dimension's name": ("SessionOptions", "add_free_dimension_override_by_name", (1, 2)),
    "dimension": ("SessionOptions", "add_free_dimension_override_by_name", ("N", 1.5)),
    "initializer's name": ("SessionOptions", "add_initializer", ([1], None)),
    "names": ("SessionOptions", "add_external_initializers", (1, [])),
    "provider's name": ("SessionOptions", "add_provider", (1, {})),
    "run's entry": ("RunOptions", "add_run_config_entry", ("k", 2)),
    "adapter": ("RunOptions", "add_active_adapter", ("no adapter",)),
    "capsule": ("OrtValue", "from_dlpack", ("no capsule",)),
    "device": ("OrtDevice", "make", (1, 2)),
    "device's number": ("OrtDevice", "make", ("cpu", "0")),
    "severity": ("", "set_default_logger_severity", ("2",)),
    "seed": ("", "set_seed", (1.5,)),
    "sparse": ("OrtValue", "ort_value_from_sparse_tensor", (1,)),
}


@pytest.mark.parametrize("case", CALLS)
def test_wrong_types_are_what_onnxruntime_raises_for_them(case):
    native = pytest.importorskip("onnxruntime")
    owner, name, arguments = CALLS[case]

    def call(module):
        kind = getattr(module, owner) if owner else module
        made = kind() if owner.endswith("Options") else kind
        with pytest.raises((TypeError, AttributeError, RuntimeError)) as caught:
            getattr(made, name)(*arguments)
        return caught.type

    assert issubclass(call(py_ort), call(native))
