"""Cases that take long to generate, kept in a file: a list of the cases, then models and values as protobufs."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any, BinaryIO

import numpy as np

from py_ort.testing.case import Case, DataSet, Tolerance

_log = logging.getLogger("py_ort")


def write(file: Path, cases: Sequence[Case]) -> None:
    """Keep cases, each of which has its model's bytes and one tolerance. Where nothing can be written, nothing is kept.

    Args:
        file: Where to; whoever reads or writes it at the same time finds all of it.
        cases: The cases. Their values are arrays, lists of them, or None.
    """
    parts: list[bytes] = []

    def put(part: bytes) -> int:
        parts.append(part)
        return len(part)

    def put_value(value: Any) -> tuple[str, int]:
        kind, proto = _proto(value)
        return kind, put(proto)

    told = []
    for case in cases:
        sets = [
            (
                {name: put_value(value) for name, value in data.feeds.items()},
                [put_value(value) for value in data.outputs],
            )
            for data in case.data_sets
        ]
        close = case.tolerance[""]
        told.append([case.id, case.group, close.rtol, close.atol, sets, put(case.model_bytes())])
    made: Path | None = None
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=file.parent, prefix=f".{file.name}", delete=False) as opened:
            made = Path(opened.name)
            opened.writelines([json.dumps(told).encode(), b"\n", *parts])
        made.replace(file)
    except OSError as e:
        _log.debug("%s cannot be written: %s", file, e)
        with suppress(OSError):
            if made:
                made.unlink(missing_ok=True)


def read(file: Path) -> list[Case] | None:
    """Return the cases that a file keeps; None if there is no such file, or it is not as it was written."""
    try:
        with file.open("rb") as opened:
            return [_case(opened, *told) for told in json.loads(opened.readline())]
    except FileNotFoundError:
        return None
    except Exception as e:  # whatever damage leads to
        _log.debug("%s cannot be read: %s", file, e)
        return None


def _case(opened: BinaryIO, name: str, group: str, rtol: float, atol: float, sets: list[Any], size: int) -> Case:
    def value(kind: str, size: int) -> Any:
        return _FROM[kind](_part(opened, size))

    data = [
        DataSet({name: value(*told) for name, told in feeds.items()}, [value(*told) for told in outputs])
        for feeds, outputs in sets
    ]
    return Case(name, _part(opened, size), data, {"": Tolerance(rtol, atol)}, group=group)


def _part(opened: BinaryIO, size: int) -> bytes:
    if len(part := opened.read(size)) < size:
        raise EOFError("the file ends too soon")
    return part


def _proto(value: Any) -> tuple[str, bytes]:
    from onnx import numpy_helper

    if value is None:
        return "none", b""
    if isinstance(value, list):
        return "sequence", numpy_helper.from_list(value).SerializeToString()
    return "tensor", numpy_helper.from_array(np.asarray(value)).SerializeToString()


def _tensor(part: bytes) -> np.ndarray:
    from onnx import TensorProto, numpy_helper

    return numpy_helper.to_array(TensorProto.FromString(part))


def _sequence(part: bytes) -> list[Any]:
    from onnx import SequenceProto, numpy_helper

    return numpy_helper.to_list(SequenceProto.FromString(part))


_FROM: dict[str, Callable[[bytes], Any]] = {"none": lambda part: None, "sequence": _sequence, "tensor": _tensor}
