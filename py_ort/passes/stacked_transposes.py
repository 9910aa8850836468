"""Leading axes made one, the last two swapped, and the leading axes again → one Transpose.

So PyTorch's exporters swap the axes of keys of any rank.
"""

from __future__ import annotations

import onnx_ir as ir

from py_ort.ops.builder import Builder, attribute, dims, origins, rank
from py_ort.passes.match import made_by, nodes_of, same_size
from py_ort.passes.pass_base import Pass

_SWAPPED = (0, 2, 1)


class StackedTransposes(Pass):
    """Reshape to three axes, Transpose, Reshape."""

    def call(self, model: ir.Model) -> int:
        """Take each Reshape of a Transpose of a Reshape."""
        return sum(_fuse(node) for node in nodes_of(model, "Reshape"))


def _fuse(node: ir.Node) -> bool:
    turn = made_by(node.inputs[0], "Transpose")
    before = None if turn is None else made_by(turn.inputs[0], "Reshape")
    if turn is None or before is None or tuple(attribute(turn, "perm", ())) != _SWAPPED:
        return False
    source = before.inputs[0]
    wide, result, stack = dims(source), dims(node.outputs[0]), dims(before.outputs[0])
    if source is None or wide is None or result is None or stack is None or len(wide) < 3 or len(wide) != len(result):
        return False
    same = [*wide[:-2], wide[-1], wide[-2]]
    if not all(map(same_size, same, result)) or not same_size(stack[-1], wide[-1]):
        return False
    if not same_size(stack[-2], wide[-2]) or rank(source) == rank(before.outputs[0]):
        return False
    last = len(wide) - 1
    build = Builder(node, origin=(*origins(before), *origins(turn), *origins(node)))
    build.finish(build.op("Transpose", source, perm=[*range(last - 1), last, last - 1]))
    return True
