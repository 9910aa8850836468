"""Mixtures of experts: com.microsoft's MoE and QMoE in their parts, around products with the experts chosen.

`com.ms.internal::ExpertMatMul` multiplies rows by the matrices of the experts that `choices` [tokens, k] names. X has a
row for each token, or for each choice; the experts are [experts, n, k], floats, or integers of `bits` in blocks of
`block_size` (0: a row) with scales and zero points; Y is [tokens, k, n].
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.exceptions import NotImplemented
from py_ort.ir.builder import Builder
from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import attribute, dims, rank
from py_ort.ir.operators import INTERNAL, MICROSOFT, Operator, lowering
from py_ort.ir.value_types import like
from py_ort.schema.dialect import EXPERT_MATMUL

_ACTIVATIONS = {"relu": "Relu", "gelu": "Gelu", "silu": "Swish", "identity": "", "swiglu": ""}
_GIVEN: dict[str, dict[str, Any]] = {"gelu": {"approximate": "tanh"}, "silu": {"alpha": 1.0}}


def _infer_product(node: ir.Node) -> None:
    """A row of an expert's columns for each choice of each token."""
    choices, experts = dims(node.inputs[1]), dims(node.inputs[2])
    known = None if choices is None or experts is None else [*choices, experts[1]]
    like(node.outputs[0], node.inputs[0], known)
    if known is None:
        node.outputs[0].shape = None


OPERATORS = [
    Operator("MoE", domain=MICROSOFT),
    Operator("QMoE", domain=MICROSOFT),
    Operator(EXPERT_MATMUL, domain=INTERNAL, infer=_infer_product),
]


class _Layer:
    """The matrices of all experts: floats, or packed with scales and zero points."""

    def __init__(self, weights: Any, scales: Any, zeros: Any, bias: Any, bits: int, block: int) -> None:
        self.weights, self.scales, self.zeros, self.bias = weights, scales, zeros, bias
        self.given = {"bits": bits, "block_size": block}

    def product(self, build: Builder, x: Any, choices: Any) -> Any:
        """Multiply the rows of X, one of each token or of each choice, by the experts chosen: [tokens, k, columns]."""
        inputs = (x, choices, self.weights, self.scales, self.zeros, self.bias)
        return build.op(EXPERT_MATMUL, *inputs, domain=INTERNAL, **self.given)


@lowering("MoE", domain=MICROSOFT)
def moe(node: ir.Node, build: Builder) -> Any:
    """Experts of floats."""
    given: list[Any] = [*node.inputs, *[None] * (8 - len(node.inputs))]
    layers = [_Layer(given[i], None, None, given[i + 1], 0, 0) if given[i] else None for i in (2, 4, 6)]

    def weigh(router: Any, choices: Any, values: Any) -> Any:
        if attribute(node, "normalize_routing_weights", 0):
            return build.op("Softmax", values, axis=1)
        return build.op("GatherElements", build.op("Softmax", router, axis=1), choices, axis=1)

    return _mixture(node, build, layers, weigh)


@lowering("QMoE", domain=MICROSOFT)
def quantized_moe(node: ir.Node, build: Builder) -> Any:
    """Experts of 2, 4 or 8 bits."""
    _check_quantization(node)
    given: list[Any] = [*node.inputs, *[None] * (15 - len(node.inputs))]
    bits = attribute(node, "expert_weight_bits", 4)
    block = max(attribute(node, "block_size", 0), 0)
    layers = []
    for index, place in enumerate((2, 5, 8)):
        own = attribute(node, f"fc{index + 1}_expert_weight_bits", bits)
        weights, scales, bias = given[place : place + 3]
        layers.append(_Layer(weights, scales, given[11 + index], bias, own, block) if weights else None)
    shares = given[14]

    def weigh(router: Any, choices: Any, values: Any) -> Any:
        if shares is None:
            return build.op("Softmax", values, axis=1)
        gathered = build.op("GatherElements", _transposed(build, shares), choices, axis=1)
        if not attribute(node, "normalize_routing_weights", 0):
            return gathered
        return build.op("Div", gathered, build.op("ReduceSum", gathered, [1], keepdims=1))

    return _mixture(node, build, layers, weigh)


def _check_quantization(node: ir.Node) -> None:
    kind, block = attribute(node, "quant_type", "int"), attribute(node, "block_size", 0)
    bits = [attribute(node, name, 4) for name in node.attributes if name.endswith("expert_weight_bits")]
    where: dict[str, Any] = {"node": node.name or "", "op_type": node.op_type, "domain": node.domain}
    if kind != "int" or any(v is not None for v in node.inputs[15:]):
        raise NotImplemented(
            f"QMoE with quant_type {kind!r}: only 'int' is supported, experts of 2, 4 or 8 bits", **where
        )
    if not {2, 4, 8}.issuperset(bits) or (block > 0 and (block < 16 or block & (block - 1))):
        raise NotImplemented(
            f"QMoE of {bits} bits in blocks of {block}: 2, 4 and 8 bits are supported, and powers of two from 16 on",
            **where,
        )


def _transposed(build: Builder, x: Any) -> Any:
    """The last expert first: of those that score the same, onnxruntime takes the last ones."""
    return build.op("Slice", x, [-1], [-(2**31)], [1], [-1])


def _mixture(node: ir.Node, build: Builder, layers: list[_Layer | None], weigh: Any) -> Any:
    """Each token goes through the experts that score best for it; what they give is summed by their weights."""
    x, scores, (first, second, third) = node.inputs[0], node.inputs[1], layers
    assert first is not None and second is not None
    known, kind, k = dims(first.weights), attribute(node, "activation_type", "relu"), attribute(node, "k", 1)
    if kind not in _ACTIVATIONS:
        raise inconsistent(node, f"there is no activation {kind!r}: {', '.join(_ACTIVATIONS)} are known")
    if known is None or not isinstance(known[0], int) or rank(x) not in (2, 3):
        raise NotImplemented(
            f"{node.op_type} whose number of experts, or the rank of whose input, is not known: declare their shapes",
            node=node.name or "", op_type=node.op_type, domain=node.domain,
        )  # fmt: skip
    experts = known[0]
    if not 0 < k <= experts:
        raise inconsistent(node, f"{k} of {experts} experts cannot be chosen")
    flat = (
        build.op("Reshape", x, build.op("Concat", [-1], build.op("Shape", x, start=-1), axis=0)) if rank(x) == 3 else x
    )
    router = _transposed(build, scores)
    values, places = build.op("TopK", router, [k], axis=1, largest=1, sorted=1, outputs=2)
    weights = build.op("Unsqueeze", weigh(router, places, values), [2])
    last = np.array(experts - 1, np.int32)
    choices = build.op("Sub", last, build.op("Cast", places, to=int(ir.DataType.INT32)))
    hidden = first.product(build, flat, choices)
    gate = third.product(build, flat, choices) if third is not None else None
    hidden = _swiglu(node, build, hidden, gate) if kind == "swiglu" else _activated(build, kind, hidden, gate)
    rows = build.op("Reshape", hidden, build.op("Concat", [-1], build.op("Shape", hidden, start=-1), axis=0))
    results = build.op("Mul", second.product(build, rows, choices), weights)
    total = build.op("ReduceSum", results, [1], keepdims=0)
    return build.op("Reshape", total, build.op("Shape", x)) if rank(x) == 3 else total


def _activated(build: Builder, kind: str, hidden: Any, gate: Any) -> Any:
    name = _ACTIVATIONS[kind]
    hidden = build.op(name, hidden, **_GIVEN.get(kind, {})) if name else hidden
    return hidden if gate is None else build.op("Mul", hidden, gate)


def _swiglu(node: ir.Node, build: Builder, hidden: Any, value: Any) -> Any:
    """A gate and what it lets through: of two products, or of one that has them by turns, or one behind the other."""
    fused, limit = attribute(node, "swiglu_fusion", 0), attribute(node, "swiglu_limit")
    if fused == 1:
        gate, value = (build.op("Slice", hidden, [i], [2**31 - 1], [2], [2]) for i in (0, 1))
    elif fused == 2:
        gate, value = build.op("Split", hidden, axis=2, num_outputs=2, outputs=2)
    else:
        gate = hidden
    if value is None:
        raise inconsistent(node, "swiglu needs a third layer (fc3) where swiglu_fusion is 0")
    dtype = (hidden.dtype or ir.DataType.FLOAT).numpy()
    if limit is not None:
        gate = build.op("Clip", gate, None, np.array(limit, dtype))
        value = build.op("Clip", value, np.array(-limit, dtype), np.array(limit, dtype))
    beta = attribute(node, "activation_beta", 0.0)
    value = build.op("Add", value, np.array(beta, dtype)) if beta else value
    return build.op("Mul", build.op("Swish", gate, alpha=attribute(node, "activation_alpha", 1.0)), value)
