"""Graphs of initializers that grow at random, by the makers of a class.

Each node is run natively when it is added, so that every value is known and onnxruntime accepts every graph. Some
values are feeds, so that constants are combined with others, too.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from array_models import model_of
from native import native_session
from onnx import helper

OPSET = 22
_LIMIT = 4096  # elements of a value


def native(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> list[np.ndarray] | None:
    """Run natively, without optimization; return None if onnxruntime refuses."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    try:
        session = native_session(model, options)
        return session.run(None, feeds)
    except Exception:
        return None


class GrowingGraph:
    """Grows a graph from constants; `model` is the result, `feeds` its feeds, `expected` the native results."""

    def __init__(self, seed: int, count: int = 7) -> None:
        self.rng = np.random.default_rng(seed)
        self.known: dict[str, np.ndarray] = {}
        self.constants: dict[str, np.ndarray] = {}
        self.feeds: dict[str, np.ndarray] = {}
        self.nodes: list[onnx.NodeProto] = []
        for _ in range(3):
            self.constant(self.values(self.shape()))
        if self.chance(0.4):
            self.feeds["x"] = self.known["x"] = self.values(self.shape(), np.float32)
        makers = [getattr(self, name) for name in dir(self) if name.startswith("_make_")]
        for _ in range(4 * count):
            if len(self.nodes) < count:
                self.pick(*makers)(self.pick(*list(self.known)[-5:]))
        read = {name for node in self.nodes for name in node.input}
        self.outputs = [name for node in self.nodes for name in node.output if name not in read and name in self.known]

    @property
    def model(self) -> onnx.ModelProto:
        return model_of(self.nodes, self.feeds, self.outputs, self.constants, opset=OPSET)

    def expected(self) -> list[np.ndarray]:
        return [self.known[name] for name in self.outputs]

    def chance(self, likely: float = 0.5) -> bool:
        return bool(self.rng.random() < likely)

    def pick(self, *items: Any) -> Any:
        return items[int(self.rng.integers(len(items)))]

    def between(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high + 1))

    def shape(self, low: int = 0, high: int = 4) -> tuple[int, ...]:
        return tuple(0 if self.chance(0.02) else self.between(1, 5) for _ in range(self.between(low, high)))

    def values(self, shape: tuple[int, ...], dtype: Any = None) -> np.ndarray:
        kind = np.dtype(dtype or self.pick(np.float32, np.float32, np.float32, np.int64, np.int32, np.uint8, np.bool_))
        if kind.kind == "f":
            return self.rng.standard_normal(shape).astype(kind)
        if kind.kind == "b":
            return self.rng.integers(0, 2, shape).astype(kind)
        if self.chance(0.15):
            limits = np.iinfo(kind)
            return self.rng.integers(limits.min, limits.max, shape, endpoint=True, dtype=kind)
        return self.rng.integers(-4 if kind.kind == "i" else 0, 9, shape).astype(kind)

    def constant(self, contents: Any) -> str:
        name = f"k{len(self.constants)}"
        self.constants[name] = self.known[name] = np.asarray(contents)
        return name

    def ints(self, *items: int) -> str:
        return self.constant(np.array(items, np.int64))

    def add(self, op_type: str, inputs: list[str], outputs: int = 1, **attributes: Any) -> None:
        """Add a node if onnxruntime runs it."""
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        node = helper.make_node(op_type, inputs, names, name=f"n{len(self.nodes)}", **attributes)
        given = {name: self.known[name] for name in inputs if name}
        # As constants: some operators require them.
        found = native(model_of([node], {}, names, given, opset=OPSET), {})
        if found is None or any(not isinstance(y, np.ndarray) or y.size > _LIMIT for y in found):
            return
        self.nodes.append(node)
        self.known.update(zip(names, found, strict=True))

    def axis(self, rank: int) -> int:
        return self.between(-rank, rank - 1) if rank else 0

    def axes(self, rank: int) -> list[int]:
        return [int(a) - (rank if self.chance() else 0) for a in self.rng.permutation(rank)[: self.between(1, rank)]]

    def image(self, x: str, rank: int = 0) -> str | None:
        """A float tensor of batches and channels, made from `x` if that is one."""
        known = self.known[x]
        if known.dtype == np.float32 and known.ndim == (rank or known.ndim) and known.ndim in (3, 4) and known.size:
            return x
        spatial = (rank or self.pick(3, 4)) - 2
        sizes = (self.between(1, 2), self.between(1, 4), *(self.between(3, 7) for _ in range(spatial)))
        return self.constant(self.values(sizes, np.float32))

    def partner(self, x: str) -> str:
        """A value of the same type that broadcasts, perhaps an existing one."""
        known = self.known[x]
        fitting = [name for name, y in self.known.items() if y.dtype == known.dtype and y.shape == known.shape]
        if self.chance(0.3):
            return str(self.pick(*fitting))
        shape = tuple(1 if self.chance(0.3) else d for d in known.shape)[self.between(0, known.ndim) :]
        return self.constant(self.values(shape, known.dtype))
