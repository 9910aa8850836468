"""The state of the connection to a page, without a socket: its greeting, and the open requests."""

from __future__ import annotations

import hmac
import json
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from py_ort.exceptions import ProtocolError, PyOrtError, from_code
from py_ort.schema.gen.Hello import HelloT
from py_ort.schema.gen.ProtocolVersion import ProtocolVersion
from py_ort.wire.framing import Assembler, Buffer, frames
from py_ort.wire.messages import Prepared, Received, decode, encode
from py_ort.wire.tensors import from_description

#: Type of the answer to a request that succeeds; other requests are answered by Ack.
_ANSWERS = {
    "OpenDevice": "DeviceOpened",
    "AskDevice": "DeviceAnswer",
    "CreateSession": "SessionCreated",
    "Run": "RunResult",
    "Generate": "Generated",
    "GetStats": "Stats",
    "Ping": "Pong",
    "JsepAlloc": "JsepBuffer",
    "JsepCopyAsync": "JsepBytes",
    "JsepCreateKernel": "JsepKernel",
    "JsepRun": "RunResult",
}


class Answer(NamedTuple):
    """The page's answer to a request: a body with its payload, or an error."""

    request: int
    kind: str
    body: Any
    payload: memoryview
    error: PyOrtError | None

    def told(self) -> dict[str, Any]:
        """Return the JSON object in the body's field `info`, or in `json` of `Stats`.

        Raises:
            ProtocolError: The field is not a JSON object.
        """
        text = self.body.json if self.kind == "Stats" else self.body.info
        try:
            told = json.loads(text or "{}")
        except (ValueError, RecursionError) as e:
            raise ProtocolError(f"the page's {self.kind} is no JSON: {e}") from None
        if not isinstance(told, dict):
            raise ProtocolError(f"the page's {self.kind} is a JSON {type(told).__name__}, not an object")
        return told


class LogLine(NamedTuple):
    """A line of the page's log; the severity is onnxruntime's, from 0 (verbose) to 4 (fatal)."""

    severity: int
    category: str
    text: str


class ProgressReport(NamedTuple):
    """The progress of a request."""

    request: int
    stage: str
    done: int
    total: int


class NewTokens(NamedTuple):
    """The tokens of one step of a generation: one for each row, -1 for finished rows."""

    request: int
    tokens: list[int]


class Logits(NamedTuple):
    """The logits of a row, which a generation waits to have changed."""

    request: int
    row: int
    tokens: list[int]
    logits: np.ndarray


Event: TypeAlias = HelloT | Answer | LogLine | ProgressReport | NewTokens | Logits


class Connection:
    """The protocol's state: a Hello comes first, then answers to requests, in any order.

    Args:
        token: The token that the page's Hello must contain.
    """

    def __init__(self, token: str) -> None:
        self.token = token
        self._assembler = Assembler()
        #: The next request's id.
        self.next_request = 1
        self._closed = False
        self.hello: HelloT | None = None
        #: Types of the answers to open requests, by the requests' ids.
        self.pending: dict[int, str] = {}

    def request(
        self, body: Any, payload: Sequence[Buffer] = (), payload_size: int = 0, url: str = ""
    ) -> tuple[int, Iterator[Buffer]]:
        """Return a new request's id and its frames.

        Args:
            body: A body of the generated API, or a `Prepared` message.
            payload: The payload, in parts.
            payload_size: Its size in bytes.
            url: URL from which the page fetches the payload, if it is not sent.

        Raises:
            ProtocolError: The page has not said hello yet, or is gone.
        """
        if self.hello is None or self._closed:
            raise ProtocolError("the page is gone" if self._closed else "the page has not said hello yet")
        request, self.next_request = self.next_request, self.next_request + 1
        name = body.name if isinstance(body, Prepared) else type(body).__name__.removesuffix("T")
        header = body.header(request) if isinstance(body, Prepared) else encode(request, body, payload_size)
        self.pending[request] = _ANSWERS.get(name, "Ack")
        return request, frames(header, payload, url)

    def receive(self, frame: Buffer) -> Event | None:
        """Read a frame; return the event that it completes, if any.

        Raises:
            ProtocolError: The page broke the protocol; close the connection.
        """
        whole = self._assembler.receive(frame)
        return None if whole is None else self._event(decode(*whole))

    @property
    def partial(self) -> bool:
        """True if the page has begun a message and not ended it."""
        return self._assembler.partial

    def close(self) -> set[int]:
        """Mark the connection as closed; return the requests that will never be answered."""
        self._closed = True
        lost, self.pending = self.pending, {}
        return set(lost)

    def _event(self, message: Received) -> Event | None:
        body = message.body
        if self.hello is None:
            return self._greet(message)
        match message.kind:
            case "Log":
                return LogLine(body.severity, body.category or "", body.text or "")
            case "Progress":
                return ProgressReport(body.request, body.stage or "", body.done, body.total)
            case "Tokens":
                return NewTokens(body.request, list(body.tokens or ()))
            case "Logits":
                logits = from_description(body.logits, message.payload)
                return Logits(body.request, body.row, list(body.tokens or ()), logits)
            case "Hello":
                raise ProtocolError("the page said hello twice")
        if message.id not in self.pending:
            raise ProtocolError(f"the page answered request {message.id}, which is not open ({message.kind})")
        expected = self.pending.pop(message.id)
        if message.kind not in (expected, "Error"):
            raise ProtocolError(f"the page answered request {message.id} with {message.kind}, not {expected}")
        error = remote_error(body) if message.kind == "Error" else None
        return Answer(message.id, message.kind, body, message.payload, error)

    def _greet(self, message: Received) -> HelloT:
        hello = message.body
        if message.kind != "Hello":
            raise ProtocolError(f"the page's first message is {message.kind}, not Hello")
        if not hmac.compare_digest((hello.token or "").encode(), self.token.encode()):
            raise ProtocolError("the page said hello with a wrong token")
        if hello.version != ProtocolVersion.current:
            raise ProtocolError(
                f"the page speaks version {hello.version} of the protocol, and Python {ProtocolVersion.current}: "
                "rebuild the page"
            )
        self.hello = hello
        return hello


def remote_error(body: Any) -> PyOrtError:
    """Return the exception for an `Error` message."""
    return from_code(
        body.code,
        body.message or "the page gave no reason",
        node=body.node or "",
        op_type=body.opType or "",
        provider=body.provider or "",
        stack=body.stack or "",
    )
