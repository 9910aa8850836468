"""Random graphs over the operator tables: a node is added if native onnxruntime runs it, so every model is valid."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import onnx
from child import Child, ChildLost
from drawn_operators import DRAWS, MIXED_DRAWS
from drawn_operators.draft import Draft
from motifs import MOTIFS
from native_comparison import Trial
from onnx import helper, numpy_helper
from random_graphs import random_graph

_KINDS = {"f": ("float32",), "i": ("int32", "int64"), "b": ("bool",), "q": ("uint8", "int8")}
_MOST_ELEMENTS, _LARGEST = 4096, 1e3
_OPSETS = (18, 19, 20, 21, 21, 22, 23)
_OLD_OPSETS = range(7, 18)


class OperatorGraph:
    """Grows node by node; the contents of each value in a run are known."""

    def __init__(self, decide: random.Random, native: Child, *, mixed: bool = False) -> None:
        """Start with an image or a matrix as input. `mixed`: floats are float16, too."""
        self.decide, self._native = decide, native
        self._kinds = {**_KINDS, "f": ("float32", "float16")} if mixed else _KINDS
        self._draws = MIXED_DRAWS if mixed else DRAWS
        self._float: Any = np.float32  # of the last drawn value, for the other operands
        self._numbers = np.random.default_rng(decide.randrange(2**32))
        self.opset = decide.choice(_OPSETS if decide.random() < 0.7 else _OLD_OPSETS)
        self.nodes: list[onnx.NodeProto] = []
        self.values: dict[str, np.ndarray] = {}
        self.inputs: list[str] = []
        self.constants: list[str] = []
        self._drafted: list[tuple[str, np.ndarray, bool]] = []
        first = self._add_leaf(self._random_floats(self._shape(decide.choice([2, 3, 4, 4]))), fixed=False)
        self._keep(first)

    # --- values for drawing operators

    def value(self, kinds: str = "f", rank: int | None = None, least: int = 0) -> str:
        wanted = [name for kind in kinds for name in self._kinds[kind]]
        name = self._value(wanted, rank, least)
        if self.array(name).dtype.kind == "f":
            self._float = self.array(name).dtype
        return name

    def _value(self, wanted: list[str], rank: int | None, least: int) -> str:
        found = [
            name
            for name, array in self.values.items()
            if array.dtype.name in wanted and array.ndim >= least and rank in (None, array.ndim)
        ]
        if found and self.decide.random() < 0.85:
            return self.decide.choice(found[-6:])
        return self.leaf(
            self._made(self.decide.choice(wanted), self._shape(rank or max(least, self.decide.randint(0, 4))))
        )

    def array(self, name: str) -> np.ndarray:
        drafted = {each: array for each, array, _ in self._drafted}
        return drafted[name] if name in drafted else self.values[name]

    def leaf(self, contents: Any) -> str:
        return self._add_leaf(np.asarray(contents), fixed=self.decide.random() < 0.5)

    def fixed(self, contents: Any) -> str:
        return self._add_leaf(np.asarray(contents), fixed=self.decide.random() < 0.95)

    def floats(self, *shape: int) -> str:
        return self.leaf(self._random_floats(shape))

    def _add_leaf(self, contents: np.ndarray, *, fixed: bool) -> str:
        name = f"{'k' if fixed else 'x'}{len(self.values) + len(self._drafted)}"
        self._drafted.append((name, contents, fixed))
        return name

    def _shape(self, rank: int) -> tuple[int, ...]:
        return tuple(self.decide.choice([1, 1, 2, 2, 3, 4, 5, 6]) for _ in range(rank))

    def _random_floats(self, shape: Any) -> np.ndarray:
        return np.asarray(self._numbers.uniform(-2, 2, shape), self._float)

    def _made(self, kind: str, shape: tuple[int, ...]) -> np.ndarray:
        if kind.startswith("float"):
            return self._random_floats(shape).astype(kind)
        return np.asarray(self._numbers.integers(0, 2 if kind == "bool" else 5, shape)).astype(kind)

    # --- growing

    def grow(self, nodes: int) -> None:
        """Add nodes, as many as native accepts of several tries for each."""
        for _ in range(nodes * 6):
            if len(self.nodes) >= nodes:
                return
            self._drafted = []
            self._try(self.decide.choice(self._draws)(self))

    def _try(self, draft: Draft) -> None:
        outputs = [f"v{len(self.nodes)}_{i}" for i in range(draft.outputs)]
        inputs, moved = self._older_form(draft)
        attributes = {**draft.attributes, **moved}
        node = helper.make_node(draft.op_type, inputs, outputs, name=f"n{len(self.nodes)}", **attributes)
        feeds = {name: self.array(name) for name in inputs if name}
        results = _run(self._native, _model([node], feeds, {}, outputs, self.opset), feeds)
        if results is None or not all(map(_fit, results)):
            return
        for name in inputs:
            self._keep(name)
        self.nodes.append(node)
        self.values.update(zip(outputs, results, strict=True))

    def _older_form(self, draft: Draft) -> tuple[list[str], dict[str, Any]]:
        """Return the inputs, and those that are attributes at this graph's opset (axes, pads, k ...)."""
        if self.opset >= min(_OPSETS) or not onnx.defs.has(draft.op_type, self.opset, ""):
            return list(draft.inputs), {}
        attributes = onnx.defs.get_schema(draft.op_type, self.opset, "").attributes
        formal = [each.name.lower() for each in onnx.defs.get_schema(draft.op_type).inputs]
        inputs, moved = [], {}
        for k, name in enumerate(draft.inputs):
            said = formal[min(k, len(formal) - 1)]
            contents = self.array(name) if name else np.array([])
            if said not in attributes or (name and not contents.size):
                inputs.append(name)
            elif name:
                of_one = not attributes[said].type.name.endswith("S")
                moved[said] = contents.reshape(-1)[0].item() if of_one else contents.reshape(-1).tolist()
        return inputs, moved

    def _keep(self, name: str) -> None:
        for drafted, contents, fixed in self._drafted:
            if drafted == name and name not in self.values:
                self.values[name] = contents
                (self.constants if fixed else self.inputs).append(name)

    def model(self) -> tuple[bytes, dict[str, np.ndarray]]:
        """Return the model, some of its inputs' sizes open, and its feeds; unread values are outputs."""
        read = {name for node in self.nodes for name in node.input}
        made = [name for node in self.nodes for name in node.output]
        outputs = [name for name in made if name not in read or self.decide.random() < 0.1]
        feeds = {name: self.values[name] for name in self.inputs if name in read}
        constants = {name: self.values[name] for name in self.constants if name in read}
        openness = self.decide.choice([0.0, 0.0, 0.5, 1.0])
        model = _model(self.nodes, feeds, constants, outputs, self.opset, lambda: self.decide.random() < openness)
        return model, feeds


def _fit(array: Any) -> bool:
    if not isinstance(array, np.ndarray) or not 0 < array.size <= _MOST_ELEMENTS or array.ndim > 6:
        return False
    return array.dtype.kind != "f" or bool(np.isfinite(array).all() and np.abs(array).max() < _LARGEST)


def _model(
    nodes: list[onnx.NodeProto],
    feeds: dict[str, np.ndarray],
    constants: dict[str, np.ndarray],
    outputs: list[str],
    opset: int,
    is_open: Any = lambda: False,
) -> bytes:
    inputs = [
        helper.make_tensor_value_info(
            name,
            helper.np_dtype_to_tensor_dtype(array.dtype),
            [f"{name}_{i}" if is_open() else d for i, d in enumerate(array.shape)],
        )
        for name, array in feeds.items()
    ]
    graph = helper.make_graph(
        nodes,
        "random",
        inputs,
        [onnx.ValueInfoProto(name=name) for name in outputs],
        [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10).SerializeToString()


def _run(native: Child, model: bytes, feeds: dict[str, np.ndarray]) -> list[Any] | None:
    try:
        found = native.ask(model, feeds)
    except ChildLost:
        return None
    return list(found.outputs) if found.status == "ok" else None


def trials(seed: int, provider: str, native: Child, levels: tuple[int, ...] = (0, 1, 2, 3, 99)) -> list[Trial]:
    """Return the trials of a seed: one graph at each level."""
    decide = random.Random(f"graph {seed}")
    model, feeds = _with_motifs(decide) if seed % 4 == 0 else _of_operators(decide, native, mixed=seed % 4 == 1)
    return [Trial(model, feeds, provider, level, decide.choice(["0", "first"]), again=True) for level in levels]


def _of_operators(decide: random.Random, native: Child, *, mixed: bool) -> tuple[bytes, dict[str, np.ndarray]]:
    """A graph of all operators, or one of float16, float32, bools and integers with conversions."""
    graph = OperatorGraph(decide, native, mixed=mixed)
    graph.grow(decide.choice([1, 2, 4, 8, 12]))
    return graph.model()


def _with_motifs(decide: random.Random) -> tuple[bytes, dict[str, np.ndarray]]:
    """Draw a graph that has a motif, which passes look for, among nodes of networks."""
    graph = random_graph(decide, nodes=3)
    for name in decide.sample(list(MOTIFS), decide.randint(1, 2)):
        shapes = graph.shapes.items()
        images = [value for value, s in shapes if value not in graph.inner and len(s) == 4 and min(s[2:]) >= 3]
        graph.write(MOTIFS[name].make, images[-1])
        graph.grow()
    x = np.random.default_rng(decide.randrange(2**32)).standard_normal(graph.input_shape).astype(np.float32)
    return graph.model(symbolic=decide.random() < 0.5).SerializeToString(), {"x": x}
