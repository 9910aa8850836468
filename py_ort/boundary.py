"""Where exceptions leave py_ort: what nobody foresaw becomes an error of py_ort's own, which says whose fault it is.

An `InternalError` is a bug of ours, with its cause, the pass, the node and the line. Whatever a model or a feed can
bring about has an error of its own nearer to where it is found: fuzz tests fail on an `InternalError`.
"""

from __future__ import annotations

import functools
import inspect
import operator
import sys
from collections.abc import Callable, Mapping
from concurrent.futures import CancelledError
from contextlib import ContextDecorator
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, TypeVar, cast

from py_ort.exceptions import InternalError, InvalidArgument, NotImplemented, OutOfMemory, PyOrtError, WrongType
from py_ort.folders import PACKAGE
from py_ort.signal_handlers import from_handler

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T")
Where = Callable[[TracebackType | None], Mapping[str, Any]]


class typed_errors(ContextDecorator):
    """Let errors of py_ort pass, and make one of any other exception; also a decorator.

    Exceptions of signal handlers pass as well. Other code of the user (callbacks, `__array__`) must not be called
    inside: its exceptions are no bugs of ours.

    Args:
        doing: The operation, in words that begin the error's message.
        advice: A workaround that may help in spite of the bug.
        where: Finds the node in question in a traceback; returns fields of the error.
        let: Other exceptions that pass, as they say what is wrong outside of us.

    Raises:
        OutOfMemory: Python had no room.
        NotImplemented: The model is nested too deeply for Python's stack.
        InternalError: Anything else, with the exception as its cause; a bug of ours.
    """

    def __init__(
        self,
        doing: str,
        advice: str = "",
        where: Where = lambda traceback: {},
        let: tuple[type[Exception], ...] = (),
    ) -> None:
        self._doing, self._advice, self._where = doing, advice, where
        self._passing = (PyOrtError, CancelledError, *let)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, e: BaseException | None, traceback: TracebackType | None) -> Literal[False]:
        if not isinstance(e, Exception) or isinstance(e, self._passing) or from_handler(e):
            return False
        doing, found = self._doing, self._where(traceback)
        if isinstance(e, MemoryError):
            raise OutOfMemory(f"{doing}: out of memory in Python: {e}", **found) from e
        if isinstance(e, RecursionError):
            raise NotImplemented(f"{doing}: the model is nested deeper than Python's stack allows", **found) from e
        place = _place(traceback)
        text = f"{doing}: {_in_words(e)}{f' ({place})' if place else ''}. This is a bug of py_ort: please report it"
        error = InternalError(f"{text}; {self._advice}" if self._advice else text, **found)
        error.doing, error.place = doing, place
        raise error from e


def _in_words(error: Exception) -> str:
    if isinstance(error, AssertionError) and str(error):
        return str(error).partition("\n")[0]
    return f"{type(error).__name__}: {error}"


def _place(traceback: TracebackType | None) -> str:
    """The innermost line of our own on the way: "compiler/layout/rules.py:107"."""
    place = ""
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if file.is_relative_to(PACKAGE) and file.name != "boundary.py":
            place = f"{file.relative_to(PACKAGE).as_posix()}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def public_function(function: F) -> F:
    """Make `InvalidArgument` of what Python raises where an argument is not what a function of the API takes.

    What its docstring names passes, and so do exceptions of signal handlers and what the call itself raises:
    arguments that its signature has not.
    """
    return _typed(function, function.__doc__ or "")


def public(cls: type[T]) -> type[T]:
    """Do this for the public methods of a class, its static ones and its constructor."""
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        kind = type(member) if isinstance(member, (staticmethod, classmethod)) else None
        function = member.__func__ if kind else member
        if inspect.isfunction(function):
            typed = _typed(function, (cls if name == "__init__" else function).__doc__ or "")
            setattr(cls, name, kind(typed) if kind else typed)
    return cls


def _typed(function: F, names: str) -> F:
    plain = _plain_parameters(function)

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        for place, name, fits in plain:
            if place < len(args) or name in kwargs:
                _check_plain(function, name, args[place] if place < len(args) else kwargs[name], fits)
        try:
            return function(*args, **kwargs)
        except Exception as e:
            if _may_leave(e, names):
                raise
            raise _wrong_argument(e, function, args, kwargs) from e

    @functools.wraps(function)
    async def call_async(*args: Any, **kwargs: Any) -> Any:
        try:
            return await function(*args, **kwargs)
        except Exception as e:
            if _may_leave(e, names):
                raise
            raise _wrong_argument(e, function, args, kwargs) from e

    return cast("F", call_async if inspect.iscoroutinefunction(function) else call)


def _is_whole(value: Any) -> bool:
    try:
        operator.index(value)
    except TypeError:
        return False
    return True


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


#: Types of parameters that Python would take anything for, by their annotation.
_PLAIN: dict[str, Callable[[Any], bool]] = {"str": _is_text, "int": _is_whole}


def _plain_parameters(function: Callable[..., Any]) -> list[tuple[int, str, Callable[[Any], bool]]]:
    """Places and names of the parameters that are to be a plain text or number."""
    parameters = inspect.signature(function).parameters.values()
    found = ((place, p.name, _PLAIN.get(str(p.annotation))) for place, p in enumerate(parameters))
    return [(place, name, fits) for place, name, fits in found if fits is not None]


def _check_plain(function: Callable[..., Any], name: str, value: Any, fits: Callable[[Any], bool]) -> None:
    if not fits(value):
        wanted = "a string" if fits is _is_text else "a whole number"
        raise WrongType(f"{function.__qualname__}: {name} is {wanted}, not {type(value).__name__}")


#: Whose exceptions tell of wrong arguments. Those of the user's own callbacks are mostly others, and pass.
_LIBRARIES = {*sys.stdlib_module_names, "numpy"}


def _may_leave(error: Exception, names: str) -> bool:
    kind = type(error)
    called = error.__traceback__ is not None and error.__traceback__.tb_next is not None
    foreign = kind.__module__.partition(".")[0] not in _LIBRARIES
    told = any(cls.__name__ in names for cls in kind.__mro__[: kind.__mro__.index(Exception)])
    return not called or foreign or isinstance(error, CancelledError) or told or from_handler(error)


def _wrong_argument(error: Exception, function: Callable[..., Any], args: Any, kwargs: Any) -> InvalidArgument:
    given = inspect.signature(function).bind_partial(*args, **kwargs).arguments
    types = ", ".join(f"{name}: {type(value).__name__}" for name, value in given.items() if name not in ("self", "cls"))
    what = f"{function.__qualname__} cannot use an argument ({types}): {_in_words(error)}"
    kind = WrongType if isinstance(error, (TypeError, AttributeError)) else InvalidArgument
    return kind(f"{what}; its docstring says what it takes")
