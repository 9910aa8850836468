"""Where exceptions leave py_ort: what nobody foresaw becomes an error of py_ort's own, which says whose fault it is."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

from py_ort.exceptions import InternalError, NotImplemented, OutOfMemory, PyOrtError

_PACKAGE = Path(__file__).parent


@contextmanager
def typed_errors(doing: str, advice: str = "") -> Iterator[None]:
    """Let errors of py_ort pass, and make one of any other exception; also a decorator.

    Code of the user (callbacks, `__array__`) must not be called inside: its exceptions are no bugs of ours.

    Args:
        doing: What is done, in words that an error may start with.
        advice: What may help in spite of the bug.

    Raises:
        OutOfMemory: Python had no room.
        NotImplemented: The model is nested too deeply for Python's stack.
        InternalError: Anything else, with the exception as its cause; a bug of ours.
    """
    try:
        yield
    except (PyOrtError, CancelledError):
        raise
    except MemoryError as e:
        raise OutOfMemory(f"{doing}: Python has no room for it: {e}", **_node(e.__traceback__)) from e
    except RecursionError as e:
        where = _node(e.__traceback__)
        raise NotImplemented(f"{doing}: the model is nested deeper than Python's stack allows", **where) from e
    except Exception as e:
        place = _place(e.__traceback__)
        text = f"{doing}: {_in_words(e)}{f' ({place})' if place else ''}. This is a bug of py_ort: please report it"
        error = InternalError(f"{text}; {advice}" if advice else text, **_node(e.__traceback__))
        error.doing, error.place = doing, place
        raise error from e


def _in_words(error: Exception) -> str:
    if isinstance(error, AssertionError) and str(error):
        return str(error).partition("\n")[0]
    return f"{type(error).__name__}: {error}"


def _place(traceback: TracebackType | None) -> str:
    """The innermost line of our own on the way: "layout/rules.py:107"."""
    place = ""
    while traceback is not None:
        file = Path(traceback.tb_frame.f_code.co_filename)
        if file.is_relative_to(_PACKAGE) and file.name != "boundary.py":
            place = f"{file.relative_to(_PACKAGE).as_posix()}:{traceback.tb_lineno}"
        traceback = traceback.tb_next
    return place


def _node(traceback: TracebackType | None) -> dict[str, Any]:
    """The node that was worked on: the variable `node` of the innermost function that has one."""
    if "onnx_ir" not in sys.modules:
        return {}
    import onnx_ir as ir

    from py_ort.ops.builder import origins

    found = None
    while traceback is not None:
        node = traceback.tb_frame.f_locals.get("node")
        found = node if isinstance(node, ir.Node) else found
        traceback = traceback.tb_next
    if found is None:
        return {}
    return {"node": ", ".join(origins(found)), "op_type": found.op_type, "domain": found.domain}
