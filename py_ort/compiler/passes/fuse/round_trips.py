"""QuantizeLinear → DequantizeLinear becomes FakeQuantize: to steps of integers and back, a function of floats.

Of 16 bits everywhere, of 8 for providers without operators between quantized tensors: the floats are those that the
integers stand for, products of them end in the next rounding (`passes/placed/quantized_ends.py`), and no tensor of
integers is written in between.
Results are the integers' own but for the last bits of sums, and so where a value lies between two steps, and for NaN,
which stays one.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.passes.fuse.quantized import fits_in_integers
from py_ort.compiler.passes.match import nodes_of, only_for
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.quantization import (
    BYTES,
    Kinds,
    Quantization,
    is_rounding,
    moved,
    quantized_by,
    rounding_by,
    rounding_of,
    rounds_floats,
)
from py_ort.compiler.target import Target
from py_ort.ir.builder import Builder
from py_ort.ir.graph import all_nodes, attributes_of, origins, remove, replace_value
from py_ort.ir.operators import INTERNAL, roundings

_WORDS = (ir.DataType.INT16, ir.DataType.UINT16)


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


def _roundings(model: ir.Model) -> list[ir.Node]:
    return [node for node in all_nodes(model.graph) if is_rounding(node)]


def _round_trip(node: ir.Node, kinds: Kinds) -> bool:
    made, x = quantized_by(node, kinds), node.inputs[0]
    if made is None or x is None or x.dtype != ir.DataType.FLOAT or x.const_value is not None:
        return False
    undone = [use.node for use in node.outputs[0].uses() if use.idx == 0 and _undoes(use.node, made)]
    if not undone:
        return False
    name = roundings()[made.limits.bits]
    build = Builder(node, origin=[*origins(node), *(name for each in undone for name in origins(each))])
    rounded = build.op(name, x, domain=INTERNAL, scale=made.step, zero=float(made.zero - made.limits.min))
    for each in undone:
        replace_value(each.outputs[0], rounded)
        remove(each)
    if not node.outputs[0].uses() and not node.outputs[0].is_graph_output():
        remove(node)
    return True


def _before_moves(node: ir.Node, kinds: Kinds) -> int:
    """Move dequantizations up to the quantization, over nodes that move elements; return their number."""
    source, moves = moved(node.inputs[0])
    made = quantized_by(None if source is None else source.producer(), kinds)
    if made is None:
        return 0
    for done, move in enumerate(moves):
        if not _moves_floats(move, made):
            return done
    return len(moves)


def _moves_floats(move: ir.Node, made: Quantization) -> bool:
    """Dequantize before a node that moves elements, if all readers of its outputs dequantize them."""
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
        floats = use.node.inputs[0]
        assert floats is not None
        replace_value(use.node.outputs[0], floats)
        remove(use.node)
    return True


def _undoes(node: ir.Node, made: Quantization) -> bool:
    """Return True if a node returns the quantized floats, in whole steps."""
    if node.domain != "" or node.op_type != "DequantizeLinear" or node.outputs[0].dtype != ir.DataType.FLOAT:
        return False
    found = Quantization.of(node, (made.integers.dtype,))
    return found is not None and found.equals(made)


def _into_concat(node: ir.Node) -> bool:
    """Move a rounding from a Concat's output to its inputs, if each is already rounded, perhaps in other steps."""
    value = node.inputs[0]
    concat = None if value is None else value.producer()
    if value is None or concat is None or (concat.domain, concat.op_type) != ("", "Concat"):
        return False
    if not only_for(value, node) or any(v is None or rounding_by(v.producer()) is None for v in concat.inputs):
        return False
    build = Builder(concat, origin=origins(node))
    for i, each in enumerate(concat.inputs):
        concat.replace_input_with(i, build.op(node.op_type, each, domain=INTERNAL, **attributes_of(node)))
    replace_value(node.outputs[0], value)
    remove(node)
    return True


def _repeated(node: ir.Node) -> bool:
    """Remove a rounding of values that are rounded alike already, and were only moved, picked or joined since."""
    if rounding_of(node.inputs[0]) != rounding_by(node):
        return False
    assert node.inputs[0] is not None
    replace_value(node.outputs[0], node.inputs[0])
    remove(node)
    return True
