"""One row of an operator's table: inputs, attributes, and the source of the expectation."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from native import native_session
from onnx import helper
from onnx.reference import ReferenceEvaluator
from unsigned_weights import unsigned_weights

MICROSOFT = "com.microsoft"
#: (absolute, relative), by the case's word.
TOLERANCES = {"exact": (0.0, 0.0), "tight": (1e-6, 4e-6), "normal": (1e-5, 2e-5), "loose": (1e-3, 1e-3)}


@dataclass(frozen=True)
class Random:
    """Random numbers, the same in every run: normally distributed floats, whole numbers below 100, or bools."""

    shape: tuple[int, ...]
    dtype: str = "float32"
    low: float | None = None
    high: float | None = None

    def make(self, seed: int) -> np.ndarray:
        rng = np.random.default_rng(seed)
        kind = np.dtype(self.dtype).kind
        if kind == "b":
            return rng.integers(0, 2, self.shape).astype(bool)
        if kind == "f" and self.low is None:
            return np.asarray(rng.standard_normal(self.shape)).astype(self.dtype)
        low = self.low if self.low is not None else (-100 if kind == "i" else 0)
        high = self.high if self.high is not None else 100
        made = rng.uniform(low, high, self.shape) if kind == "f" else rng.integers(int(low), int(high), self.shape)
        return np.asarray(made).astype(self.dtype)

    def __str__(self) -> str:
        limits = "" if self.low is None and self.high is None else f"({self.low}..{self.high})"
        return f"{_short(self.dtype)}{list(self.shape)}{limits}".replace(" ", "")


def r(*shape: int, dtype: str = "float32", low: float | None = None, high: float | None = None) -> Random:
    """Short for Random."""
    return Random(shape, dtype, low, high)


def i64(*values: int) -> np.ndarray:
    """A list of int64."""
    return np.array(values, np.int64)


Input = Random | np.ndarray | None


@dataclass(frozen=True)
class Case:
    """A node and its inputs.

    Attributes:
        op: The operator.
        inputs: None for an omitted optional input.
        attributes: As in the newest opset.
        expected: A function from the inputs to the output or a tuple of outputs; by default onnxruntime is run, and
            "onnx" runs ONNX's reference implementation.
        outputs: Number of outputs.
        tolerance: A word of TOLERANCES.
        host: Indices of host inputs that differ from the operator's declaration.
        same: Inputs that are the same tensor as another one.
        signs: True if zeros must have the expectation's signs.
        name: Added to the id, if inputs and attributes do not distinguish cases.
    """

    op: str
    inputs: Sequence[Input]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    expected: Callable[..., Any] | str | None = None
    outputs: int = 1
    tolerance: str = "tight"
    domain: str = ""
    host: Sequence[int] | None = None
    same: Mapping[int, int] = field(default_factory=dict)
    signs: bool = False
    name: str = ""

    @property
    def id(self) -> str:
        parts = [",".join(_describe(x) for x in self.inputs)]
        parts += [f"{key}={value}".replace(" ", "") for key, value in self.attributes.items()]
        parts += ["host=" + "".join(map(str, self.host))] if self.host is not None else []
        return ":".join([self.op, *parts, *([self.name] if self.name else [])])

    def arrays(self) -> list[np.ndarray | None]:
        """The inputs; random ones depend only on the case's id."""
        seed = zlib.crc32(self.id.encode())
        made = [x.make(seed + k) if isinstance(x, Random) else x for k, x in enumerate(self.inputs)]
        return [made[self.same.get(k, k)] for k in range(len(made))]

    def expectation(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """Return the outputs that are right."""
        if callable(self.expected):
            with np.errstate(all="ignore"):
                found = self.expected(*arrays)
            return [np.asarray(x) for x in (found if isinstance(found, tuple) else (found,))]
        names = [f"x{k}" if x is not None else "" for k, x in enumerate(arrays)]
        results = [f"y{k}" for k in range(self.outputs)]
        node = helper.make_node(self.op, names, results, domain=self.domain, **self.attributes)
        infos = [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
            for name, x in zip(names, arrays, strict=True)
            if x is not None
        ]
        graph = helper.make_graph([node], "case", infos, [onnx.ValueInfoProto(name=name) for name in results])
        opset = 26 if self.expected == "onnx" else 21
        opsets = [
            helper.make_opsetid("", opset),
            helper.make_opsetid(MICROSOFT, 1),
            helper.make_opsetid("ai.onnx.ml", 4),
        ]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
        feeds = {name: x for name, x in zip(names, arrays, strict=True) if x is not None}
        if self.expected == "onnx":
            return [np.asarray(x) for x in ReferenceEvaluator(model).run(None, feeds)]
        session = native_session(unsigned_weights(model, feeds).SerializeToString())
        return session.run(None, feeds)


def check_signs(case: Case, actual: np.ndarray, wanted: np.ndarray) -> None:
    """Compare zeros by their signs, if the case requires it."""
    if case.signs:
        zeros = wanted == 0
        np.testing.assert_array_equal(np.signbit(actual[zeros]), np.signbit(wanted[zeros]), err_msg="signs of zeros")


def _short(dtype: str) -> str:
    return {"float32": "f32", "float16": "f16", "bool": "bool"}.get(
        dtype, dtype.replace("uint", "u").replace("int", "i")
    )


def _describe(x: Input) -> str:
    if x is None:
        return "-"
    if isinstance(x, Random):
        return str(x)
    values = np.array2string(x, separator=",", threshold=8, edgeitems=3).replace(" ", "").replace("\n", "")
    return f"{_short(x.dtype.name)}{values if x.size <= 8 else list(x.shape)}".replace(" ", "")
