"""Computes nodes whose inputs are constants, and shapes that are known."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ops import operator
from py_ort.ops.builder import add_constant, all_nodes, array, dims, remove, subgraphs, tensor_of
from py_ort.ops.infer import infer_again, newest_opset
from py_ort.ops.shape_data import shape_data
from py_ort.passes.pass_base import Pass

# A folded constant is sent to the page as a weight. What old models compute from shapes (weights of ConstantOfShape)
# may be large.
_LIMIT_BYTES = 1 << 30
_LIMIT_GROWTH = 64 << 20  # what other operators may add
_NEVER = frozenset({"Constant", "If", "Loop", "Scan", "SequenceMap"})


class Folding(Pass):
    """Constant folding."""

    def __init__(self, *, shapes: bool = True) -> None:
        """`shapes`: also fold what depends on shapes only."""
        self._shapes = shapes

    def call(self, model: ir.Model) -> int:
        """Fold in order, and infer anew what reads the results: shapes depend on them, and more to fold on shapes."""
        count = 0
        better: set[ir.Value | None] = set()
        for node in list(all_nodes(model.graph)):
            if node.graph is None or node.op_type in _NEVER or subgraphs(node) or _gives_out(node):
                continue
            if not better.isdisjoint(node.inputs):
                better.update(infer_again(node))
            results = self._fold(node)
            if results is None:
                continue
            better.update(_replace(node, results))
            count += 1
        return count

    def _fold(self, node: ir.Node) -> Sequence[ir.TensorProtocol] | None:
        if self._shapes and node.domain == "" and len(node.outputs) == 1:
            known = _from_shapes(node)
            if known is not None:
                return [tensor_of(known)]
        declared = operator(node.domain, node.op_type)
        if not declared.pure or not node.inputs or any(v is not None and v.const_value is None for v in node.inputs):
            return None
        if all(v is None for v in node.inputs) or any(
            isinstance(v.const_value, ir.LazyTensor) for v in node.inputs if v is not None
        ):
            return None
        if _too_big(node) or any(o.type is not None and not isinstance(o.type, ir.TensorType) for o in node.outputs):
            return None
        arrays = [array(v) for v in node.inputs]
        results = _compute(node, declared.fold, arrays)
        if (
            results is None
            or len(results) < len(node.outputs)
            or any(r is None or isinstance(r, list) for r in results)
        ):
            return None
        return [_tensor(r, node.outputs[i]) for i, r in enumerate(results[: len(node.outputs)])]


def _gives_out(node: ir.Node) -> bool:
    """Whether it is there because a graph cannot give out a constant itself."""
    return node.op_type == "Identity" and node.domain == "" and node.outputs[0].is_graph_output()


def _from_shapes(node: ir.Node) -> np.ndarray | None:
    """The elements that shape arithmetic gave, when all are numbers."""
    output = node.outputs[0]
    elements = shape_data(output)
    if elements is None or not all(isinstance(e, int) for e in elements) or output.dtype is None:
        return None
    known = dims(output)
    if known is None or len(known) > 1 or output.dtype.numpy().kind not in "iu":
        return None
    return np.array(elements, output.dtype.numpy()).reshape([len(elements)] if known else [])


def _too_big(node: ir.Node) -> bool:
    size = 1
    for output in node.outputs:
        known = dims(output)
        if known is None or not all(isinstance(d, int) for d in known):
            continue
        size = max(size, int(np.prod([int(d) for d in known], dtype=np.int64)))  # type: ignore[arg-type]
    itemsize = node.outputs[0].dtype.itemsize if node.outputs[0].dtype is not None else 4
    if node.op_type == "ConstantOfShape":
        return size * itemsize > _LIMIT_BYTES
    inputs = sum(v.const_value.nbytes for v in node.inputs if v is not None and v.const_value is not None)
    return size * itemsize > inputs + _LIMIT_GROWTH


def _compute(node: ir.Node, fold: Any, arrays: list[np.ndarray | None]) -> Sequence[Any] | None:
    if fold is not None and node.domain == "":
        try:
            with np.errstate(all="ignore"):
                result = fold(node, arrays)
        except (ValueError, IndexError, TypeError):
            return None  # not a legal node: the kernel shall say so, with its name, at run time
        if result is None:
            return None
        return result if isinstance(result, tuple) else (result,)
    return _reference(node, arrays)


def _reference(node: ir.Node, arrays: list[np.ndarray | None]) -> Sequence[Any] | None:
    """Ask ONNX's reference implementation."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    if node.domain not in ("", "ai.onnx.ml"):
        return None
    proto = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
    feeds = {}
    for i, contents in enumerate(arrays):
        proto.input.append("" if contents is None else f"i{i}")
        if contents is not None:
            feeds[f"i{i}"] = contents
    proto.output.extend(f"o{i}" for i in range(len(node.outputs)))
    proto.attribute.extend(ir.serde.serialize_attribute(item) for item in node.attributes.values())
    inputs = [
        onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
        for name, a in feeds.items()
    ]
    outputs = [onnx.helper.make_empty_tensor_value_info(name) for name in proto.output]
    graph = onnx.helper.make_graph([proto], "fold", inputs, outputs)
    imports = [onnx.helper.make_opsetid("", newest_opset()), onnx.helper.make_opsetid("ai.onnx.ml", 5)]
    try:
        with np.errstate(all="ignore"):
            return list(ReferenceEvaluator(onnx.helper.make_model(graph, opset_imports=imports)).run(None, feeds))
    except Exception:  # it raises whatever numpy raises; the node then simply stays
        return None


def _tensor(result: Any, output: ir.Value) -> ir.TensorProtocol:
    contents = np.asarray(result)
    if output.dtype is not None and contents.dtype != output.dtype.numpy() and contents.dtype.kind in "fiub":
        contents = contents.astype(output.dtype.numpy())
    return tensor_of(contents)


def _replace(node: ir.Node, results: Sequence[ir.TensorProtocol]) -> list[ir.Value]:
    graph = node.graph
    assert graph is not None
    made = []
    for output, tensor in zip(node.outputs, results, strict=True):
        if not output.uses() and not output.is_graph_output():
            continue
        value = add_constant(graph, tensor, output.name)
        made.append(value)
        if output.is_graph_output():
            copy = ir.Node("", "Identity", [value], num_outputs=1)
            graph.insert_after(node, copy)
            copy.outputs[0].type, copy.outputs[0].shape = value.type, value.shape
            name = output.name
            output.replace_all_uses_with(copy.outputs[0], replace_graph_outputs=True)
            output.name, copy.outputs[0].name = f"{name}__folded", name
        else:
            output.replace_all_uses_with(value)
    remove(node)
    return made
