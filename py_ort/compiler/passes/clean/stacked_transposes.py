"""Leading axes made one, the last two swapped, and the leading axes again → one Transpose.

So PyTorch's exporters swap the axes of keys of any rank.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.compiler.layout.forms import reshape_target
from py_ort.compiler.passes.match import made_by, same_size
from py_ort.compiler.passes.rewrite import rewrite
from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, dims, origins
from py_ort.ir.shape_data import product

_SWAPPED = (0, 2, 1)


@rewrite("Reshape", before=("reshapes",))  # which merge with others there
def stacked_transposes(node: ir.Node) -> bool:
    """Swap the axes without the Reshapes around a Transpose."""
    transpose = made_by(node.inputs[0], "Transpose")
    before = None if transpose is None else made_by(transpose.inputs[0], "Reshape")
    if transpose is None or before is None or tuple(attribute(transpose, "perm", ())) != _SWAPPED:
        return False
    source = before.inputs[0]
    wide, result, stack = dims(source), dims(node.outputs[0]), dims(before.outputs[0])
    if source is None or wide is None or result is None or stack is None or len(stack) == len(result):
        return False
    if len(result) < 3 or not same_size(product(result[:-2]), stack[0]):
        return False
    if not same_size(stack[-1], result[-2]) or not same_size(stack[-2], result[-1]):
        return False
    build = Builder(node, origin=(*origins(before), *origins(transpose), *origins(node)))
    swapped = [*result[:-2], result[-1], result[-2]]
    if len(wide) != len(swapped) or not all(map(same_size, wide, swapped)):
        target = reshape_target(swapped, wide)
        if target is None:
            return False
        source = build.op("Reshape", source, target)
        source.shape = ir.Shape(swapped)
    last = len(result) - 1
    build.finish(build.op("Transpose", source, perm=[*range(last - 1), last, last - 1]))
    return True
