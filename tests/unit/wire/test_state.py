"""The protocol's state machine, with a page made of bytes."""

import random

import pytest

from py_ort.exceptions import InvalidGraph, NotImplemented, ProtocolError, PyOrtError
from py_ort.schema.gen.Ack import AckT
from py_ort.schema.gen.Error import ErrorT
from py_ort.schema.gen.ErrorCode import ErrorCode
from py_ort.schema.gen.GetStats import GetStatsT
from py_ort.schema.gen.Hello import HelloT
from py_ort.schema.gen.Log import LogT
from py_ort.schema.gen.Progress import ProgressT
from py_ort.schema.gen.ProtocolVersion import ProtocolVersion
from py_ort.schema.gen.Run import RunT
from py_ort.schema.gen.RunResult import RunResultT
from py_ort.schema.gen.Stats import StatsT
from py_ort.wire import Answer, Assembler, Connection, LogLine, ProgressReport, decode, encode, frames


def say(connection: Connection, request: int, body, payload: bytes = b""):
    (frame,) = frames(encode(request, body, len(payload)), [payload])
    return connection.receive(frame)


def hello(token="secret", version=ProtocolVersion.current) -> HelloT:
    body = HelloT()
    body.token, body.version, body.userAgent = token, version, "test"
    return body


@pytest.fixture
def connection() -> Connection:
    connection = Connection("secret")
    assert say(connection, 0, hello()).userAgent == "test"
    return connection


def test_requests_before_hello_are_refused():
    with pytest.raises(ProtocolError, match="hello"):
        Connection("secret").request(GetStatsT())


@pytest.mark.parametrize("body", [hello(token="wrong"), hello(token=None), hello(version=99), AckT()])
def test_wrong_hello(body):
    with pytest.raises(ProtocolError):
        say(Connection("secret"), 0, body)


def test_a_request_reads_back(connection):
    body = RunT()
    body.session, body.outputs, body.feeds = 7, ["out", "žluť"], []
    request, sent = connection.request(body, [b"payload"], 7)
    header, payload = Assembler().receive(next(sent))
    message = decode(header, payload)
    assert (message.id, message.kind, bytes(message.payload)) == (request, "Run", b"payload")
    assert message.body.session == 7 and message.body.outputs == ["out", "žluť"]


def test_answers_come_in_any_order(connection):
    requests = [connection.request(GetStatsT())[0] for _ in range(5)]
    random.Random(1).shuffle(requests)
    for request in requests:
        answer = say(connection, request, StatsT())
        assert isinstance(answer, Answer) and answer.request == request and answer.error is None
    assert not connection.pending


def test_an_answer_of_another_kind(connection):
    request, _ = connection.request(GetStatsT())
    with pytest.raises(ProtocolError, match="Ack, not Stats"):
        say(connection, request, AckT())


@pytest.mark.parametrize("text", ["{", "[1]", "null", "7", "{'a': 1}", "[" * 100_000, '"x"'])
def test_an_answer_that_tells_nothing(connection, text):
    result = RunResultT()
    result.info = text
    with pytest.raises(ProtocolError, match="RunResult"):
        say(connection, connection.request(RunT())[0], result).told()
    assert issubclass(ProtocolError, PyOrtError)


def test_an_error_becomes_the_exception_of_its_code(connection):
    request, _ = connection.request(GetStatsT())
    body = ErrorT()
    body.code, body.message, body.node, body.opType, body.provider = (
        ErrorCode.not_implemented,
        "no kernel",
        "n7",
        "Foo",
        "wasm",
    )
    answer = say(connection, request, body)
    assert isinstance(answer.error, NotImplemented)
    assert answer.error.node == "n7" and answer.error.op_type == "Foo" and answer.error.provider == "wasm"
    assert "no kernel" in str(answer.error) and "n7" in str(answer.error)
    body.code = ErrorCode.invalid_graph
    assert isinstance(say(connection, connection.request(GetStatsT())[0], body).error, InvalidGraph)


def test_payload_of_an_answer(connection):
    request, _ = connection.request(RunT())
    result = RunResultT()
    result.info = "{}"
    assert bytes(say(connection, request, result, b"12345").payload) == b"12345"


def test_logs_and_progress(connection):
    log = LogT()
    log.severity, log.category, log.text = 2, "gpu", "careful"
    assert say(connection, 0, log) == LogLine(2, "gpu", "careful")
    progress = ProgressT()
    progress.request, progress.stage, progress.done, progress.total = 3, "compile", 1, 9
    assert say(connection, 0, progress) == ProgressReport(3, "compile", 1, 9)


def test_an_answer_nobody_asked_for(connection):
    with pytest.raises(ProtocolError, match="not open"):
        say(connection, 42, AckT())
    with pytest.raises(ProtocolError, match="twice"):
        say(connection, 0, hello())


def test_close_names_what_was_pending(connection):
    request, _ = connection.request(GetStatsT())
    assert connection.close() == {request}
    with pytest.raises(ProtocolError, match="gone"):
        connection.request(GetStatsT())


def test_garbage_is_a_protocol_error(connection):
    rng, refused = random.Random(2), 0
    good = bytearray(encode(1, hello()))
    for _ in range(300):
        header = bytearray(good)
        for _ in range(3):
            header[rng.randrange(len(header))] = rng.randrange(256)
        fresh = Connection("secret")
        try:
            (frame,) = frames(bytes(header))
            fresh.receive(frame)
        except ProtocolError:
            refused += 1
    assert refused > 100
