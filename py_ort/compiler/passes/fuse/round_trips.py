"""QuantizeLinear → DequantizeLinear becomes FakeQuantize: to steps of integers and back, a function of floats.

Of 16 bits everywhere, of 8 for providers without operators between quantized tensors: the floats are those that the
integers stand for, products of them end in the next rounding (`passes/placed/quantized_ends.py`), and no tensor of
integers is written in between.
Results are the integers' own but for the last bits of sums, and so where a value lies between two steps, and for NaN,
which stays one.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.fuse.quantized import BYTES, QuantizedValue, fits_in_integers, quantization, quantized_by
from py_ort.compiler.passes.match import nodes_of, only_for
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.epilogue import Epilogue, has_epilogue
from py_ort.ir.graph import all_nodes, attribute, attributes_of, origins, remove, replace_value
from py_ort.ir.operators import INTERNAL, MICROSOFT, NHWC, op_types, roundings

_WORDS = (ir.DataType.INT16, ir.DataType.UINT16)
Kinds = Collection[ir.DataType]
Rounding = tuple[str, float, float]
"""The operator, its scale and its zero point, which counts from the least integer."""


class RoundTrips(Pass):
    """As few roundings as give the same."""

    after = ("quantized",)
    before = ("folding",)  # which makes floats of quantized weights

    def __init__(self, target: Target) -> None:
        """`target`: what the first provider runs; for one that works on quantized bytes these are left."""
        self._kinds = tuple(
            kind
            for kinds, rounded in (
                (BYTES, rounds_floats(target)),
                (_WORDS, target.has(INTERNAL, roundings()[16]) is True),
            )
            for kind in kinds
            if rounded
        )

    def call(self, model: ir.Model) -> int:
        """Take each QuantizeLinear that is undone; then move roundings to where numbers are made."""
        kinds = self._kinds
        count = sum(fits_in_integers(node, kinds) for node in nodes_of(model, "Relu", "Clip"))
        count += sum(_before_moves(node, kinds) for node in nodes_of(model, "DequantizeLinear"))
        count += sum(_round_trip(node, kinds) for node in nodes_of(model, "QuantizeLinear"))
        count += sum(_into_concat(node) for node in _roundings(model))
        return count + sum(_repeated(node) for node in _roundings(model))


def rounds_floats(target: Target) -> bool:
    """Whether the first provider computes with floats where a model has integers of 8 bits."""
    return target.has(INTERNAL, roundings()[8]) is True and target.has(MICROSOFT, "QLinearAdd") is not True


def _roundings(model: ir.Model) -> list[ir.Node]:
    return [node for node in all_nodes(model.graph) if is_rounding(node)]


def is_rounding(node: ir.Node) -> bool:
    """Whether a node is a FakeQuantize."""
    return node.domain == INTERNAL and node.op_type in roundings().values()


def _round_trip(node: ir.Node, kinds: Kinds) -> bool:
    made, x = quantized_by(node, kinds), node.inputs[0]
    if made is None or x is None or x.dtype != ir.DataType.FLOAT or x.const_value is not None:
        return False
    undone = [use.node for use in node.outputs[0].uses() if use.idx == 0 and _undoes(use.node, made)]
    if not undone:
        return False
    integers = np.iinfo(made.zeros.dtype)
    zero = int(made.zeros.reshape(-1)[0]) - integers.min
    name = roundings()[integers.bits]
    build = Builder(node, origin=[*origins(node), *(name for each in undone for name in origins(each))])
    rounded = build.op(name, x, domain=INTERNAL, scale=float(made.steps.reshape(-1)[0]), zero=float(zero))
    for each in undone:
        replace_value(each.outputs[0], rounded)
        remove(each)
    if not node.outputs[0].uses() and not node.outputs[0].is_graph_output():
        remove(node)
    return True


def _before_moves(node: ir.Node, kinds: Kinds) -> int:
    """Dequantize what was only moved since it was quantized where that was done; return before how many moves."""
    moved, moves = _moved(node.inputs[0])
    maker = None if moved is None else moved.producer()
    made = quantized_by(maker, kinds) if maker is not None and maker.op_type == "QuantizeLinear" else None
    if made is None:
        return 0
    for done, move in enumerate(moves):
        if not _moves_floats(move, made):
            return done
    return len(moves)


def _moves_floats(move: ir.Node, made: QuantizedValue) -> bool:
    """Dequantize before a move, if all that reads what it gives dequantizes that."""
    users = [use for output in move.outputs for use in output.uses()]
    if any(output.is_graph_output() for output in move.outputs):
        return False
    if not all(use.idx == 0 and _undoes(use.node, made) for use in users):
        return False
    build = Builder(move, origin=[*(name for use in users for name in origins(use.node)), *origins(move)])
    x = move.inputs[0]
    move.replace_input_with(0, build.op("DequantizeLinear", x, made.scale, made.zero_point))
    for output in move.outputs:
        output.type = ir.TensorType(ir.DataType.FLOAT)
    for use in users:
        moved = use.node.inputs[0]
        assert moved is not None
        replace_value(use.node.outputs[0], moved)
        remove(use.node)
    return True


def _undoes(node: ir.Node, made: QuantizedValue) -> bool:
    """Whether it gives out the floats that were quantized, in whole steps."""
    if node.domain != "" or node.op_type != "DequantizeLinear" or node.outputs[0].dtype != ir.DataType.FLOAT:
        return False
    found = quantization(node, node.inputs[0])
    if found is None or found.steps.size != 1:
        return False
    return bool((found.steps == made.steps).all() and (found.zeros == made.zeros).all())


def _rounding(node: ir.Node | None) -> Rounding | None:
    if node is None or not is_rounding(node):
        return None
    return node.op_type, attribute(node, "scale", 1.0), attribute(node, "zero", 0.0)


def steps_of(value: ir.Value | None) -> tuple[float, float] | None:
    """Return the scale and the zero point, of 256, of the steps that all elements of a value are in, if known."""
    found = _rounding_of(value)
    return found[1:] if found is not None and found[0] == roundings()[8] else None


def _rounding_of(value: ir.Value | None) -> Rounding | None:
    """How all elements of a value were rounded, if known."""
    made, _ = _moved(value)
    node = None if made is None else made.producer()
    if made is None or node is None:
        return None
    if (node.domain, node.op_type) == ("", "Concat"):
        found = {_rounding_of(part) for part in node.inputs}
        return found.pop() if len(found) == 1 else None
    if has_epilogue(node) and made is node.outputs[0]:
        return end_rounding(node)
    return _rounding(node)


def end_rounding(host: ir.Node) -> Rounding | None:
    """How a node's epilogue rounds at last; None where that is another function."""
    last = Epilogue.of(host).steps[-1]
    return (last.function, last.numbers[0], last.numbers[1]) if last.function in roundings().values() else None


def _into_concat(node: ir.Node) -> bool:
    """Round what is joined where it is made, which it is already, if in other steps."""
    value = node.inputs[0]
    concat = None if value is None else value.producer()
    if value is None or concat is None or (concat.domain, concat.op_type) != ("", "Concat"):
        return False
    if not only_for(value, node) or any(v is None or _rounding(v.producer()) is None for v in concat.inputs):
        return False
    build = Builder(concat, origin=origins(node))
    for i, each in enumerate(concat.inputs):
        concat.replace_input_with(i, build.op(node.op_type, each, domain=INTERNAL, **attributes_of(node)))
    replace_value(node.outputs[0], value)
    remove(node)
    return True


def _repeated(node: ir.Node) -> bool:
    """Take out a rounding of what was rounded so already, and only moved, picked or joined since."""
    if _rounding_of(node.inputs[0]) != _rounding(node):
        return False
    assert node.inputs[0] is not None
    replace_value(node.outputs[0], node.inputs[0])
    remove(node)
    return True


def _moved(value: ir.Value | None) -> tuple[ir.Value | None, list[ir.Node]]:
    """The elements of a value as they were made, and what only moved them since, the last first."""
    moves: list[ir.Node] = []
    while value is not None and (maker := value.producer()) is not None and is_move(maker):
        moves.append(maker)
        value = maker.inputs[0]
    return value, moves


def is_move(node: ir.Node) -> bool:
    """True if a node gives elements of its first input only, in order of size where it compares them."""
    moving = {"MaxPool", *op_types("moves"), *op_types("view")}
    return (
        node.domain in ("", NHWC)
        and node.op_type in moving
        and not (node.op_type == "MaxPool" and len(node.outputs) > 1)
    )
