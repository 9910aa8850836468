"""float16 and bfloat16 between nodes on the CPU → float32, with Casts where other nodes, or the user, read 16 bits.

The kernels of the CPU provider compute these types in float32. Values that only such kernels exchange stay float32, as
in native onnxruntime: sums beyond 65504 survive, and no kernel converts what it reads and writes. A Cast of the model
between such nodes is dropped, too.

Constants keep the type in which they are stored until they are packed. Then `widen_constants` gives each a Cast, which
the core computes when it makes the session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace

import onnx_ir as ir

from py_ort.compiler.passes.contracts import check_placed
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.graph import all_graphs, all_nodes, attribute, origins, remove, replace_value, set_origins
from py_ort.ir.operators import ML, operator
from py_ort.providers import CPU, PlacedNode

HALVES = (ir.DataType.FLOAT16, ir.DataType.BFLOAT16)
_FLOAT = ir.DataType.FLOAT
#: Operators that move elements of several inputs; of one: see `Operator.view` and `Operator.moves`.
_MOVES = ("Concat", "ScatterElements", "ScatterND", "TensorScatter", "Compress")
#: A number that is infinite as float16 need not be so as float32. The others have outputs of the types that they name.
#: GroupQueryAttention has a kernel of these types natively, too, and its caches would be converted in each step.
_EXACT = ("IsInf", "Cast", "CastLike", "BitCast", "GroupQueryAttention")
_TYPES = ("dtype", "output_dtype")


class WideHalves(Pass):
    """Compute groups of nodes in float32. A single node keeps its types: two Casts cost more than they save."""

    def __init__(self, placed: dict[ir.Node, PlacedNode], target: Target) -> None:
        """Say where nodes run; `placed` gets the new Casts, too."""
        self._placed = placed
        self._target = target

    def requires(self, model: ir.Model) -> None:
        """Nodes are placed."""
        super().requires(model)
        check_placed(model, self._placed.__getitem__)

    def call(self, model: ir.Model) -> int:
        """Widen each value that one such node makes and another one reads."""
        nodes = [
            node
            for node in all_nodes(model.graph)
            if not self._placed[node].on_device and (_read(node) or _halves(node.outputs))
        ]
        found = _Found(nodes, self._takes_floats)
        if found.wide:
            _Rewrite(model, found, self._placed).run(nodes)
        return len(found.wide)

    def _takes_floats(self, node: ir.Node) -> bool:
        dtypes = [None if v is None else _FLOAT if v.dtype in HALVES else v.dtype for v in node.inputs]
        return self._target.manifests[CPU].refusal(node.domain, node.op_type, dtypes, node) is None


class _Found:
    """Values that stay float32, by their producers and readers.

    Attributes:
        computing: Nodes that compute in float32.
        moving: Nodes that move elements, all of which can be float32.
        made: Values that can be float32 without a Cast: True if a node computes them, False behind a Cast of the model.
        wide: Values of `made` that a node reads as float32.
    """

    def __init__(self, nodes: list[ir.Node], takes_floats: Callable[[ir.Node], bool]) -> None:
        self.computing = {node for node in nodes if _computes(node) and takes_floats(node)}
        self.moving = set[ir.Node]()
        self.made = dict[ir.Value, bool]()
        for node in nodes:
            if node in self.computing:
                self.made.update((output, True) for output in _halves(node.outputs))
            elif _is_cast(node) and node.inputs[0] is not None and node.inputs[0].dtype == _FLOAT:
                self.made[node.outputs[0]] = False
            elif _moves(node) and (read := _read(node)) and all(v in self.made for v in read):
                self.moving.add(node)
                self.made.update((output, any(self.made[v] for v in read)) for output in _halves(node.outputs))
        self.wide = set[ir.Value]()
        for node in reversed(nodes):
            self.wide.update(v for v in _read(node) if v in self.made and self._reads_wide(node, v))

    def _reads_wide(self, node: ir.Node, value: ir.Value) -> bool:
        if node in self.moving:
            return not self.wide.isdisjoint(node.outputs)
        return node in self.computing or (_is_cast(node) and self.made[value] and not _halves(node.outputs))

    def is_widened(self, node: ir.Node) -> bool:
        """Return True if a node becomes one of float32."""
        if node in self.moving:
            return not self.wide.isdisjoint(node.outputs)
        return node in self.computing and not self.wide.isdisjoint((*_read(node), *node.outputs))


class _Rewrite:
    """Gives nodes their types, and puts Casts at the borders."""

    def __init__(self, model: ir.Model, found: _Found, placed: dict[ir.Node, PlacedNode]) -> None:
        self._model, self._found, self._placed = model, found, placed
        self._casts = _Casts(placed)
        self._narrow = dict[ir.Value, ir.DataType]()  # the types of values that were widened

    def run(self, nodes: list[ir.Node]) -> None:
        """Rewrite them."""
        widened = [node for node in nodes if self._found.is_widened(node)]
        self._narrow = {v: v.dtype for node in widened for v in _halves(node.outputs) if v.dtype is not None}
        for node in widened:
            for index, value in enumerate(node.inputs):
                if value in _read(node):
                    node.replace_input_with(index, self._as_float(value, node))
        casts = [
            node
            for node in nodes
            if _is_cast(node) and not _halves(node.outputs) and any(self._found.made.get(v) for v in _read(node))
        ]
        for value in self._narrow:
            value.type = ir.TensorType(_FLOAT)
        readers = {*widened, *casts}
        for value in self._narrow:
            for user, index in list(value.uses()):
                if user not in readers and not _reads_shape(user, index):
                    user.replace_input_with(index, self._as_half(value))
        for graph in all_graphs(self._model.graph):
            for index, value in enumerate(graph.outputs):
                if value in self._narrow:
                    narrow = graph.outputs[index] = self._as_half(value)
                    value.name, narrow.name = f"{value.name}__wide", value.name
        for node in casts:
            _drop_copy(node)
        for node in nodes:
            if _is_cast(node) and not node.outputs[0].uses() and not node.outputs[0].is_graph_output():
                remove(node)
                del self._placed[node]

    def _as_float(self, value: ir.Value, reader: ir.Node) -> ir.Value:
        maker = value.producer()
        if value in self._narrow:
            return value
        if value in self._found.wide and maker is not None and maker.inputs[0] is not None:
            return maker.inputs[0]  # of a Cast
        return self._casts.of(value, _FLOAT, reader)

    def _as_half(self, value: ir.Value) -> ir.Value:
        maker = value.producer()
        assert maker is not None
        return self._casts.of(value, self._narrow[value], maker)


class _Casts:
    """Inserts Casts on the CPU, one for each value, after its producer."""

    def __init__(self, placed: dict[ir.Node, PlacedNode]) -> None:
        self._placed = placed
        self._made = dict[ir.Value, ir.Value]()

    def of(self, value: ir.Value, to: ir.DataType, beside: ir.Node) -> ir.Value:
        """Return the value in another type. `beside`: the node that makes or reads it."""
        found = self._made.get(value)
        if found is None:
            node = ir.Node("", "Cast", [value], [ir.AttrInt64("to", int(to))], num_outputs=1, name=beside.name)
            set_origins(node, origins(beside))
            found = self._made[value] = node.outputs[0]
            found.type, found.shape, found.name = ir.TensorType(to), value.shape, f"{value.name}__{to.name.lower()}"
            maker, graph = value.producer(), value.graph
            assert isinstance(graph, ir.Graph)
            if maker is None:
                graph.insert_before(graph[0], node)
            else:
                graph.insert_after(maker, node)
            self._placed[node] = replace(self._placed[beside], op_type="Cast", domain="", kernel="Cast")
        return found


def widen_constants(model: ir.Model, placed: dict[ir.Node, PlacedNode]) -> dict[ir.Node, PlacedNode]:
    """Let nodes of the CPU that compute in float32 read their constants of 16 bits through Casts.

    Returns:
        Where each node runs, in the plan's order.
    """
    casts = _Casts(placed)
    for node in list(all_nodes(model.graph)):
        if placed[node].on_device or not (_computes(node) or _moves(node)):
            continue
        if _read(node) or _halves(node.outputs):
            continue
        for index, value in enumerate(node.inputs):
            if value is not None and value.dtype in HALVES and not _reads_shape(node, index):
                node.replace_input_with(index, casts.of(value, _FLOAT, node))
    return {node: placed[node] for node in all_nodes(model.graph)}


def _halves(values: Iterable[ir.Value | None]) -> list[ir.Value]:
    """Return the tensors of 16 bits that are no constants."""
    return [
        v
        for v in values
        if v is not None and v.dtype in HALVES and v.const_value is None and isinstance(v.type, ir.TensorType)
    ]


def _read(node: ir.Node) -> list[ir.Value]:
    """Return the inputs whose elements a node reads, not only their shapes."""
    return [v for i, v in enumerate(node.inputs) if v in _halves([v]) and not _reads_shape(node, i)]


def _reads_shape(node: ir.Node, index: int) -> bool:
    """Return True if a node reads only the shape of an input, and makes nothing of its type."""
    return operator(node.domain, node.op_type).use(node, index) == "shape" and not _halves(node.outputs)


def _is_cast(node: ir.Node) -> bool:
    return node.op_type == "Cast" and node.domain == ""


def _moves(node: ir.Node) -> bool:
    declared = operator(node.domain, node.op_type)
    return declared.view or declared.moves or (node.domain == "" and node.op_type in _MOVES)


def _computes(node: ir.Node) -> bool:
    """Return True if the floats that a node makes have the type of the floats that it reads."""
    declared = operator(node.domain, node.op_type)
    if declared.walked or declared.bodies or not declared.pure or node.domain == ML or node.op_type in _EXACT:
        return False
    if any(attribute(node, name) for name in _TYPES) or _moves(node):
        return False
    values = [v for v in (*node.inputs, *node.outputs) if v is not None and (v.uses() or v.is_graph_output())]
    return all(isinstance(v.type, ir.TensorType) for v in values)


def _drop_copy(cast: ir.Node) -> None:
    """Let readers of a Cast from float32 to float32 read its input."""
    source, made = cast.inputs[0], cast.outputs[0]
    if source is None or source.dtype != made.dtype:
        return
    if not made.is_graph_output() or (source.graph is made.graph and not source.is_graph_output()):
        replace_value(made, source)
