"""All errors that py_ort raises: one tree, with onnxruntime's names where they exist.

    PyOrtError
    ├── Fail, InvalidArgument, NoSuchFile, InvalidProtobuf, InvalidGraph, NotImplemented, RuntimeException, …
    │   └── InternalError: of Fail, a bug of py_ort's own
    └── BrowserError
        ├── BrowserNotFound, BrowserCrashed, PageCrashed, CoreCrashed, ConnectionLost, Timeout
        ├── NoAdapter, DeviceLost, ShaderError, NoSuchSession, Cancelled
        └── ProtocolError; WorkerEnded: of DeviceLost; sessions continue, without their values on the GPU

An error from the page or the core keeps its own message, and its stack in `stack`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from traceback import format_exception
from typing import Any

from py_ort.notebook_traceback import notebook_traceback

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
        message: The fault, and the next step.
        code: The `py_ort.schema.gen.ErrorCode` of this class.
        node: Name of the model's node that failed, or "".
        op_type: Its operator, or "".
        domain: The operator's domain; "" is ai.onnx.
        provider: The node's execution provider, or "".
        shapes: Known shapes of the node's inputs, by name.
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
        # A damaged model may have bytes here.
        self.node, self.op_type, self.domain = map(_text, (node, op_type, domain))
        self.provider = provider
        self.shapes: dict[str, Sequence[Any]] = dict(shapes or {})
        self.stack = stack

    def __str__(self) -> str:
        where = self._where()
        return f"{self.message}\n  {where}" if where else self.message

    def __reduce__(self) -> tuple[Any, ...]:
        """Keep all fields when an error is sent to another process (pytest-xdist, multiprocessing)."""
        return _restore, (type(self), self.message, dict(self.__dict__))

    def _render_traceback_(self) -> list[str]:
        """Return the traceback for notebooks, which call this method."""
        return notebook_traceback(self)

    def again(self) -> PyOrtError:
        """Return a copy for another receiver: threads must not share tracebacks."""
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
        # Without parts that the message contains already.
        return ", ".join(part for part in parts if part.split(" ", 1)[1].strip("'") not in self.message)


def _text(name: str | bytes) -> str:
    return name.decode(errors="backslashreplace") if isinstance(name, bytes) else name


def _restore(cls: type[PyOrtError], message: str, fields: dict[str, Any]) -> PyOrtError:
    error = cls(message)
    error.__dict__.update(fields)
    return error


# --- onnxruntime's names


class Fail(PyOrtError):
    """An error without a more specific class."""


class InternalError(Fail):
    """A bug of py_ort, not of the model or the feeds. The unforeseen exception is its `__cause__`.

    Attributes:
        doing: The failed work, as "optimization pass nhwc".
        place: The line of py_ort, as "compiler/layout/rules.py:107", or "".
    """

    doing: str = ""
    place: str = ""
    _render_traceback_ = format_exception


class InvalidArgument(PyOrtError, ValueError, RuntimeError):
    """A feed, an option or an attribute is wrong.

    Its base classes are the types that onnxruntime raises in such cases: its own class, ValueError, RuntimeError.
    """

    code = 2


class WrongType(InvalidArgument, TypeError, AttributeError):
    """An argument has a type that is not accepted.

    Its base classes are the types that onnxruntime raises in such cases, in its native and its Python code.
    """


class NoSuchFile(PyOrtError, FileNotFoundError):
    """The model's file, or a file of its external data, does not exist."""

    code = 2

    # OSError.__str__ and __init__ would otherwise take over.
    __str__ = PyOrtError.__str__


class NoModel(PyOrtError):
    """There is no model to run."""


class EngineError(PyOrtError):
    """The runtime in the page could not be started."""


class InvalidProtobuf(PyOrtError, ValueError):
    """The bytes are not an ONNX model."""

    code = 3


class ModelLoaded(PyOrtError):
    """A model was loaded already."""


class ModelLoadCanceled(PyOrtError):
    """`SessionOptions.set_load_cancellation_flag` ended the making of a session."""


class ModelRequiresCompilation(PyOrtError):
    """Never raised, because every model is compiled; the name exists for code that expects it."""


class NotFound(PyOrtError, LookupError):
    """There is no object of this name or number."""


class DeviceReset(PyOrtError):
    """The device was reset while it was working."""


class InvalidGraph(PyOrtError):
    """The model breaks ONNX's rules, or uses an operator that does not exist."""

    code = 3


@dataclass(frozen=True)
class MissingKernel:
    """A node that cannot run.

    Attributes:
        node: The node's name in the model.
        op_type: The node's operator.
        domain: The operator's domain; "" is ai.onnx.
        reasons: Reasons by provider; empty if no provider knows the operator.
        inputs: Known dtypes of the node's inputs.
    """

    node: str
    op_type: str
    domain: str = ""
    reasons: Mapping[str, str] = field(default_factory=dict)
    inputs: tuple[str, ...] = ()


class NotImplemented(PyOrtError, NotImplementedError):
    """The requested providers have no kernel for this operator, type or case.

    Attributes:
        missing: All nodes without a kernel, if the error is about a model; the message is about the first node.
    """

    code = 4
    missing: Sequence[MissingKernel] = ()

    @classmethod
    def of_nodes(cls, message: str, missing: Sequence[MissingKernel], **where: Any) -> NotImplemented:
        """Return the error for a model that lacks kernels.

        Args:
            message: Message about the first node.
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
    """A requested execution provider cannot be used here."""


# --- errors of the browser


class BrowserError(PyOrtError):
    """An error of the browser, its page or its GPU."""


class BrowserNotFound(BrowserError):
    """There is no browser of this name or path."""


class BrowserCrashed(BrowserError):
    """The browser's process ended."""


class PageCrashed(BrowserError):
    """The page (its renderer process) crashed or was closed."""


class CoreCrashed(BrowserError):
    """The core in wasm crashed in this run or creation: a trap, a stack overflow or an abort.

    The cause is a bug of py_ort, or a lack of memory that could not be reported. The worker is ended and replaced; see
    `WorkerEnded`.
    """

    code = 12


class ConnectionLost(BrowserError, ConnectionError):
    """The page's websocket was closed."""

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
    """The worker was ended, because a run or a creation did not stop when it was cancelled, or crashed the core.

    Sessions of this worker are loaded again at their next use, and open runs are repeated. This error is raised for
    values on that worker's GPU, which are lost, and for runs that read or write them.
    """


class ProtocolError(BrowserError):
    """The page sent a message that breaks the protocol."""


class NoSuchSession(BrowserError, NotFound):
    """The page does not know this session, or no longer."""

    code = 9


class Cancelled(BrowserError, Fail):
    """The run was cancelled (RunOptions.terminate)."""

    code = 10


class ShaderError(BrowserError):
    """A shader did not compile, or WebGPU refused a command."""

    code = 11

    @property
    def places(self) -> list[tuple[int, int, str]]:
        """The compiler's messages, each with line and column; those of a user kernel refer to the user's own text."""
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
        code: The code; an unknown code results in `Fail`.
        message: The fault, and the next step.
        fields: Further attributes of `PyOrtError`.
    """
    return _BY_CODE.get(code, Fail)(message, **fields)
