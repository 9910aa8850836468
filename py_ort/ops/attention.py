"""Attention and rotary embedding, ONNX's own and com.microsoft's.

ONNX's Attention has attributes and an input of ours (docs/internals.md, section 2). With `offsets` and `head_sizes`,
queries, keys and values are columns of wider tensors, which may be the same one three times. With `nan_rows`, a query
that sees no key gets NaN; without, zeros. With `mask_broadcasts`, the mask broadcasts to the scores as in Add; without,
one of fewer keys hides those behind it. Input 7, of bool, broadcasts alike: where it is false, a score counts as 0
before the mask is added.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.builder import Builder
from py_ort.ir.errors import inconsistent
from py_ort.ir.graph import attribute, dims, input_at, rank
from py_ort.ir.operators import MICROSOFT, Operator, lowering
from py_ort.ir.value_types import like
from py_ort.schema.dialect import ATTENTION_KEPT, ATTENTION_LENGTHS, ATTENTION_MASK, HEAD_SIZES, MASK_BROADCASTS


def _infer_first(node: ir.Node) -> None:
    like(node.outputs[0], node.inputs[0])
    for output in node.outputs[1:]:
        like(output, node.inputs[0])
        output.shape = None


def _known(size: Any) -> int | None:
    return size if isinstance(size, int) else None


def _infer_projected(node: ir.Node) -> None:
    """com.microsoft's Attention: queries, keys and values are columns of one product."""
    _infer_first(node)
    x, weights = dims(node.inputs[0]), dims(node.inputs[1])
    sizes = attribute(node, "qkv_hidden_sizes")
    if sizes and len(sizes) != 3:
        raise inconsistent(node, f"qkv_hidden_sizes is {list(sizes)}, not three numbers")
    columns = _known(weights[1]) if weights is not None else None
    width = sizes[2] if sizes else columns // 3 if columns is not None else None
    node.outputs[0].shape = ir.Shape([*x[:2], width]) if x is not None else None


def _infer_multi_head(node: ir.Node) -> None:
    """Packed inputs have [..., heads, parts, size]; keys and values from elsewhere [batch, heads, rows, size]."""
    _infer_first(node)
    query, heads = dims(node.inputs[0]), attribute(node, "num_heads")
    key, value = (dims(node.inputs[i]) if len(node.inputs) > i else None for i in (1, 2))
    if query is None or (len(node.inputs) > 2 and node.inputs[2] is not None and value is None):
        node.outputs[0].shape = None
        return
    size: int | None = None
    if len(query) == 5:
        size = _known(query[4])
    elif key is not None and len(key) == 5:
        size = _known(key[4])
    elif value is not None and len(value) == 4:
        size = _known(value[3])
    width = heads * size if size is not None else _known(value[2]) if value is not None and len(value) == 3 else None
    node.outputs[0].shape = ir.Shape([*query[:2], width])


def _infer_grouped(node: ir.Node) -> None:
    """Without a key, all three are in the query; caches have the length of the past or of all, whichever is more."""
    _infer_first(node)
    query, key = dims(node.inputs[0]), node.inputs[1]
    query_type = node.inputs[0].dtype if node.inputs[0] is not None else None
    if query is None:
        return
    heads, kv_heads = attribute(node, "num_heads"), attribute(node, "kv_num_heads")
    width = _known(query[2])
    size = width // (heads if key is not None else heads + 2 * kv_heads) if width is not None else None
    node.outputs[0].shape = ir.Shape([*query[:2], heads * size if size is not None else None])
    for cache, past in zip(node.outputs[1:3], node.inputs[3:5], strict=False):
        cache.shape = ir.Shape([query[0], kv_heads, None, size])
        if past is not None and past.type is not None and past.dtype != query_type:  # quantized: of 4 bits, two in each
            kept = dims(past)
            cache.type, cache.shape = past.type, ir.Shape([query[0], kv_heads, None, kept[3] if kept else None])


def _infer_quantized(node: ir.Node) -> None:
    """Infer the type from the bias, which has the biases of queries, keys and values in a row."""
    rows, bias = dims(node.inputs[0]), node.inputs[2]
    columns = dims(bias)
    if bias is None or rows is None or len(rows) != 3:
        return
    width = _known(columns[0]) if columns else None
    node.outputs[0].type, node.outputs[0].shape = bias.type, ir.Shape([*rows[:2], width and width // 3])


def _infer_attention(node: ir.Node) -> None:
    """With `offsets`, inputs are parts of wider tensors: the queries' rows, the values' sizes."""
    sizes, known = attribute(node, HEAD_SIZES), dims(node.inputs[0])
    if sizes is None or known is None:
        return
    batch, rows = known[:2]
    for mask in (
        dims(input_at(node, i)) for i in (ATTENTION_MASK, ATTENTION_KEPT) if attribute(node, MASK_BROADCASTS, 0)
    ):
        if mask is not None and len(mask) == 4:
            batch = _broadcast(batch, mask[0])
        if mask is not None and len(mask) > 1 and rows == 1:
            rows = _broadcast(rows, mask[-2])
    like(node.outputs[0], node.inputs[0])
    node.outputs[0].shape = ir.Shape([batch, rows, attribute(node, "q_num_heads") * sizes[1]])


def _broadcast(own: Any, other: Any) -> Any:
    """The size of scores that broadcast to a mask; sizes without a name are taken to be the same."""
    named = isinstance(other, int) or other.value is not None
    if not named or other in (1, own) or (isinstance(own, int) and own != 1):
        return own
    return other if own == 1 else None


OPERATORS = [
    Operator(
        "Attention",
        layout="attention",
        refine=_infer_attention,
        heavy=True,
        optional_outputs=True,
        indices=(ATTENTION_LENGTHS,),
        lengths=(ATTENTION_LENGTHS,),
    ),
    Operator("RotaryEmbedding", indices=(3,)),
    Operator("RotaryEmbedding", domain=MICROSOFT, infer=_infer_first, indices=(1,)),
    Operator("PackedAttention", domain=MICROSOFT, infer=_infer_first),
    Operator("Attention", domain=MICROSOFT, infer=_infer_projected),
    Operator("QAttention", domain=MICROSOFT, infer=_infer_quantized),
    Operator("MultiHeadAttention", domain=MICROSOFT, infer=_infer_multi_head, host=(8,), heavy=True),
    Operator("DecoderMaskedMultiHeadAttention", domain=MICROSOFT, infer=_infer_multi_head),
    Operator("GroupQueryAttention", domain=MICROSOFT, infer=_infer_grouped, host=(6,), lengths=(5,), heavy=True),
]


_SCORES = 3
_OF_ONE_POSITION = ("num_heads", "scale", "mask_filter_value")


@lowering("DecoderMaskedMultiHeadAttention", domain=MICROSOFT)
def one_position(node: ir.Node, build: Builder) -> Any:
    """MultiHeadAttention by another order of inputs, for what onnxruntime knows on the CPU."""
    query, key, value, mask, bias, past_key, past_value, past_rows, _, beams, added = [*node.inputs, *[None] * 11][:11]
    crosses = rank(key) == 4
    shares = attribute(node, "past_present_share_buffer", 0) != 0
    known = dims(query)
    count = max((i + 1 for i, output in enumerate(node.outputs) if output.name), default=1)
    if value is None or (known is not None and known[1] not in (1, None) and isinstance(known[1], int)):
        return None
    scores = None
    if crosses:
        if (
            count == _SCORES + 1
            and attribute(node, "output_qk", 0)
            and not any(v.name for v in node.outputs[1:_SCORES])
        ):
            scores, count = _masked_scores(node, build, query, key, mask, added), 1
            if scores is None:
                return None
        if bias is not None or count > 1 or shares:
            return None
        past_key = past_value = past_rows = beams = None
    elif (
        not shares
        or past_key is None
        or past_value is None
        or past_rows is None
        or (count > _SCORES and not attribute(node, "output_qk", 0))
    ):
        return None
    kept = {name: node.attributes[name] for name in _OF_ONE_POSITION if name in node.attributes}
    inputs = (query, key, value, added, mask, bias, past_key, past_value, past_rows, beams)
    made = build.op("MultiHeadAttention", *inputs, domain=MICROSOFT, outputs=count, **kept)
    return made if scores is None else (made, None, None, scores)


def _masked_scores(node: ir.Node, build: Builder, query: Any, key: Any, mask: Any, bias: Any) -> Any:
    """The scores before the softmax: [batch, heads, 1, keys]; None where the sizes are not known."""
    known, heads = dims(query), attribute(node, "num_heads")
    if known is None or not isinstance(known[2], int) or query.dtype is None:
        return None
    width, dtype = known[2], query.dtype.numpy()
    if bias is not None:
        query = build.op("Add", query, build.op("Slice", bias, [0], [width]))
    query = build.op("Transpose", build.op("Reshape", query, [0, 0, heads, width // heads]), perm=[0, 2, 1, 3])
    scores = build.op("MatMul", query, build.op("Transpose", key, perm=[0, 1, 3, 2]))
    scale = attribute(node, "scale", 0) or (heads / width) ** 0.5
    scores = build.op("Mul", scores, np.array(scale, dtype))
    if mask is None:
        return scores
    seen = build.op("Unsqueeze", build.op("Cast", mask, to=int(ir.DataType.BOOL)), [1, 2])
    low = np.array(attribute(node, "mask_filter_value", -10000.0), dtype)
    return build.op("Add", scores, build.op("Where", seen, np.array(0, dtype), low))
