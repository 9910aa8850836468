"""Makes a node part of the product that computes its input, if the product has no other reader."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import onnx_ir as ir

from py_ort.compiler.passes.match import only_for
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attributes_of, origins, remove, replace_value, set_origins


def absorb(host: ir.Node, reader: ir.Node) -> None:
    """Replace the host's only reader by the host, whose epilogue or weights already include the reader's operation."""
    set_origins(host, (*origins(host), *origins(reader)))
    replace_value(reader.outputs[0], host.outputs[0])
    remove(reader)


def absorb_with(host: ir.Node, reader: ir.Node, place: int, value: ir.Value | None, **changed: Any) -> None:
    """Make the host again where its only reader is, with one more input, which may be made after the host.

    Args:
        host: A node with fewer inputs than `place`, or as many.
        reader: It goes.
        place: The index of the input.
        value: The input.
        changed: Attributes that differ from the host's.
    """
    build = Builder(reader, origin=(*origins(host), *origins(reader)))
    inputs = [*host.inputs, *[None] * (place - len(host.inputs)), value]
    attributes = {**attributes_of(host), **changed}
    replace_value(reader.outputs[0], build.op(host.op_type, *inputs, domain=host.domain, **attributes))
    remove(reader)
    remove(host)


def summands(add: ir.Node) -> Iterator[tuple[ir.Node, ir.Value, ir.Value]]:
    """Yield each node that makes an operand for this node alone, with this operand and the other.

    The second operand comes first: the later of two products takes the other's result.
    """
    for x, z in (tuple(add.inputs[::-1]), tuple(add.inputs)):
        host = None if x is None else x.producer()
        if x is not None and z is not None and x is not z and host is not None and only_for(x, add):
            yield host, x, z
