"""Converts a compiled graph back to plain ONNX, so that native onnxruntime can check that the compiler kept its
meaning.

Independent code reverses layout and packing here; the package writes fused nodes in their parts.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
from native import native_session

from py_ort.compiler import CompiledModel
from py_ort.compiler.layout.packing import integer_weights
from py_ort.compiler.saved.standard_form import FUSED, StandardForm, get
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.operators import NHWC, PERMS
from py_ort.ir.programs import parse_program
from py_ort.schema.scalar_functions import FUNCTIONS

_NUMBERS = {"IsInf": ("detect_positive", "detect_negative")}
_COLUMNS = ("x_columns", "residual_columns", "y_columns", "into")
_OURS = (*FUSED, *_COLUMNS, *PERMS, "a_scale", "a_zero", "weight_layout", "out_channels", "packed_n", "packed_k")


def standard_form(compiled: CompiledModel) -> onnx.ModelProto:
    """Return the compiled graph as a model of standard operators."""
    return _Writer().model(compiled.model)


def run_native(
    model: onnx.ModelProto | str | bytes, feeds: dict[str, np.ndarray], optimize: bool = False
) -> list[np.ndarray]:
    """Run a model in native onnxruntime, unoptimized by default."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    if not optimize:
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    session = native_session(source, options)
    return session.run(None, feeds)


def _contents(weights: ir.Value) -> np.ndarray:
    """A constant, or one that a Cast widens."""
    if weights.const_value is not None:
        return weights.const_value.numpy()
    return weights.producer().inputs[0].const_value.numpy().astype(np.float32)


def unpack_panels(packed: np.ndarray, columns: int) -> np.ndarray:
    """[…, panels, K, 8] → […, K, columns], element by element."""
    *lead, _count, rows, width = packed.shape
    result = np.zeros((*lead, rows, columns), packed.dtype)
    for n in range(columns):
        result[..., n] = packed[..., n // width, :, n % width]
    return result


def unpack_integers(w: np.ndarray, node: ir.Node) -> np.ndarray:
    """Return 8-bit weights in panels [group…, panels, fours, 8, 4], OHWI or [N, K] in ONNX's order, but as int8."""
    layout = get(node, "weight_layout")
    if layout in ("OHWI", "IHWO"):
        return unpack_conv(w, node)
    if w.ndim == 2:
        return w.T
    *lead, count, fours, width, four = w.shape
    whole = np.moveaxis(w, (-3, -1), (-4, -3)).reshape(*lead, fours * four, count * width)
    if not lead:
        return whole[: _rows_of(node, len(whole)), : get(node, "packed_n")]
    kernel, columns = list(get(node, "kernel_shape")), get(node, "out_channels") // lead[0]
    taps = int(np.prod(kernel))
    inner = _rows_of(node, whole.shape[-2] // taps * lead[0]) // lead[0]
    split = whole[:, : taps * inner, :columns].reshape(*lead, taps, inner, columns)
    return split.transpose(0, 3, 2, 1).reshape(lead[0] * columns, inner, *kernel)


def _rows_of(node: ir.Node, room: int) -> int:
    """Rows of a product's B; channels of a convolution's image: for a symbolic size, as many as fit."""
    shape = node.inputs[0].shape
    plain = node.domain != NHWC and "weight_layout" in node.attributes
    size = shape[1 if plain else -1]
    return size if isinstance(size, int) else room


def unpack_conv(w: np.ndarray, node: ir.Node) -> np.ndarray:
    """Return a convolution's weights in ONNX's order."""
    layout = get(node, "weight_layout")
    group = get(node, "group", 1)
    if layout is None:
        return w
    kh, kw = get(node, "kernel_shape")
    if layout != "panel8":
        return np.einsum(f"{layout.lower()}->{'iohw' if node.op_type == 'ConvTranspose' else 'oihw'}", w)
    if node.op_type == "Conv":
        out = get(node, "out_channels")
        flat = unpack_panels(w, out // group)  # [group, kh * kw * inner, out / group]
        inner = flat.shape[1] // (kh * kw)
        return np.einsum("ghwio->goihw", flat.reshape(group, kh, kw, inner, out // group)).reshape(out, inner, kh, kw)
    each = get(node, "out_channels") // group
    flat = unpack_panels(w, kh * kw * each)  # [group, C / group, kh * kw * each]
    return np.einsum("gchwo->gcohw", flat.reshape(group, -1, kh, kw, each)).reshape(-1, each, kh, kw)


class _Writer(StandardForm):
    """Reverses the layout and the packing, too."""

    def node(self, proto: onnx.GraphProto, node: ir.Node) -> None:
        if node.op_type == "ElementwiseChain":
            self._chain(proto, node)
            return
        if {"x_parts", "y_parts"} & set(node.attributes):
            self._parts(proto, node)
            return
        if set(PERMS) & set(node.attributes):
            self._transposed(proto, node)
            return
        columns = any(name in node.attributes for name in _COLUMNS)
        if node.domain != NHWC and not columns and not {"weight_layout", "packed_n"} & set(node.attributes):
            super().node(proto, node)
            return
        if node.op_type == "RotaryEmbedding":
            self._rotary(proto, node)
            return
        if integers := integer_weights(node):
            self._integers(proto, node, integers[0])
            return
        nhwc = node.domain == NHWC
        inputs = [self.name(v) for v in node.inputs]
        wide = inputs.pop(get(node, "into")) if "into" in node.attributes else ""
        while inputs and not inputs[-1]:
            inputs.pop()
        self._cut_inputs(proto, node, inputs)
        weights = node.inputs[1] if len(inputs) > 1 else None
        if "weight_layout" in node.attributes:
            inputs[1] = self.array(proto, unpack_conv(_contents(weights), node))
        elif "packed_n" in node.attributes:
            inputs[1] = self.array(proto, unpack_panels(_contents(weights), get(node, "packed_n")))
        if nhwc:
            inputs = [
                self.emit(proto, "Transpose", [name], perm=[0, 3, 1, 2]) if i in (0, 3) and name else name
                for i, name in enumerate(inputs)
            ]
        kept = {name: item.value for name, item in node.attributes.items() if name not in _OURS}
        result = self.fused(proto, node, inputs, kept)
        if nhwc:
            result = self.emit(proto, "Transpose", [result], perm=[0, 2, 3, 1])
        if "y_columns" in node.attributes:
            result = self._put_into(proto, node, result, wide)
        self.give(proto, node, result)

    def _integers(self, proto: onnx.GraphProto, node: ir.Node, index: int) -> None:
        """Append a product or convolution of integers with its weights, input `index`, in ONNX's order."""
        inputs = [self.name(value) for value in node.inputs]
        if {"weight_layout", "packed_n"} & set(node.attributes):
            inputs[index] = self.array(proto, unpack_integers(node.inputs[index].const_value.numpy(), node))
        kept = {name: item.value for name, item in node.attributes.items() if name not in _OURS}
        if node.domain == NHWC:
            inputs[0] = self.emit(proto, "Transpose", inputs[:1], perm=[0, 3, 1, 2])
            result = self.emit(proto, node.op_type, inputs, **kept)
            result = self.emit(proto, "Transpose", [result], perm=[0, 2, 3, 1])
        else:
            result = self.emit(proto, node.op_type, inputs, domain=node.domain, **kept)
        for step in Epilogue.of(node).steps:
            result = self.function(proto, node, step.function, list(step.numbers), result)
        self.give(proto, node, result)

    def _parts(self, proto: onnx.GraphProto, node: ir.Node) -> None:
        """Append a product that has its result in one part, or a normalization of the sum of parts."""
        inputs = [self.name(value) for value in node.inputs]
        first = self.array(proto, np.zeros(1, np.int64))
        if "y_parts" in node.attributes:
            product = self.emit(proto, node.op_type, inputs)
            self.give(proto, node, self.emit(proto, "Unsqueeze", [product, first]))
            return
        inputs[0] = self.emit(proto, "ReduceSum", [inputs[0], first], keepdims=0)
        kept = {name: item.value for name, item in node.attributes.items() if name != "x_parts"}
        outputs = [self.name(value) for value in node.outputs]
        proto.node.append(
            onnx.helper.make_node(node.op_type, inputs, outputs, name=self.node_name(node), domain=node.domain, **kept)
        )

    def _transposed(self, proto: onnx.GraphProto, node: ir.Node) -> None:
        """Append a product with transposes around it."""
        inputs = [self.name(value) for value in node.inputs]
        perms = [get(node, name, None) for name in PERMS]
        for i, perm in enumerate(perms[:2]):
            if perm is not None:
                inputs[i] = self.emit(proto, "Transpose", [inputs[i]], perm=perm)
        kept = {name: item.value for name, item in node.attributes.items() if name not in _OURS}
        result = self.fused(proto, node, inputs, kept)
        self.give(proto, node, result if perms[2] is None else self.emit(proto, "Transpose", [result], perm=perms[2]))

    def _rotary(self, proto: onnx.GraphProto, node: ir.Node) -> None:
        inputs = [self.name(value) for value in node.inputs]
        self._cut_inputs(proto, node, inputs)
        kept = {name: item.value for name, item in node.attributes.items() if name not in _COLUMNS}
        outputs = [self.name(value) for value in node.outputs]
        self._since = max(self._since, 23)
        proto.node.append(
            onnx.helper.make_node(node.op_type, inputs, outputs, name=self.node_name(node), domain=node.domain, **kept)
        )

    def _cut_inputs(self, proto: onnx.GraphProto, node: ir.Node, inputs: list[str]) -> None:
        """Cut columns out of the wider tensors they are in."""
        given = list(get(node, "x_columns", ()))
        found = {i: given[2 * i : 2 * i + 2] for i in range(len(given) // 2)}
        found |= {3: get(node, "residual_columns")} if "residual_columns" in node.attributes else {}
        for i, (first, count) in found.items():
            bounds = [self.array(proto, np.array([n], np.int64)) for n in (first, first + count, -1)]
            inputs[i] = self.emit(proto, "Slice", [inputs[i], *bounds])

    def _put_into(self, proto: onnx.GraphProto, node: ir.Node, result: str, wide: str) -> str:
        """Put columns into a wider tensor, of zeros if the node makes it."""
        first, width = get(node, "y_columns")
        size = self.emit(proto, "Shape", [result], start=-1)
        start, every = (self.array(proto, np.array([n], np.int64)) for n in (first, width))
        end = self.emit(proto, "Add", [start, size])
        axis, none = (self.array(proto, np.array([n], np.int64)) for n in (-1, 0))
        if wide:
            before = self.emit(proto, "Slice", [wide, none, start, axis])
            behind = self.emit(proto, "Slice", [wide, end, every, axis])
            return self.emit(proto, "Concat", [before, result, behind], axis=-1)
        others = self.array(proto, np.zeros(len(node.outputs[0].shape or ()) - 1, np.int64))
        pads = self.emit(proto, "Concat", [others, start, others, self.emit(proto, "Sub", [every, end])], axis=0)
        return self.emit(proto, "Pad", [result, pads])

    def _chain(self, proto: onnx.GraphProto, node: ir.Node) -> None:
        """Write a chain's instructions as their original nodes."""
        assert node.op_type == "ElementwiseChain"
        inputs = [self.name(value) for value in node.inputs]
        self._cut_inputs(proto, node, inputs)
        result = self._program(proto, node, get(node, "program"), inputs)
        if get(node, "perm", None):
            result = self.emit(proto, "Transpose", [result], perm=get(node, "perm"))
        if get(node, "reduction", None):
            axes = self.array(proto, np.array(get(node, "axes"), np.int64))
            result = self.emit(proto, get(node, "reduction"), [result, axes], keepdims=get(node, "keepdims"))
        if get(node, "finish", None):
            result = self._program(proto, node, get(node, "finish"), [result])
        self.give(proto, node, result)

    def _program(self, proto: onnx.GraphProto, node: ir.Node, program: str, names: list[str]) -> str:
        dtype = node.outputs[0].dtype or ir.DataType.FLOAT
        for each in parse_program(program):
            op_type, numbers = each.op, list(each.numbers)
            operands = [names[register] for register in each.registers]
            if op_type == "Number":
                names.append(self.array(proto, np.array(numbers[0], dtype.numpy())))
            elif op_type in FUNCTIONS:
                names.append(self.function(proto, node, op_type, numbers, operands[0]))
            elif op_type == "Pow":
                exponent = self.array(proto, np.array(numbers[0], dtype.numpy()))
                names.append(self.emit(proto, "Pow", [*operands, exponent]))
            else:
                attributes = {name: int(value) for name, value in zip(_NUMBERS.get(op_type, ()), numbers, strict=False)}
                attributes |= {"Cast": {"to": int(dtype)}, "Mod": {"fmod": 1}}.get(op_type, {})
                names.append(self.emit(proto, op_type, operands, **attributes))
        return names[-1]
