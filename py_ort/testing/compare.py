"""Every value of a model on two sides: the first that differs, and the difference of each.

Each side runs the model several times, with a few other values as outputs each time, to limit memory. An output is
not fused with its readers. If only the unchanged model differs, and no value alone does, the search looks for the
fusion, with one value at a time.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import onnx

from py_ort.compiler.load import read_proto
from py_ort.compiler.load.model_files import DATA_FOLDER_ENTRY
from py_ort.exceptions import BrowserNotFound, EPFail, NotImplemented, PyOrtError
from py_ort.providers import with_cpu
from py_ort.providers.resolution import REQUIRE
from py_ort.runtime.engines import OURS
from py_ort.runtime.inference_session import InferenceSession
from py_ort.runtime.options import SessionOptions
from py_ort.testing.closeness import closeness
from py_ort.testing.native_model import NativeModel

#: Values at a time, at first and at most, and how many bytes of them are many.
_FIRST, _MOST, _MANY = 8, 64, 64 << 20
#: Errors unrelated to the model: there is no such browser, or the browser lacks the provider.
_NOWHERE = (BrowserNotFound, EPFail)


class Side(Protocol):
    """A way to run a model, with a name."""

    @property
    def name(self) -> str: ...

    def run(self, model: bytes, folder: Path | None, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        """Return outputs of a model whose external data is in a folder.

        Raises:
            PyOrtError: It does not run.
        """
        ...


class Native:
    """Native onnxruntime, on the CPU."""

    name = "onnxruntime"

    def run(self, model: bytes, folder: Path | None, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        """Run it once."""
        native = NativeModel(model, folder)
        found = native.first_taken([dict(feeds)])
        if found is None:
            raise native.fault or NotImplemented(native.trouble)
        return [found[1][name] for name in names]


@dataclass(frozen=True)
class InBrowser:
    """Sessions in a browser, by any engine.

    Attributes:
        provider: The first provider; the CPU is behind it.
        engine: The engine that runs the model there.
        options: Keywords of `InferenceSession` besides, `browser` and `sess_options` among them.
    """

    provider: str
    engine: str = OURS
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """The provider, and the engine where that is not py_ort."""
        return self.provider if self.engine == OURS else f"{self.engine} {self.provider}"

    def run(self, model: bytes, folder: Path | None, names: Sequence[str], feeds: Mapping[str, Any]) -> list[Any]:
        """Run it once."""
        given = {"providers": with_cpu(self.provider), "engine": self.engine, **self.options}
        options = (given.pop("sess_options", None) or SessionOptions())._copy()
        options.log_severity_level = 4
        options.enable_profiling, options.optimized_model_filepath = False, ""
        entries = {REQUIRE: "1", "session.plan_cache": "0"}
        if folder is not None:
            entries[DATA_FOLDER_ENTRY] = str(folder)
        for name, entry in entries.items():
            options.add_session_config_entry(name, entry)
        with InferenceSession(model, options, **given) as session:
            wanted = {arg.name for arg in session.get_inputs()}
            return session.run(names, {name: value for name, value in feeds.items() if name in wanted})


@dataclass(frozen=True)
class Value:
    """A value of the model on both sides.

    Attributes:
        name: Its name.
        node, op_type: The node that computes it.
        dtype, shape: As the reference has it; None where it is no tensor.
        difference: How it differs, in words; "" if it does not, or was not compared.
        part: The largest difference of an element, as a part of the value's largest number; None: not compared.
        error: The reason why it was not compared; "".
        origin: True if it differs or fails, and none of its node's inputs does.
    """

    name: str
    node: str
    op_type: str
    dtype: str | None = None
    shape: tuple[int, ...] | None = None
    difference: str = ""
    part: float | None = None
    error: str = ""
    origin: bool = False

    @property
    def wrong(self) -> bool:
        """True if it differs or fails."""
        return bool(self.difference or self.error)

    def __str__(self) -> str:
        return f"{self.name!r} of {self.op_type} {self.node!r}: {self.error or self.difference}"

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        return asdict(self)


@dataclass
class Comparison:
    """The result of `compare`.

    Attributes:
        values: In the model's order.
        outputs: How outputs of the model as it is differ, by name.
        fused: Where only outputs differ: the first value that differs where it alone is looked at, so that the rest is
            fused; None: there is none.
        maps: Where values differ that only read what agrees, by name: see `difference_map`.
        refusal: The error of the tested side, if it computed no value: then there are no values; None.
    """

    values: list[Value] = field(default_factory=list)
    outputs: dict[str, str] = field(default_factory=dict)
    fused: Value | None = None
    maps: dict[str, list[list[float]]] = field(default_factory=dict)
    refusal: PyOrtError | None = None

    @property
    def first(self) -> Value | None:
        """The first value that differs."""
        return self.fused or next((value for value in self.values if value.wrong), None)

    @property
    def ok(self) -> bool:
        """True if no value and no output differs."""
        return self.first is None and not self.outputs

    def as_dict(self) -> dict[str, Any]:
        """Return it for JSON."""
        first = self.first
        told = {"values": [value.as_dict() for value in self.values], "outputs": self.outputs}
        return {"ok": self.ok, "first": first and first.as_dict(), **told, "fused": self.fused and self.fused.as_dict()}


def compare(
    model: str | os.PathLike[str] | bytes,
    feeds: Mapping[str, np.ndarray],
    tested: Side,
    reference: Side,
    *,
    tolerance: float | None = None,
    steps: int = 0,
    progress: Callable[[int, int, str], None] = lambda done, total, detail: None,
) -> Comparison:
    """Compare all values that nodes of a model's main graph compute, without values inside If, Loop and Scan.

    Args:
        model: An ONNX file, or its bytes.
        feeds: By input name.
        tested: The side to test.
        reference: The side with the right values.
        tolerance: See `py_ort.testing.closeness.closeness`.
        steps: See `py_ort.testing.closeness.closeness`.
        progress: Called with the number of compared values, their total, and the first finding.

    Raises:
        NoSuchFile, InvalidProtobuf: The model cannot be read.
        NotImplemented: The reference does not run it.
        InvalidArgument: The reference of a user kernel raises an exception, or returns other shapes.
        BrowserNotFound, EPFail: There is no such browser, or the browser lacks the provider.
    """
    proto = read_proto(model)
    folder = None if isinstance(model, bytes) else Path(model).resolve().parent
    tapped = _Tapped(proto, folder, feeds, partial(closeness, tolerance=tolerance, steps=steps))
    found = Comparison()
    outputs = [output.name for output in proto.graph.output]
    wanted = tapped.run(reference, outputs)
    try:
        got = tapped.run(tested, outputs)
        told = {name: tapped.closeness(a, b)[0] for name, a, b in zip(outputs, got, wanted, strict=True)}
        found.outputs = {name: text for name, text in told.items() if text}
    except _NOWHERE:
        raise
    except PyOrtError as e:
        found.outputs = dict.fromkeys(outputs, f"{type(e).__name__}: {e}")
        found.refusal = e
    del wanted
    total = len(tapped.makers)
    for value in tapped.values(tested, reference):
        found.values.append(value)
        first = found.first
        progress(len(found.values), total, f"{first.name} {'fails' if first.error else 'differs'}" if first else "")
    found.maps = tapped.maps
    if found.refusal and all(value.error for value in found.values):
        found.refusal.message = f"{tested.name} ran no node of the model: {found.refusal.message}"
        found.values, found.maps = [], {}
        return found
    found.refusal = None
    if found.outputs and not any(value.wrong and value.name not in outputs for value in found.values):
        found.fused = tapped.search(tested, reference)
    return found


#: Rows and columns of a map.
_MAP = (32, 64)


def difference_map(got: Any, wanted: Any) -> list[list[float]]:
    """Return a map of differences: for each cell the largest difference, as a part of the largest of all.

    Rows are along the last axis; large arrays have several elements in a cell. The map of incomparable arrays is empty.
    """
    a, b = np.asarray(got), np.asarray(wanted)
    if a.shape != b.shape or not b.size or b.dtype.kind not in "iufb" or a.dtype.kind not in "iufb":
        return []
    x, y = (np.atleast_1d(each).astype(np.float64) for each in (a, b))
    with np.errstate(invalid="ignore"):
        off = np.where((x == y) | (np.isnan(x) & np.isnan(y)), 0, np.abs(x - y)).reshape(-1, x.shape[-1])
    largest = np.max(off, where=np.isfinite(off), initial=0) or 1
    off = np.where(np.isfinite(off), off / largest, 1)
    for axis, most in enumerate(_MAP):
        count = off.shape[axis]
        off = np.maximum.reduceat(off, np.arange(min(count, most)) * count // min(count, most), axis)
    return [[round(float(each), 3) for each in row] for row in off]


class _Tapped:
    """A model, and its values as outputs.

    Attributes:
        makers: The node of each value, in order.
        closeness: Compares a value with the one of the reference.
        maps: See `Comparison`.
    """

    def __init__(
        self,
        proto: onnx.ModelProto,
        folder: Path | None,
        feeds: Mapping[str, np.ndarray],
        closeness: Callable[[Any, Any], tuple[str, float]],
    ) -> None:
        self._proto, self._folder, self._feeds, self.closeness = proto, folder, feeds, closeness
        self.makers = {name: node for node in proto.graph.node for name in node.output if name}
        self._typed = {value.name: value for value in (*proto.graph.value_info, *proto.graph.output)}
        self.maps: dict[str, list[list[float]]] = {}
        #: Values that differ or fail.
        self._wrong: set[str] = set()

    def run(self, side: Side, names: Sequence[str]) -> list[Any]:
        """Return values."""
        del self._proto.graph.output[:]
        for name in names:
            self._proto.graph.output.append(self._typed.get(name) or onnx.ValueInfoProto(name=name))
        return side.run(self._proto.SerializeToString(), self._folder, names, self._feeds)

    def values(self, tested: Side, reference: Side) -> Iterator[Value]:
        """Yield all values, in order."""
        left, count = list(self.makers), _FIRST
        behind: set[str] = set()
        while left:
            some, left = left[:count], left[count:]
            taken = [name for name in some if not behind.intersection(self.makers[name].input)]
            found = dict(self._compare(taken, tested, reference))
            for name in some:
                value = found.get(name) or self._value(name, error="not compared: it is computed from what fails")
                if value.error:
                    behind.update(self.makers[name].output)
                if value.wrong:
                    self._wrong.add(name)
                yield value
            size = sum(np.prod(v.shape) * 8 for v in found.values() if v.shape is not None)
            count = max(1, count // 2) if size > _MANY else min(count * 2, _MOST)

    def _compare(self, names: list[str], tested: Side, reference: Side) -> Iterator[tuple[str, Value]]:
        """Yield values; where some fail together, one after the other, up to the first that fails alone."""
        if not names:
            return
        try:
            wanted, got = self.run(reference, names), self.run(tested, names)
        except _NOWHERE:
            raise
        except PyOrtError as e:
            if len(names) == 1:
                yield names[0], self._value(names[0], error=f"{type(e).__name__}: {e}")
                return
            half = len(names) // 2
            failed: set[str] = set()
            for some in (names[:half], names[half:]):
                ready = [name for name in some if not failed.intersection(self.makers[name].input)]
                for name, value in self._compare(ready, tested, reference):
                    if value.error:
                        failed.update(self.makers[name].output)
                    yield name, value
            return
        for name, a, b in zip(names, got, wanted, strict=True):
            text, part = self.closeness(a, b)
            if text:
                self._wrong.add(name)
            value = self._value(name, difference=text, part=part)
            if value.origin:
                self.maps[name] = difference_map(a, b)
            yield name, replace(value, dtype=str(b.dtype), shape=b.shape) if isinstance(b, np.ndarray) else value

    def _value(self, name: str, difference: str = "", part: float | None = None, error: str = "") -> Value:
        node = self.makers[name]
        origin = bool(difference or error) and not self._wrong.intersection(node.input)
        return Value(name, node.name, node.op_type, None, None, difference, part, error, origin)

    def search(self, tested: Side, reference: Side) -> Value | None:
        """Return the first value that differs when compared alone, by bisection: values after it differ, too."""
        names = list(self.makers)
        first: Value | None = None
        low, high = 0, len(names)
        while low < high:
            middle = (low + high) // 2
            ((_, value),) = self._compare([names[middle]], tested, reference)
            if value.wrong:
                first, high = value, middle
            else:
                low = middle + 1
        return first
