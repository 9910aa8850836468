"""Repeated parts of newer language models, which com.microsoft has as single operators: gates, norms, streams.

Native onnxruntime computes in float32, whatever the tensors' type is; so do these.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.exceptions import NotImplemented
from py_ort.ir.builder import Builder
from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import attribute, dims, input_at, rank
from py_ort.ir.operators import MICROSOFT, Operator, lowering

OPERATORS = [
    Operator(name, domain=MICROSOFT)
    for name in (
        *("BranchwiseRMSNorm", "EngramGate", "GatedAdd", "GatedRMSNorm", "HyperConnectionPostMix"),
        *("HyperConnectionPreMix", "LinearAttentionGate", "ScaledSiLU"),
    )
]


@lowering("GatedAdd", domain=MICROSOFT)
def gated_add(node: ir.Node, build: Builder) -> Any:
    """X and Y times a gate, each rounded."""
    x, y, gate = node.inputs[:3]
    return build.op("Add", x, build.op("Mul", y, gate))


@lowering("ScaledSiLU", domain=MICROSOFT)
def scaled_silu(node: ir.Node, build: Builder) -> Any:
    """SiLU of X times a number, with rounded intermediate values."""
    x, scale = node.inputs[0], input_at(node, 1)
    factor = _wide(build, scale) if scale is not None else np.array(attribute(node, "alpha", 1.0), np.float32)
    scaled = _narrow(build, build.op("Mul", _wide(build, x), factor), x)
    return build.op("Mul", scaled, build.op("Sigmoid", scaled))


@lowering("GatedRMSNorm", domain=MICROSOFT)
def gated_rms_norm(node: ir.Node, build: Builder) -> Any:
    """Each group of as many elements as there are scales, normalized, times the gate."""
    x, scale, gate = (_wide(build, v) for v in node.inputs[:3])
    kind = attribute(node, "activation", "silu")
    if kind not in ("silu", "swish", "sigmoid"):
        raise inconsistent(node, f"there is no gate {kind!r}: silu, swish and sigmoid are known")
    known = dims(x)
    whole = known is not None and dims(scale) == known[-1:]
    groups = x if whole else build.op("Reshape", x, _joined(build, _leading(build, x), [-1], build.op("Shape", scale)))
    y = build.op("Mul", _normalized(node, build, groups), scale)
    y = y if whole else build.op("Reshape", y, build.op("Shape", x))
    opened = build.op("Sigmoid", gate) if kind == "sigmoid" else build.op("Swish", gate, alpha=1.0)
    return _narrow(build, build.op("Mul", y, opened), node.inputs[0])


@lowering("BranchwiseRMSNorm", domain=MICROSOFT)
def branchwise_rms_norm(node: ir.Node, build: Builder) -> Any:
    """Each branch normalized by itself; scales are for all branches, or each has its own."""
    x, scale = node.inputs[0], input_at(node, 1)
    branches = _branches(node, build, _wide(build, x))
    y = _normalized(node, build, branches)
    if scale is not None:
        rows = build.op("Reshape", _wide(build, scale), _joined(build, [-1], build.op("Shape", branches, start=-1)))
        y = build.op("Mul", y, rows)
    return _narrow(build, _ungrouped(node, build, y, x), x)


@lowering("LinearAttentionGate", domain=MICROSOFT)
def linear_attention_gate(node: ir.Node, build: Builder) -> Any:
    """How much of LinearAttention's state stays, and how much of a value comes in."""
    a, bias, scale = (_wide(build, v) for v in node.inputs[:3])
    b = input_at(node, 3)
    decay = _narrow(build, build.op("Mul", scale, build.op("Softplus", build.op("Add", a, bias))), node.inputs[0])
    if len(node.outputs) < 2:
        return decay
    if b is None:
        raise inconsistent(node, "its output beta needs the input b")
    return decay, _narrow(build, build.op("Sigmoid", _wide(build, b)), b)


@lowering("HyperConnectionPreMix", domain=MICROSOFT)
def pre_mix(node: ir.Node, build: Builder) -> Any:
    """The sum of the streams, each times its gate."""
    streams = _branches(node, build, _wide(build, node.inputs[0]))
    gated = build.op("Mul", streams, _gates(node, build, node.inputs[1]))
    total = build.op("ReduceSum", gated, [-2], keepdims=0)
    scale = attribute(node, "reduction_scale", 1.0)
    total = total if scale == 1 else build.op("Mul", total, np.array(scale, np.float32))
    return _narrow(build, total, node.inputs[0])


@lowering("HyperConnectionPostMix", domain=MICROSOFT)
def post_mix(node: ir.Node, build: Builder) -> Any:
    """Streams, mixed with each other if wanted, and a block's output, by each stream's gate."""
    x, block, mix = node.inputs[0], _wide(build, node.inputs[1]), input_at(node, 3)
    streams = _branches(node, build, _wide(build, x))
    if mix is not None:
        size = _rank(node, mix)
        transposed = build.op("Transpose", _wide(build, mix), perm=[*range(size - 2), size - 1, size - 2])
        streams = build.op("MatMul", transposed, streams)
    added = build.op("Mul", _gates(node, build, node.inputs[2]), build.op("Unsqueeze", block, [-2]))
    return _narrow(build, _ungrouped(node, build, build.op("Add", streams, added), x), x)


@lowering("EngramGate", domain=MICROSOFT)
def engram_gate(node: ir.Node, build: Builder) -> Any:
    """Opened as far as keys and queries, both normalized, go together."""
    key, query, value, key_scale, query_scale = (_wide(build, v) for v in node.inputs[:5])
    rows = [
        build.op("Mul", _normalized(node, build, x), scale) for x, scale in ((key, key_scale), (query, query_scale))
    ]
    width = build.op("Sqrt", build.op("Cast", build.op("Shape", key, start=-1), to=int(ir.DataType.FLOAT)))
    product = build.op("Div", build.op("ReduceSum", build.op("Mul", *rows), [-1], keepdims=1), width)
    root = build.op("Sqrt", build.op("Max", build.op("Abs", product), np.array(1e-6, np.float32)))
    gate = build.op("Sigmoid", build.op("Mul", build.op("Sign", product), root))
    gated = build.op("Mul", gate, build.op("Unsqueeze", value, [2]))
    results = [_narrow(build, gated, node.inputs[0])]
    if len(node.outputs) > 1:
        scale = input_at(node, 5)
        if scale is None:
            raise inconsistent(node, "its output gated_value_normed needs the input conv_norm_scale")
        normal = build.op("Mul", _normalized(node, build, gated), _wide(build, scale))
        results.append(_narrow(build, normal, node.inputs[0]))
    return tuple(results)


def _wide(build: Builder, value: Any) -> Any:
    return value if value.dtype in (None, ir.DataType.FLOAT) else build.op("Cast", value, to=int(ir.DataType.FLOAT))


def _narrow(build: Builder, value: Any, like: ir.Value | None) -> Any:
    dtype = None if like is None else like.dtype
    return value if dtype in (None, value.dtype) else build.op("Cast", value, to=int(dtype))


def _rank(node: ir.Node, value: ir.Value | None) -> int:
    known = rank(value)
    if known is None:
        raise NotImplemented(
            f"{node.op_type} of an input of unknown rank: declare its shape",
            node=node.name or "", op_type=node.op_type, domain=node.domain,
        )  # fmt: skip
    return known


def _joined(build: Builder, *sizes: Any) -> Any:
    return build.op("Concat", *sizes, axis=0)


def _leading(build: Builder, x: Any) -> Any:
    return build.op("Shape", x, end=-1)


def _normalized(node: ir.Node, build: Builder, x: Any) -> Any:
    """The last axis, divided by the root of its mean square."""
    mean = build.op("ReduceMean", build.op("Mul", x, x), [-1], keepdims=1)
    epsilon = np.array(attribute(node, "epsilon", 1e-5), np.float32)
    return build.op("Div", x, build.op("Sqrt", build.op("Add", mean, epsilon)))


def _branches(node: ir.Node, build: Builder, x: Any) -> Any:
    """[…, branches, size], which may lie flat in the last axis."""
    count = attribute(node, "num_branches", 0)
    return build.op("Reshape", x, _joined(build, _leading(build, x), [count, -1])) if count else x


def _ungrouped(node: ir.Node, build: Builder, y: Any, x: Any) -> Any:
    return build.op("Reshape", y, build.op("Shape", x)) if attribute(node, "num_branches", 0) else y


def _gates(node: ir.Node, build: Builder, gates: Any) -> Any:
    """A gate for each branch, or for each of its elements: [..., branches, 1 or size]."""
    count, x = attribute(node, "num_branches", 0), node.inputs[0]
    grouped = _rank(node, x) + (1 if count else 0)
    wide = _wide(build, gates)
    if _rank(node, gates) == grouped:
        return wide
    known = dims(gates)
    if count and (known is None or known[-1] != count):
        return _branches(node, build, wide)
    return build.op("Unsqueeze", wide, [-1])
