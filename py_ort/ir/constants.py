"""Constant nodes and their tensors."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir

from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import add_constant, attribute, remove


def hoist_constant(node: ir.Node) -> int:
    """Make an initializer of a Constant node; return 1."""
    graph = node.graph
    assert isinstance(graph, ir.Graph)
    tensor = constant_tensor(node)
    output = node.outputs[0]
    if output.is_graph_output():
        if output.dtype not in (None, tensor.dtype):
            raise inconsistent(node, f"output {output.name!r} is declared as {output.dtype}, and is {tensor.dtype}")
        value = add_constant(graph, tensor, output.name)
        copy = ir.Node("", "Identity", [value], outputs=None, num_outputs=1, name=node.name)
        graph.insert_before(node, copy)
        copy.outputs[0].type, copy.outputs[0].shape = value.type, value.shape
        name = output.name
        output.replace_all_uses_with(copy.outputs[0], replace_graph_outputs=True)
        remove(node)
        copy.outputs[0].name = name
        return 1
    value = ir.Value(
        name=output.name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(tensor.shape.numpy()), const_value=tensor
    )
    output.replace_all_uses_with(value)
    remove(node)
    graph.register_initializer(value)
    return 1


def constant_tensor(node: ir.Node) -> ir.TensorProtocol:
    """Return the tensor of a Constant node."""
    kinds = {"value_float": np.float32, "value_floats": np.float32, "value_int": np.int64, "value_ints": np.int64}
    for name, dtype in kinds.items():
        if name in node.attributes:
            return ir.tensor(np.array(attribute(node, name), dtype))
    for name in ("value_string", "value_strings"):
        if name in node.attributes:
            found = attribute(node, name)
            texts = [found] if isinstance(found, (str, bytes)) else list(found)
            raw = [t.encode() if isinstance(t, str) else t for t in texts]
            return ir.StringTensor(raw, shape=ir.Shape([] if name == "value_string" else [len(raw)]))
    return attribute(node, "value")
