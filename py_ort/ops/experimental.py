"""Operators that ONNX had as experiments, below opset 10: old converters wrote them, and onnxruntime runs them."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import attribute, dims, rank, set_attributes
from py_ort.ir.operators import EARLIER_SCHEMAS, lowering

_BEFORE = 10
#: Where ONNX's own definition begins of what onnxruntime has since opset 1. Its optimizer writes LayerNormalization.
_DEFINED_SINCE = {"LayerNormalization": 17, "ThresholdedRelu": 10}
_LAST = 2**63 - 1


@lru_cache
def _earlier_schema(op_type: str, version: int) -> Any | None:
    """Return the schema of an operator of ai.onnx that onnxruntime has at an opset where ONNX has none, or None."""
    defined = _DEFINED_SINCE.get(op_type)
    if defined is not None:
        return onnx.defs.get_schema(op_type, defined) if 1 <= version < defined else None
    if not 1 <= version < (9 if op_type == "MeanVarianceNormalization" else _BEFORE):
        return None
    return _schemas().get(op_type)


EARLIER_SCHEMAS[""] = _earlier_schema


@lru_cache(1)
def _schemas() -> dict[str, Any]:
    kinds = onnx.defs.OpSchema.AttrType
    both = {"alpha": kinds.FLOAT, "beta": kinds.FLOAT}
    made = [
        _elementwise("Affine", alpha=1.0, beta=0.0),
        _elementwise("Crop", {"border": kinds.INTS}, scale=kinds.INTS),
        _elementwise("ImageScaler", {"bias": kinds.FLOATS}, scale=1.0),
        _elementwise("MeanVarianceNormalization", across_channels=0, normalize_variance=1),
        _elementwise("ParametricSoftplus", both),
        _elementwise("Scale", scale=1.0),
        _elementwise("ScaledTanh", both),
        _dynamic_slice(),
    ]
    return {schema.name: schema for schema in made}


def _elementwise(op_type: str, required: dict[str, Any] | None = None, **optional: Any) -> Any:
    """Make a schema of one input and one output; optional attributes have a default, or just a type."""
    schema = onnx.defs.OpSchema
    attributes = [schema.Attribute(name, kind, "", required=True) for name, kind in (required or {}).items()]
    for name, given in optional.items():
        if isinstance(given, schema.AttrType):
            attributes.append(schema.Attribute(name, given, "", required=False))
        else:
            attributes.append(schema.Attribute(name, onnx.helper.make_attribute(name, given), ""))
    return schema(
        op_type,
        "",
        1,
        inputs=[schema.FormalParameter("X", "T")],
        outputs=[schema.FormalParameter("Y", "T")],
        type_constraints=[("T", ["tensor(float16)", "tensor(float)", "tensor(double)"], "")],
        attributes=attributes,
    )


def _dynamic_slice() -> Any:
    """Slice-10 but for the steps."""
    known = onnx.defs.get_schema("Slice", 10)
    constraints = [(item.type_param_str, list(item.allowed_type_strs), "") for item in known.type_constraints]
    return onnx.defs.OpSchema(
        "DynamicSlice", "", 1, inputs=known.inputs[:4], outputs=known.outputs, type_constraints=constraints
    )


@lowering("Affine", before=_BEFORE)
def affine(node: ir.Node, build: Builder) -> Any:
    """Alpha times x plus beta."""
    return _scaled(node.inputs[0], build, attribute(node, "alpha"), attribute(node, "beta"))


@lowering("Scale", before=_BEFORE)
def scale(node: ir.Node, build: Builder) -> Any:
    """A number times x."""
    return _scaled(node.inputs[0], build, attribute(node, "scale"))


@lowering("ImageScaler", before=_BEFORE)
def image_scaler(node: ir.Node, build: Builder) -> Any:
    """A number times x, plus a number for each channel."""
    x, bias = node.inputs[0], attribute(node, "bias")
    known = dims(x)
    if known is not None and (len(known) != 4 or (isinstance(known[1], int) and known[1] != len(bias))):
        raise inconsistent(node, f"a bias of {len(bias)} channels does not go with an input of shape {_text(known)}")
    return _scaled(x, build, attribute(node, "scale"), np.array(bias).reshape(1, -1, 1, 1))


@lowering("ScaledTanh", before=_BEFORE)
def scaled_tanh(node: ir.Node, build: Builder) -> Any:
    """Alpha times the hyperbolic tangent of beta times x."""
    inner = build.op("Tanh", _scaled(node.inputs[0], build, attribute(node, "beta")))
    return _scaled(inner, build, attribute(node, "alpha"))


@lowering("ParametricSoftplus", before=_BEFORE)
def parametric_softplus(node: ir.Node, build: Builder) -> Any:
    """Alpha times the Softplus of beta times x."""
    inner = build.op("Softplus", _scaled(node.inputs[0], build, attribute(node, "beta")))
    return _scaled(inner, build, attribute(node, "alpha"))


@lowering("Crop", before=_BEFORE)
def crop(node: ir.Node, build: Builder) -> Any:
    """Cuts left, top, right and bottom off; or, from left and top on, keeps a height and a width."""
    x, border, kept = node.inputs[0], attribute(node, "border"), attribute(node, "scale") or ()
    if len(border) != 4 or min(border) < 0 or len(kept) not in (0, 2) or min(kept, default=0) < 0:
        raise inconsistent(node, f"a border of {list(border)} and a scale of {list(kept)} say nothing")
    left, top, right, bottom = border
    ends = [top + kept[0], left + kept[1]] if kept else [-bottom or _LAST, -right or _LAST]
    known = dims(x)
    if known is not None:
        needs = ends if kept else [top + bottom, left + right]
        if len(known) != 4 or any(isinstance(d, int) and d < n for d, n in zip(known[2:], needs, strict=True)):
            raise inconsistent(
                node, f"border {list(border)} and scale {list(kept)} do not go with an input of shape {_text(known)}"
            )
    return build.op("Slice", x, [top, left], ends, [2, 3])


@lowering("DynamicSlice", before=_BEFORE)
def dynamic_slice(node: ir.Node, build: Builder) -> Any:
    """Slice-10's first name."""
    return build.op("Slice", *node.inputs)


@lowering("MeanVarianceNormalization", before=9)
def axes_by_kind(node: ir.Node, build: Builder) -> Any:
    """Axes were those of images, with the channels or without them, and the variance could stay."""
    x, size = node.inputs[0], rank(node.inputs[0])
    axes = [a for a in ((0, 1, 2, 3) if attribute(node, "across_channels") else (0, 2, 3)) if size is None or a < size]
    if not attribute(node, "normalize_variance"):
        return build.op("Sub", x, build.op("ReduceMean", x, axes, keepdims=1))
    set_attributes(node, across_channels=None, normalize_variance=None, axes=axes)
    return None


def _scaled(x: ir.Value | None, build: Builder, factor: float, addend: Any = 0.0) -> Any:
    dtype = ((x.dtype if x is not None else None) or ir.DataType.FLOAT).numpy()
    result = x
    if factor != 1:
        result = build.op("Mul", result, np.array(factor, dtype))
    return build.op("Add", result, np.array(addend, dtype)) if np.any(addend) or result is x else result


def _text(sizes: list[Any]) -> str:
    return f"[{', '.join(map(str, sizes))}]"
