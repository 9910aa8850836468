"""Matrix products."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.graph import attribute, attributes_of, dims, set_attributes
from py_ort.ir.operators import MICROSOFT, Operator, lowering
from py_ort.ir.symbolic_dims import wider
from py_ort.ir.value_types import like
from py_ort.ops.activations import activated
from py_ort.schema.dialect import PACKED_N


def _infer_packed(node: ir.Node) -> None:
    """MatMul and Gemm, also with B packed (attribute packed_n)."""
    a, b = dims(node.inputs[0]), dims(node.inputs[1])
    packed = attribute(node, PACKED_N)
    like(node.outputs[0], node.inputs[0], _product_dims(node, a, b, packed))
    if a is None or (b is None and packed is None):
        node.outputs[0].shape = None


def _product_dims(node: ir.Node, a: list[Any] | None, b: list[Any] | None, packed: int | None) -> list[Any] | None:
    if a is None or (b is None and packed is None):
        return None
    if node.op_type == "Gemm":
        rows = a[1] if attribute(node, "transA", 0) else a[0]
        if packed is not None:
            return [rows, packed]
        return [rows, b[0] if attribute(node, "transB", 0) else b[1]]  # type: ignore[index]
    if packed is not None:
        return [*a[:-1], packed]
    if not a or not b:
        return None  # a scalar has no product: the kernel says so
    if node.op_type == "FusedMatMul":
        a, b = (_read(node, sizes, which) for sizes, which in ((a, "A"), (b, "B")))
    if len(a) == 1 or len(b) == 1:
        return [*a[:-1], *([b[-1]] if len(b) > 1 else [])] if len(b) <= 2 else [*b[:-2], b[-1]]
    width = max(len(a), len(b)) - 2
    lead_a, lead_b = [1] * (width - len(a) + 2) + a[:-2], [1] * (width - len(b) + 2) + b[:-2]
    return [*(wider(x, y) for x, y in zip(lead_a, lead_b, strict=True)), a[-2], b[-1]]


def _read(node: ir.Node, sizes: list[Any], which: str) -> list[Any]:
    """Order the axes of an operand of FusedMatMul as they are multiplied; vectors have no others."""
    if len(sizes) > 1 and attribute(node, f"transBatch{which}", 0):
        sizes = [*sizes[1:-1], sizes[0], sizes[-1]]
    return [*sizes[:-2], *sizes[:-3:-1]] if len(sizes) > 1 and attribute(node, f"trans{which}", 0) else sizes


OPERATORS = [
    Operator("MatMul", layout="product", infer=_infer_packed, heavy=True),
    Operator("Gemm", infer=_infer_packed, heavy=True),
    Operator("FusedMatMul", domain=MICROSOFT, infer=_infer_packed, heavy=True),
    Operator("FusedGemm", domain=MICROSOFT, infer=_infer_packed, heavy=True),
    Operator("Einsum", heavy=True),
    Operator("Det", heavy=True),
    Operator("Inverse", domain=MICROSOFT, infer=lambda node: like(node.outputs[0], node.inputs[0])),
]


@lowering("Gemm", before=7)
def legacy_gemm(node: ir.Node, build: Builder) -> None:
    """C's broadcasting had to be asked for; asked or not, the newer rule covers it."""
    set_attributes(node, broadcast=None)


@lowering("FusedGemm", domain=MICROSOFT, replaces=True)
def fused_gemm(node: ir.Node, build: Builder) -> Any:
    """com.microsoft's fused product in its parts, which passes join where a kernel does them in one."""
    kept = {name: item for name, item in attributes_of(node).items() if not name.startswith("activation")}
    parameters = [
        attribute(node, name)
        for name in ("activation_alpha", "activation_beta", "activation_gamma")
        if name in node.attributes
    ]
    return activated(build.op("Gemm", *node.inputs, **kept), attribute(node, "activation", ""), parameters, build)
