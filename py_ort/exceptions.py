"""Every error that py_ort raises: one tree, with onnxruntime's names where it has one.

    PyOrtError
    ├── Fail, InvalidArgument, NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented, RuntimeException, …
    │   └── InternalError: of Fail, a bug of py_ort's own
    └── BrowserError
        ├── BrowserNotFound, BrowserCrashed, PageCrashed, CoreCrashed, ConnectionLost, Timeout
        ├── NoAdapter, DeviceLost, ShaderError, NoSuchSession, Cancelled
        └── ProtocolError; WorkerEnded: of DeviceLost, sessions go on, what they had on the GPU does not

An error that came from the page or the core keeps its own message, and its stack in `stack`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "BrowserCrashed",
    "BrowserError",
    "BrowserNotFound",
    "Cancelled",
    "ConnectionLost",
    "CoreCrashed",
    "DeviceLost",
    "DeviceReset",
    "EPFail",
    "EngineError",
    "Fail",
    "InternalError",
    "InvalidArgument",
    "InvalidGraph",
    "InvalidProtobuf",
    "MissingKernel",
    "ModelLoadCanceled",
    "ModelLoaded",
    "ModelRequiresCompilation",
    "NoAdapter",
    "NoModel",
    "NoSuchFile",
    "NoSuchSession",
    "NotFound",
    "NotImplemented",
    "OutOfMemory",
    "PageCrashed",
    "ProtocolError",
    "PyOrtError",
    "RuntimeException",
    "ShaderError",
    "Timeout",
    "WorkerEnded",
    "WrongType",
    "from_code",
]


class PyOrtError(Exception):
    """The root of all errors of py_ort.

    Attributes:
        message: What went wrong, and what to do next.
        code: The `py_ort.schema.gen.ErrorCode` this class stands for.
        node: Name of the node (of the model) that failed, or "".
        op_type: Its operator, or "".
        domain: The operator's domain; "" is ai.onnx.
        provider: The execution provider it ran on or was meant for, or "".
        shapes: Shapes of its inputs by name, as far as they are known.
        stack: The page's or the core's stack, or "".
    """

    code: int = 1

    def __init__(
        self,
        message: str = "",
        *,
        node: str = "",
        op_type: str = "",
        domain: str = "",
        provider: str = "",
        shapes: Mapping[str, Sequence[Any]] | None = None,
        stack: str = "",
    ) -> None:
        super().__init__(message)
        self.message = message
        # Of a damaged model they may be bytes.
        self.node, self.op_type, self.domain = map(_text, (node, op_type, domain))
        self.provider = provider
        self.shapes: dict[str, Sequence[Any]] = dict(shapes or {})
        self.stack = stack

    def __str__(self) -> str:
        where = self._where()
        return f"{self.message}\n  {where}" if where else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Errors cross process borders (pytest-xdist, multiprocessing) with their fields."""
        return _restore, (type(self), self.message, dict(self.__dict__))

    def again(self) -> PyOrtError:
        """Return a fresh exception for another one who is to be told: tracebacks must not be shared between threads."""
        return _restore(type(self), self.message, self.__dict__)

    def _where(self) -> str:
        parts = []
        if self.node:
            parts.append(f"node {self.node!r}")
        if self.op_type:
            parts.append(f"operator {self.domain + '::' if self.domain else ''}{self.op_type}")
        if self.provider:
            parts.append(f"provider {self.provider}")
        if self.shapes:
            parts.append("shapes " + ", ".join(f"{name}: {list(dims)}" for name, dims in self.shapes.items()))
        # What the message says already is not said twice.
        return ", ".join(part for part in parts if part.split(" ", 1)[1].strip("'") not in self.message)


def _text(name: str | bytes) -> str:
    return name.decode(errors="backslashreplace") if isinstance(name, bytes) else name


def _restore(cls: type[PyOrtError], message: str, fields: dict[str, Any]) -> PyOrtError:
    error = cls(message)
    error.__dict__.update(fields)
    return error


# --- onnxruntime's names


class Fail(PyOrtError):
    """Anything without a better name."""


class InternalError(Fail):
    """A bug of py_ort, not of the model or the feeds. The exception that nobody foresaw is its `__cause__`.

    Attributes:
        doing: What was being done: "optimization pass nhwc".
        place: The line of py_ort where it happened: "compiler/layout/rules.py:107", or "".
    """

    doing: str = ""
    place: str = ""


class InvalidArgument(PyOrtError, ValueError, RuntimeError):
    """A feed, an option or an attribute is wrong.

    It is all that onnxruntime raises for these: its own class, a ValueError or a RuntimeError, by the place.
    """

    code = 2


class WrongType(InvalidArgument, TypeError, AttributeError):
    """An argument is of a type that is not taken there.

    It is all that onnxruntime raises for these: a TypeError of its native code, or what its Python code stumbles over.
    """


class NoSuchFile(PyOrtError, FileNotFoundError):
    """The model, or external data of it, is not there."""

    code = 2

    # OSError.__str__ and __init__ would otherwise take over.
    __str__ = PyOrtError.__str__


class NoModel(PyOrtError):
    """There is no model to run."""


class EngineError(PyOrtError):
    """The runtime in the page could not be started."""


class InvalidProtobuf(PyOrtError, ValueError):
    """These bytes are not an ONNX model."""

    code = 3


class ModelLoaded(PyOrtError):
    """A model was loaded already."""


class ModelLoadCanceled(PyOrtError):
    """`SessionOptions.set_load_cancellation_flag` ended the making of a session."""


class ModelRequiresCompilation(PyOrtError):
    """Never raised here, where every model is compiled; for code that expects the name."""


class NotFound(PyOrtError, LookupError):
    """What was asked for by name or number is not there."""


class DeviceReset(PyOrtError):
    """A device ended in the middle of its work."""


class InvalidGraph(PyOrtError):
    """The model breaks ONNX's rules, or uses an operator that does not exist."""

    code = 3


@dataclass(frozen=True)
class MissingKernel:
    """A node that cannot run.

    Attributes:
        node: Its name in the model.
        op_type: Its operator.
        domain: The operator's domain; "" is ai.onnx.
        reasons: Why not, by provider; none where no provider knows the operator.
        inputs: Dtypes of its inputs, as far as they are known.
    """

    node: str
    op_type: str
    domain: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()


class NotImplemented(PyOrtError, NotImplementedError):
    """No kernel for this operator, type or case on the providers asked for.

    Attributes:
        missing: All nodes without one, where it is a model that lacks kernels; the message is about the first.
    """

    code = 4
    missing: Sequence[MissingKernel] = ()

    @classmethod
    def of_nodes(cls, message: str, missing: Sequence[MissingKernel], **where: Any) -> NotImplemented:
        """Return the error of a model that lacks kernels.

        Args:
            message: About the first node.
            missing: All nodes.
            where: Further attributes of `PyOrtError`.
        """
        first = missing[0]
        counts = Counter(f"{each.domain + '::' if each.domain else ''}{each.op_type}" for each in missing[1:])
        more = ", ".join(f"{name} ({count})" if count > 1 else name for name, count in counts.most_common(8))
        text = f"{message}; nor for {len(missing) - 1} more nodes: {more}" if more else message
        error = cls(text, node=first.node, op_type=first.op_type, domain=first.domain, **where)
        error.missing = tuple(missing)
        return error


class OutOfMemory(PyOrtError, MemoryError):
    """The wasm heap or the GPU has no room left."""

    code = 5


class RuntimeException(PyOrtError, RuntimeError):
    """A kernel failed on these inputs."""

    code = 6


class EPFail(PyOrtError):
    """An execution provider that was asked for cannot be used here."""


# --- the browser's own


class BrowserError(PyOrtError):
    """Something about the browser, its page or its GPU."""


class BrowserNotFound(BrowserError):
    """No browser under this name or path."""


class BrowserCrashed(BrowserError):
    """The browser's process ended."""


class PageCrashed(BrowserError):
    """The page (its renderer process) crashed or was closed."""


class CoreCrashed(BrowserError):
    """The core in wasm crashed in this run or creation: a trap, a stack that overflowed, an abort.

    It is a bug of py_ort's own, or memory ended where nothing can say so. The worker is ended, and another one takes
    its place; see `WorkerEnded`.
    """

    code = 12


class ConnectionLost(BrowserError, ConnectionError):
    """The page's websocket is gone."""

    __str__ = PyOrtError.__str__


class Timeout(BrowserError, TimeoutError):
    """The page did not answer in time, or the compiler took longer than a session's `create_timeout`."""

    __str__ = PyOrtError.__str__


class NoAdapter(BrowserError, EPFail):
    """WebGPU has no adapter in this browser."""

    code = 7


class DeviceLost(BrowserError, DeviceReset):
    """The browser lost the GPU device."""

    code = 8


class WorkerEnded(DeviceLost):
    """The worker was ended: a run or a creation in it went on after it was cancelled or timed out, or crashed the core.

    Sessions of this worker are loaded again by their next use, and runs under way are done again. What cannot be had
    again raises this: values on the GPU of that worker, and runs that read or write such values.
    """


class ProtocolError(BrowserError):
    """The page said what no page of py_ort says."""


class NoSuchSession(BrowserError, NotFound):
    """The page does not know this session (any more)."""

    code = 9


class Cancelled(BrowserError, Fail):
    """The run was cancelled (RunOptions.terminate)."""

    code = 10


class ShaderError(BrowserError):
    """A shader did not compile, or WebGPU found a command invalid."""

    code = 11

    @property
    def places(self) -> list[tuple[int, int, str]]:
        """The compiler's messages, each with line and column; of a user kernel, in the user's own text."""
        found = re.findall(r"^  line (\d+):(\d+): (.*)$", self.message, re.MULTILINE)
        return [(int(line), int(column), text) for line, column, text in found]


_BY_CODE: dict[int, type[PyOrtError]] = {
    1: Fail,
    2: InvalidArgument,
    3: InvalidGraph,
    4: NotImplemented,
    5: OutOfMemory,
    6: RuntimeException,
    7: NoAdapter,
    8: DeviceLost,
    9: NoSuchSession,
    10: Cancelled,
    11: ShaderError,
    12: CoreCrashed,
}


def from_code(code: int, message: str, **fields: Any) -> PyOrtError:
    """Return the error for an `ErrorCode` of the schema.

    Args:
        code: The code; one that is not known gives a `Fail`.
        message: What went wrong, and what to do next.
        fields: Further attributes of `PyOrtError`.
    """
    return _BY_CODE.get(code, Fail)(message, **fields)
