"""Whatever an argument of the API is: what leaves is an error of py_ort, or one that the docstring names."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import py_ort
from py_ort.exceptions import InternalError, InvalidArgument, PyOrtError


class Raises:
    """What cannot be looked at."""

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
#: What the other arguments are: such as fit.
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


@pytest.mark.parametrize("value", [v for v in VALUES if not isinstance(v, (str, bytes, bytearray))], ids=repr)
def test_what_is_no_model(value: Any) -> None:
    with pytest.raises(InvalidArgument, match="a model is"):
        py_ort.InferenceSession(value)


def test_errors_of_callbacks_pass() -> None:
    """And so do arguments that a function has not: Python's word for that is TypeError."""

    class Mine(Exception):
        pass

    class Angry(Raises):
        def __len__(self) -> int:
            raise Mine

    with pytest.raises(Mine):
        py_ort.SessionOptions().add_external_initializers(Angry(), [])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="unexpected keyword"):
        py_ort.OrtDevice.make("cpu", 0, colour="red")  # type: ignore[call-arg]
    with pytest.raises(InvalidArgument, match="size: str") as caught:
        py_ort.SessionOptions().add_free_dimension_override_by_name("n", "many")  # type: ignore[arg-type]
    assert isinstance(caught.value.__cause__, ValueError)
