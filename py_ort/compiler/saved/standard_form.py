"""Writes the optimized graph as plain ONNX, for other runtimes: fused and internal operators become several nodes.

Epilogues of convolutions and products, the bias of MatMul. Operators of com.microsoft stay, and so do those of domains
that nobody else knows: such a file needs py_ort. Written between passes and layout, in the first opset, from 21 on,
that knows all its operators; above 1 GiB the tensors go to a file beside it (`onnx_writer.py`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from py_ort.compiler.saved.onnx_writer import Keep, OnnxWriter, inside
from py_ort.ir.block_products import OURS, is_block_product, is_plain
from py_ort.ir.epilogue import Epilogue, Step
from py_ort.ir.graph import dims
from py_ort.ir.operators import INTERNAL
from py_ort.ir.schemas import CANONICAL_OPSET, schema
from py_ort.ir.type_names import type_name
from py_ort.schema.dialect import (
    A_DYNAMIC,
    ATTENTION_KEPT,
    ATTENTION_LENGTHS,
    ATTENTION_MASK,
    ATTENTION_PAST_KEY,
    BYTE_TABLE,
    DYNAMIC_FAKE_QUANTIZE,
    EPILOGUE,
    FAKE_QUANTIZE,
    FAKE_QUANTIZE16,
    GATE,
    GROWS,
    GROWS_WITH,
    HEAD_SIZES,
    MASK_BROADCASTS,
    NAN_ROWS,
    NBITS_NORM,
    NBITS_RESIDUAL,
    NORM_EPSILON,
    OFFSETS,
    PRODUCT_BIAS,
    PRODUCT_RESIDUAL,
    W_SCALE,
)
from py_ort.schema.scalar_functions import FUNCTIONS

#: Attributes of fused operators that ONNX's own forms do not have.
FUSED = (EPILOGUE, W_SCALE)
_MICROSOFT = "com.microsoft"
_IR_VERSION = 10
#: Since this opset, operators got further types, inputs and attributes, and kept their meaning.
_FLOOR = 21
_ATTENTION_SINCE = 23
#: Attributes of Attention that ONNX's has not.
_ATTENTION = (OFFSETS, HEAD_SIZES, NAN_ROWS, MASK_BROADCASTS, GROWS, GROWS_WITH)
_LENGTHS_SINCE = 24
_ABSORBING = {ir.DataType.FLOAT: 2.0**64, ir.DataType.FLOAT16: 256.0}


class StandardForm(OnnxWriter):
    """Writes graphs that passes have been through, in the first opset that knows all their operators as they are."""

    def __init__(self, keep: Keep = inside) -> None:
        super().__init__(keep)
        self._since = _FLOOR

    def opsets(self, model: ir.Model) -> dict[str, int]:
        """Return the model's opsets, raised to those that the written nodes need."""
        return {**model.opset_imports, _MICROSOFT: 1, "": self._since}

    def ir_version(self, model: ir.Model) -> int:
        """Return one that knows these opsets, and that native onnxruntime knows."""
        return _IR_VERSION

    def node(self, proto: onnx.GraphProto, node: ir.Node) -> None:
        """Append a node, in its parts where it is more than ONNX's."""
        inputs = [self.name(v) for v in node.inputs]
        if node.domain == "" and node.op_type == "Swish":  # native onnxruntime has no kernel of it
            self.give(proto, node, self._swish(proto, node, inputs[0], get(node, "alpha", 1.0)))
        elif node.domain == "" and node.op_type == "Attention":
            self._attention(proto, node, inputs)
        elif node.domain == INTERNAL and node.op_type in FUNCTIONS:
            numbers = [get(node, name, default) for name, default in FUNCTIONS[node.op_type].parameters.items()]
            self.give(proto, node, self.function(proto, node, node.op_type, numbers, inputs[0]))
        elif node.domain == INTERNAL and node.op_type == BYTE_TABLE:
            # Bytes with a sign that are below 0 are indices from the end.
            x = self.emit(proto, "Cast", [inputs[0]], to=int(onnx.TensorProto.INT32))
            self.give(proto, node, self.emit(proto, "Gather", [inputs[1], x]))
        elif node.domain == INTERNAL and node.op_type == DYNAMIC_FAKE_QUANTIZE:
            self.give(proto, node, self._dynamic(proto, inputs[0]))
        elif is_block_product(node) and not is_plain(node):
            self.give(proto, node, self._block_product(proto, node, inputs))
        elif node.domain in ("", _MICROSOFT) and (
            any(name in node.attributes for name in FUSED) or len(inputs) > _inputs_of(node)
        ):
            self.give(proto, node, self.fused(proto, node, inputs, self._kept(node)))
        else:
            self._since = max(self._since, _since(node))
            super().node(proto, node)

    def _dynamic(self, proto: onnx.GraphProto, x: str) -> str:
        """Append nodes that round a tensor to 8 bits by its own range; return the result's name."""
        parts = [self._fresh() for _ in range(3)]
        proto.node.append(onnx.helper.make_node("DynamicQuantizeLinear", [x], parts))
        return self.emit(proto, "DequantizeLinear", parts)

    def _block_product(self, proto: onnx.GraphProto, node: ir.Node, inputs: list[str]) -> str:
        """Append a MatMulNBits, with the nodes before it and its epilogue; return the result's name."""
        norm, residual = (inputs[i] if i < len(inputs) else "" for i in (NBITS_NORM, NBITS_RESIDUAL))
        kept = {name: item.value for name, item in node.attributes.items() if name not in OURS}
        own, epilogue = inputs[:NBITS_NORM], Epilogue.of(node)
        added = {"residual": residual, "bias": own.pop() if epilogue.has("bias") else ""}
        if get(node, A_DYNAMIC, 0):
            own[0] = self._dynamic(proto, own[0])
        if norm:
            own[0] = self.emit(
                proto, "SimplifiedLayerNormalization", [own[0], norm], epsilon=get(node, NORM_EPSILON), axis=-1
            )
        while not own[-1]:
            own.pop()
        result = self.emit(proto, node.op_type, own, domain=node.domain, **kept)
        for each in epilogue.steps:
            result = self._step(proto, node, each, result, added)
        if GATE in node.attributes:
            half = get(node, "N") // 2
            halves = []
            for first in (0, half):
                bounds = [self.array(proto, np.array([n], np.int64)) for n in (first, first + half, -1)]
                halves.append(self.emit(proto, "Slice", [result, *bounds]))
            (step,) = Epilogue.parse(get(node, GATE)).steps
            gated = self.function(proto, node, step.function, list(step.numbers), halves[0])
            result = self.emit(proto, "Mul", [gated, halves[1]])
        last = residual and not epilogue.has("residual")
        return self.emit(proto, "Add", [result, residual]) if last else result

    def _kept(self, node: ir.Node) -> dict[str, Any]:
        return {name: item.value for name, item in node.attributes.items() if name not in FUSED}

    def fused(
        self, proto: onnx.GraphProto, node: ir.Node, inputs: list[str], attributes: dict[str, Any], z: str = ""
    ) -> str:
        """Append a Conv, ConvTranspose, Gemm or MatMul, and the nodes fused into it; return the result's name."""
        limit = _inputs_of(node)
        own = dict(enumerate(inputs[limit:], limit))  # inputs that ONNX's operator does not have
        bias, z = own.get(PRODUCT_BIAS, ""), z or own.get(PRODUCT_RESIDUAL, "")
        inputs = inputs[:limit]
        while not inputs[-1]:
            inputs.pop()
        domain = _MICROSOFT if node.domain == _MICROSOFT else ""
        result = self.emit(proto, node.op_type, inputs, domain=domain, **attributes)
        epilogue = Epilogue.of(node)
        if bias and not epilogue.has("bias"):
            result = self.emit(proto, "Add", [result, bias])
        for step in epilogue.steps:
            result = self._step(proto, node, step, result, {"residual": z, "bias": bias})
        return result

    def _step(self, proto: onnx.GraphProto, node: ir.Node, step: Step, result: str, added: Mapping[str, str]) -> str:
        """Append a step of an epilogue; bias and residual have these names. Return the result's name."""
        if step.kind == "function":
            return self.function(proto, node, step.function, list(step.numbers), result)
        more = added[step.kind] if step.kind in added else self._number(proto, node, step.numbers[0])
        return self.emit(proto, "Add", [result, more])

    def _attention(self, proto: onnx.GraphProto, node: ir.Node, inputs: list[str]) -> None:
        """Append an Attention, with slices for heads in wider rows, and a mask expanded to all rows and keys."""
        given = dict(enumerate(node.inputs))
        mask, keeps = given.get(ATTENTION_MASK), given.get(ATTENTION_KEPT)
        if keeps is not None and mask is not None and mask.dtype is not None:
            # No score makes a difference to numbers this large.
            dtype = mask.dtype.numpy()
            factor, least = (self.array(proto, np.array(n, dtype)) for n in (_ABSORBING[mask.dtype], _least(dtype)))
            large = self.emit(proto, "Max", [self.emit(proto, "Mul", [inputs[ATTENTION_MASK], factor]), least])
            inputs[ATTENTION_MASK] = self.emit(proto, "Where", [inputs[ATTENTION_KEPT], inputs[ATTENTION_MASK], large])
        inputs = inputs[:ATTENTION_KEPT]
        while not inputs[-1]:
            inputs.pop()
        if mask is not None and get(node, MASK_BROADCASTS):
            axis = len(dims(node.inputs[0]) or ()) - 2
            queries, keys = (self.emit(proto, "Shape", [name], start=axis, end=axis + 1) for name in inputs[:2])
            if given.get(ATTENTION_PAST_KEY) is not None:
                past = self.emit(proto, "Shape", [inputs[ATTENTION_PAST_KEY]], start=2, end=3)
                keys = self.emit(proto, "Add", [keys, past])
            plane = self.emit(proto, "Concat", [queries, keys], axis=0)
            inputs[ATTENTION_MASK] = self.emit(proto, "Expand", [inputs[ATTENTION_MASK], plane])
        if OFFSETS in node.attributes:
            heads, shared = get(node, "q_num_heads"), get(node, "kv_num_heads")
            size, value_size = get(node, HEAD_SIZES)
            for i, (count, each) in enumerate(((heads, size), (shared, size), (shared, value_size))):
                start = get(node, OFFSETS)[i]
                bounds = [self.array(proto, np.array([n], np.int64)) for n in (start, start + count * each, -1)]
                inputs[i] = self.emit(proto, "Slice", [inputs[i], *bounds])
                # ONNX's inference takes rows of unknown width to be of width 0.
                rows = node.inputs[i]
                if rows is not None and rows.dtype is not None and rows.shape is not None:
                    known = ir.Value(
                        name=inputs[i],
                        type=ir.TensorType(rows.dtype),
                        shape=ir.Shape([rows.shape[0], rows.shape[1], count * each]),
                    )
                    proto.value_info.append(ir.serde.serialize_value(known))
        kept = {name: item.value for name, item in node.attributes.items() if name not in _ATTENTION}
        self._since = max(self._since, _LENGTHS_SINCE if len(inputs) > ATTENTION_LENGTHS else _ATTENTION_SINCE)
        outputs = [self.name(v) for v in node.outputs]
        proto.node.append(onnx.helper.make_node("Attention", inputs, outputs, name=self.node_name(node), **kept))

    def function(self, proto: onnx.GraphProto, node: ir.Node, name: str, parameters: list[float], x: str) -> str:
        """Append a scalar function of a node's type, with its first parameters; return the result's name."""
        if name == "Clip":
            return self.emit(proto, "Clip", [x, *(self._number(proto, node, p) for p in parameters)])
        if name == "Swish":  # native onnxruntime has no kernel of it
            return self._swish(proto, node, x, parameters[0] if parameters else 1.0)
        if name in (FAKE_QUANTIZE, FAKE_QUANTIZE16):
            scale, zero = parameters
            zero_point = np.array(zero, np.uint8 if name == FAKE_QUANTIZE else np.uint16)
            steps = [self._number(proto, node, scale), self.array(proto, zero_point)]
            return self.emit(proto, "DequantizeLinear", [self.emit(proto, "QuantizeLinear", [x, *steps]), *steps])
        row = FUNCTIONS[name]
        given: dict[str, Any] = dict(zip(row.parameters, parameters, strict=False))
        if row.variant_of is not None:
            name, variant, value = row.variant_of
            given[variant] = value
        return self.emit(proto, name, [x], **given)

    def _swish(self, proto: onnx.GraphProto, node: ir.Node, x: str, alpha: float) -> str:
        scaled = x if alpha == 1.0 else self.emit(proto, "Mul", [x, self._number(proto, node, alpha)])
        return self.emit(proto, "Mul", [x, self.emit(proto, "Sigmoid", [scaled])])

    def give(self, proto: onnx.GraphProto, node: ir.Node, result: str) -> None:
        """Rename `result`, the output of the node appended last, to the name of `node`'s output."""
        made = proto.node[-1]
        assert made.output[0] == result
        made.output[0] = self.name(node.outputs[0])

    def emit(self, proto: onnx.GraphProto, op_type: str, inputs: list[str], **attributes: Any) -> str:
        """Append a node of ONNX; return its output's name."""
        output = self._fresh()
        proto.node.append(onnx.helper.make_node(op_type, inputs, [output], **attributes))
        return output

    def array(self, proto: onnx.GraphProto, contents: np.ndarray) -> str:
        """Add a constant; return its name."""
        name = self._fresh()
        proto.initializer.append(onnx.numpy_helper.from_array(np.ascontiguousarray(contents), name))
        return name

    def _number(self, proto: onnx.GraphProto, node: ir.Node, number: float) -> str:
        """Add a number of the type that the node computes in; return its name."""
        dtype = node.outputs[0].dtype or ir.DataType.FLOAT
        return self.array(proto, np.array(number, dtype.numpy()))

    def _fresh(self) -> str:
        self._count += 1
        name = f"standard_{self._count}"
        self._used.add(name)
        return name


def _least(dtype: np.dtype) -> float:
    return float(np.finfo(dtype).min)


def get(node: ir.Node, name: str, default: Any = None) -> Any:
    """Return an attribute's value."""
    item = node.attributes.get(name)
    return default if item is None else item.value


def _inputs_of(node: ir.Node) -> int:
    """How many inputs ONNX's form has, of the operators whose kernels take more."""
    known = {} if node.domain == _MICROSOFT else {"Conv": 3, "ConvTranspose": 3, "Gemm": 3, "MatMul": 2}
    return known.get(node.op_type, 1 << 30)


def _since(node: ir.Node) -> int:
    """The first opset, from `_FLOOR` on, whose form of the operator takes these inputs and attributes."""
    if node.domain != "":
        return _FLOOR
    found = schema("", node.op_type, CANONICAL_OPSET)
    while found is not None and found.since_version > _FLOOR:
        older = schema("", node.op_type, found.since_version - 1)
        if not _takes(older, node):
            return int(found.since_version)
        found = older
    return _FLOOR


def _takes(form: Any, node: ir.Node) -> bool:
    if form is None or not form.min_input <= len(node.inputs) <= form.max_input:
        return False
    if any(name not in form.attributes for name in node.attributes):
        return False
    for values, formals in ((node.inputs, form.inputs), (node.outputs, form.outputs)):
        for value, formal in zip(values, formals, strict=False):
            if value is not None and value.type is not None and type_name(value.type) not in formal.types:
                return False
    return True
