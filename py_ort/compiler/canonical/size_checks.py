"""Checks of sizes that ONNX's own inference leaves to the kernels, made once it is known which nodes stay.

Kernels on the GPU cannot fail for what they read, so constant indices are checked here as well.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import onnx_ir as ir

from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import all_nodes, array, attribute, dims
from py_ort.ir.rules import Rules
from py_ort.schema.operand_sizes import check, contract

_LARGEST = 2**31 - 1
_check_indices = Rules[Callable[[ir.Node], None]]()


def check_sizes(model: ir.Model) -> None:
    """Check the outputs' sizes, operands against their contracts, and constant indices.

    Raises:
        InvalidGraph: A node cannot run.
    """
    # A model that declares larger inputs than there can be is never run, so it may be loaded, as in onnxruntime.
    fed = (d for value in model.graph.inputs for d in dims(value) or () if isinstance(d, int))
    largest = _LARGEST if max(fed, default=0) <= _LARGEST else math.inf
    for node in all_nodes(model.graph):
        for output in node.outputs:
            sizes = dims(output)
            if sizes and any(isinstance(d, int) and not 0 <= d <= largest for d in sizes):
                shape = ", ".join(map(str, sizes))
                raise inconsistent(node, f"its output would have the shape [{shape}]; sizes are 0 to {_LARGEST}")
        _contract(node)
        # A branch may be there for other sizes, and never be taken.
        check = _check_indices.of(node) if node.graph is model.graph else None
        if check is not None:
            check(node)


def _contract(node: ir.Node) -> None:
    """Hold static sizes against the operator's contract."""
    rules = contract(node.domain, node.op_type)
    if rules is None:
        return
    sizes = [
        None if value is None or (known := dims(value)) is None else [d if isinstance(d, int) else None for d in known]
        for value in node.inputs
    ]
    broken = check(rules, sizes, {name: attribute(node, name, default) for name, default in rules.attributes.items()})
    if broken is not None:
        raise inconsistent(node, broken)


@_check_indices("Gather", "GatherElements", "GatherND", "ScatterElements", "ScatterND")
def _indices(node: ir.Node) -> None:
    x, indices = dims(node.inputs[0]), array(node.inputs[1])
    if not x or indices is None or indices.size == 0 or (indices.ndim == 0 and node.op_type.endswith("ND")):
        return
    if node.op_type.endswith("ND"):
        first = attribute(node, "batch_dims", 0)
        columns = [(first + k, indices[..., k]) for k in range(indices.shape[-1])]
    else:
        columns = [(attribute(node, "axis", 0) % len(x), indices)]
    for axis, column in columns:
        size, least, most = x[axis], int(np.min(column)), int(np.max(column))
        if isinstance(size, int) and (least < -size or most >= size):
            wrong = most if most >= size else least
            raise inconsistent(node, f"index {wrong} is outside of axis {axis}, which has {size} elements")
