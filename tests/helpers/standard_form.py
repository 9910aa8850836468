"""Takes a compiled graph back to plain ONNX, so that native onnxruntime can say whether the compiler kept its meaning.

What the compiler adds (the NHWC domain, fused activations, fourth inputs, packed weights) is undone here by
independent code.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from py_ort.ops import NHWC
from py_ort.plan import CompiledModel

OPSET = 26
_PARAMETERS = {"LeakyRelu": ("alpha",), "HardSigmoid": ("alpha", "beta"), "Elu": ("alpha",), "Swish": ("alpha",)}
_OURS = ("activation", "activation_params", "weight_layout", "out_channels", "packed_n")


def standard_form(compiled: CompiledModel) -> onnx.ModelProto:
    """Return the compiled graph as a model of standard operators."""
    writer = _Writer()
    graph = writer.graph(compiled.model.graph, outer=True)
    imports = [onnx.helper.make_opsetid("", OPSET), onnx.helper.make_opsetid("com.microsoft", 1)]
    imports.append(onnx.helper.make_opsetid("ai.onnx.ml", 5))
    return onnx.helper.make_model(graph, opset_imports=imports, ir_version=10)


def run_native(
    model: onnx.ModelProto | str | bytes, feeds: dict[str, np.ndarray], optimise: bool = False
) -> list[np.ndarray]:
    """Run a model in native onnxruntime, unoptimised unless asked otherwise."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimise:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
    return session.run(None, feeds)


def unpack_panels(packed: np.ndarray, columns: int) -> np.ndarray:
    """[…, panels, K, 8] → […, K, columns], element by element."""
    *lead, _count, rows, width = packed.shape
    result = np.zeros((*lead, rows, columns), packed.dtype)
    for n in range(columns):
        result[..., n] = packed[..., n // width, :, n % width]
    return result


def unpack_conv(w: np.ndarray, node: ir.Node) -> np.ndarray:
    """Return a convolution's weights as ONNX has them."""
    layout = _get(node, "weight_layout")
    group = _get(node, "group", 1)
    if layout is None:
        return w
    kh, kw = _get(node, "kernel_shape")
    if node.op_type == "Conv":
        if layout == "HWIO":
            return np.einsum("hwio->oihw", w)
        out = _get(node, "out_channels")
        flat = unpack_panels(w, out // group)  # [group, kh * kw * inner, out / group]
        inner = flat.shape[1] // (kh * kw)
        return np.einsum("ghwio->goihw", flat.reshape(group, kh, kw, inner, out // group)).reshape(out, inner, kh, kw)
    if layout == "HWIO":
        return np.einsum("hwco->cohw", w)
    each = _get(node, "out_channels") // group
    flat = unpack_panels(w, kh * kw * each)  # [group, C / group, kh * kw * each]
    return np.einsum("gchwo->gcohw", flat.reshape(group, -1, kh, kw, each)).reshape(-1, each, kh, kw)


def _get(node: ir.Node, name: str, default: Any = None) -> Any:
    item = node.attributes.get(name)
    return default if item is None else item.value


class _Writer:
    def __init__(self) -> None:
        self._names: dict[ir.Value, str] = {}
        self._used: set[str] = set()
        self._count = 0

    def name(self, value: ir.Value | None) -> str:
        if value is None:
            return ""
        if value not in self._names:
            wanted = value.name or "v"
            while wanted in self._used:
                self._count += 1
                wanted = f"{value.name}_{self._count}"
            self._used.add(wanted)
            self._names[value] = wanted
        return self._names[value]

    def fresh(self) -> str:
        self._count += 1
        return f"standard_{self._count}"

    def graph(self, graph: ir.Graph, outer: bool = False) -> onnx.GraphProto:
        proto = onnx.GraphProto(name=graph.name or "graph")
        for value in graph.inputs:
            proto.input.append(self._info(value))
        self._initializers = proto.initializer
        for value in graph.initializers.values():
            if value.uses() or value.is_graph_output():
                self._constant(proto, value)
        for node in graph:
            self._node(proto, node)
        for value in graph.outputs:
            proto.output.append(self._info(value))
        return proto

    def _info(self, value: ir.Value) -> onnx.ValueInfoProto:
        info = onnx.ValueInfoProto(name=self.name(value))
        if value.type is not None:
            ir.serde.serialize_type_into(info.type, value.type)
        if value.shape is not None and isinstance(value.type, ir.TensorType):
            ir.serde.serialize_shape_into(info.type, value.shape)
        return info

    def _constant(self, proto: onnx.GraphProto, value: ir.Value) -> None:
        assert value.const_value is not None
        tensor = onnx.TensorProto()
        tensor.CopyFrom(
            ir.to_proto(ir.tensor(np.array(value.const_value.numpy())))
            if value.dtype != ir.DataType.STRING
            else ir.to_proto(value.const_value)
        )
        tensor.name = self.name(value)
        proto.initializer.append(tensor)

    def _array(self, proto: onnx.GraphProto, contents: np.ndarray) -> str:
        name = self.fresh()
        proto.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(contents), name))
        return name

    def _node(self, proto: onnx.GraphProto, node: ir.Node) -> None:
        fused = node.domain == NHWC or any(name in node.attributes for name in _OURS)
        fused = fused or (
            node.domain == ""
            and node.op_type in ("Conv", "MatMul")
            and len(node.inputs) > (3 if node.op_type == "Conv" else 2)
        )
        if node.domain == "" and node.op_type == "Swish":  # native onnxruntime has no kernel of it
            scaled = self._emit(
                proto,
                "Mul",
                [self.name(node.inputs[0]), self._array(proto, np.array(_get(node, "alpha", 1.0), np.float32))],
            )
            product = self._emit(proto, "Mul", [self.name(node.inputs[0]), self._emit(proto, "Sigmoid", [scaled])])
            proto.node.append(onnx.helper.make_node("Identity", [product], [self.name(node.outputs[0])]))
            return
        if not fused:
            made = onnx.NodeProto(op_type=node.op_type, domain=node.domain)
            made.input.extend(self.name(v) for v in node.inputs)
            made.output.extend(self.name(v) for v in node.outputs)
            for item in node.attributes.values():
                if item.type == ir.AttributeType.GRAPH:
                    made.attribute.append(onnx.helper.make_attribute(item.name, self.graph(item.value)))
                else:
                    made.attribute.append(ir.to_proto(item))
            proto.node.append(made)
            return
        self._fused(proto, node)

    def _emit(self, proto: onnx.GraphProto, op_type: str, inputs: list[str], **attributes: Any) -> str:
        output = self.fresh()
        proto.node.append(onnx.helper.make_node(op_type, inputs, [output], **attributes))
        return output

    def _fused(self, proto: onnx.GraphProto, node: ir.Node) -> None:
        nhwc = node.domain == NHWC
        inputs = [self.name(v) for v in node.inputs]
        if nhwc:
            inputs[0] = self._emit(proto, "Transpose", [inputs[0]], perm=[0, 3, 1, 2])
        z = None
        if node.op_type == "Conv" and len(inputs) > 3:
            z = self._emit(proto, "Transpose", [inputs[3]], perm=[0, 3, 1, 2]) if nhwc else inputs[3]
        bias = inputs[2] if node.op_type == "MatMul" and len(inputs) > 2 else None
        inputs = inputs[:2] if node.op_type == "MatMul" else inputs[:3]
        weights = node.inputs[1] if len(node.inputs) > 1 else None
        if _get(node, "weight_layout") is not None:
            inputs[1] = self._array(proto, unpack_conv(weights.const_value.numpy(), node))
        elif _get(node, "packed_n") is not None:
            inputs[1] = self._array(proto, unpack_panels(weights.const_value.numpy(), _get(node, "packed_n")))
        while inputs and not inputs[-1]:
            inputs.pop()
        kept = {name: item.value for name, item in node.attributes.items() if name not in _OURS}
        result = self._emit(proto, node.op_type, inputs, **kept)
        if bias is not None:
            result = self._emit(proto, "Add", [result, bias])
        if z is not None:
            result = self._emit(proto, "Add", [result, z])
        result = self._activation(proto, node, result)
        if nhwc:
            result = self._emit(proto, "Transpose", [result], perm=[0, 2, 3, 1])
        proto.node.append(onnx.helper.make_node("Identity", [result], [self.name(node.outputs[0])]))

    def _activation(self, proto: onnx.GraphProto, node: ir.Node, x: str) -> str:
        name, parameters = _get(node, "activation"), list(_get(node, "activation_params", ()))
        if not name:
            return x
        if name == "Clip":
            bounds = [self._array(proto, np.array(p, np.float32)) for p in parameters]
            return self._emit(proto, "Clip", [x, *bounds])
        if name == "GeluTanh":
            return self._emit(proto, "Gelu", [x], approximate="tanh")
        if name == "Swish":
            scaled = self._emit(proto, "Mul", [x, self._array(proto, np.array(parameters[0], np.float32))])
            return self._emit(proto, "Mul", [x, self._emit(proto, "Sigmoid", [scaled])])
        return self._emit(proto, name, [x], **dict(zip(_PARAMETERS.get(name, ()), parameters, strict=False)))
