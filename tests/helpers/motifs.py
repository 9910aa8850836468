"""What each pass looks for, written on a value of a random graph: motifs, which stand among random nodes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from onnx import TensorProto, helper
from random_graphs import RandomGraph, Shape

Make = Callable[[RandomGraph, str, Shape], str]
_UP: dict[str, Any] = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}


@dataclass(frozen=True)
class Motif:
    """Nodes on an image [n, c, h, w], and the passes that must find something to change in them.

    Attributes:
        make: Adds the nodes; returns the last value.
        passes: Their names.
        provider: The first provider.
        known: Sizes of the input must be numbers (True), names (False), or may be both (None).
        manifests: What the provisional manifests have besides, and options.
    """

    make: Make
    passes: tuple[str, ...]
    provider: str = "webgpu"
    known: bool | None = None
    manifests: dict[str, Any] = field(default_factory=dict)


MOTIFS: dict[str, Motif] = {}


def _motif(*passes: str, **options: Any) -> Callable[[Make], Make]:
    def register(make: Make) -> Make:
        name = make.__name__.strip("_").replace("_", " ")
        provider, known = options.pop("provider", "webgpu"), options.pop("known", None)
        MOTIFS[name] = Motif(make, passes, provider, known, options)
        return make

    return register


def _image(g: RandomGraph, x: str, shape: Shape, channels: int) -> tuple[str, Shape]:
    """As many channels, by a convolution and a function that no kernel of it computes."""
    made = (shape[0], channels, *shape[2:])
    return g.op("Neg", [g.op("Conv", [x, g.floats(channels, shape[1], 1, 1)], made)], made), made


def _rows(g: RandomGraph, x: str, shape: Shape, width: int) -> tuple[str, Shape]:
    """[n, h, width]."""
    flat = g.op("ReduceMean", [x, g.ints(1)], (shape[0], shape[2], shape[3]), keepdims=0)
    made = (shape[0], shape[2], width)
    return g.op("MatMul", [flat, g.floats(shape[3], width)], made), made


@_motif("constants", "folding", "dead_code")
def _constants(g: RandomGraph, x: str, shape: Shape) -> str:
    value = helper.make_tensor("v", TensorProto.FLOAT, [1], [0.5])
    two = g.op("Constant", [], (1,), value=value)
    return g.op("Add", [g.op("Neg", [two], (1,)), x], shape)


@_motif("branches")
def _known_branch(g: RandomGraph, x: str, shape: Shape) -> str:
    bodies = {
        f"{name}_branch": helper.make_graph(
            [helper.make_node(op_type, [x], [f"{x}_{name}"])],
            name,
            [],
            [helper.make_tensor_value_info(f"{x}_{name}", TensorProto.FLOAT, None)],
        )
        for name, op_type in (("then", "Relu"), ("else", "Neg"))
    }
    condition = g.op("Greater", [g.ints(2), g.ints(g.integer(0, 4))], (1,))
    return g.op("If", [condition], shape, **bodies)


@_motif("identity", "canonicalize")
def _dropout(g: RandomGraph, x: str, shape: Shape) -> str:
    return g.op("Mul", [g.op("Dropout", [x], shape), g.constant(np.float32([1]))], shape)


@_motif("casts")
def _detour(g: RandomGraph, x: str, shape: Shape) -> str:
    wide = g.op("Cast", [x], shape, to=TensorProto.DOUBLE)
    return g.op("Cast", [wide], shape, to=TensorProto.FLOAT)


@_motif("expansions")
def _gate_as_wide(g: RandomGraph, x: str, shape: Shape) -> str:
    gate = g.op("Sigmoid", [g.op("GlobalAveragePool", [x], (*shape[:2], 1, 1))], (*shape[:2], 1, 1))
    return g.op("Mul", [x, g.op("Expand", [gate, g.op("Shape", [x], (4,))], shape)], shape)


@_motif("subexpressions", "functions")
def _twice(g: RandomGraph, x: str, shape: Shape) -> str:
    first, second = (g.op("ReduceSumSquare", [x, g.ints(1)], (shape[0], 1, *shape[2:])) for _ in range(2))
    return g.op("Add", [g.op("Mul", [x, first], shape), second], shape)


@_motif("free_dimensions", known=False, free_dimension_overrides={"n": 2})
def _free(g: RandomGraph, x: str, shape: Shape) -> str:
    return g.op("Relu", [x], shape)


@_motif("sizes", known=False)
def _asked_size(g: RandomGraph, x: str, shape: Shape) -> str:
    made = g.op("Relu", [x], shape)
    sizes = [g.op("Gather", [g.op("Shape", [made], (4,)), g.ints(axis)], (1,), axis=0) for axis in (2, 3)]
    target = g.op("Concat", [g.ints(-1), *sizes], (3,), axis=0)
    return g.op("Reshape", [made, target], (shape[0] * shape[1], *shape[2:]))


@_motif("stacked_transposes")
def _swapped(g: RandomGraph, x: str, shape: Shape) -> str:
    def part(start: int, end: int) -> str:
        return g.op("Slice", [sizes, g.ints(start), g.ints(end), g.ints(0)], (len(range(4)[start:end]),))

    sizes = g.op("Shape", [x], (4,))
    n, c, h, w = shape
    last, before = part(-1, 9), part(-2, -1)
    three = g.op("Reshape", [x, g.op("Concat", [g.ints(-1), before, last], (3,), axis=0)], (n * c, h, w))
    transposed = g.op("Transpose", [three], (n * c, w, h), perm=[0, 2, 1])
    return g.op("Reshape", [transposed, g.op("Concat", [part(0, -2), last, before], (4,), axis=0)], (n, c, w, h))


@_motif("reshapes")
def _reshapes(g: RandomGraph, x: str, shape: Shape) -> str:
    flat = g.op("Reshape", [x, g.ints(0, -1)], (shape[0], int(np.prod(shape[1:]))))
    return g.op("Unsqueeze", [flat, g.ints(1)], (shape[0], 1, int(np.prod(shape[1:]))))


@_motif("batch_normalization", "scale_shift")
def _normalized_channels(g: RandomGraph, x: str, shape: Shape) -> str:
    image, made = _image(g, x, shape, 3)
    positive = g.constant(np.float32([0.5, 1, 2]))
    return g.op("BatchNormalization", [image, g.floats(3), g.floats(3), g.floats(3), positive], made)


@_motif("hard_swish")
def _hard_swish(g: RandomGraph, x: str, shape: Shape) -> str:
    raised = g.op("Add", [x, g.number(3)], shape)
    cut = g.op("Clip", [raised, g.number(0), g.number(6)], shape)
    return g.op("Div", [g.op("Mul", [x, cut], shape), g.number(6)], shape)


@_motif("gelu")
def _gelu(g: RandomGraph, x: str, shape: Shape) -> str:
    bent = g.op("Erf", [g.op("Div", [x, g.number(2**0.5)], shape)], shape)
    sides = [x, g.op("Add", [g.number(1), bent], shape)]
    return g.op("Mul", [g.number(0.5), g.op("Mul", sides if g.chance() else sides[::-1], shape)], shape)


@_motif("gates")
def _gate(g: RandomGraph, x: str, shape: Shape) -> str:
    gate = g.op("HardSigmoid", [g.op("GlobalAveragePool", [x], (*shape[:2], 1, 1))], (*shape[:2], 1, 1))
    return g.op("Add", [x, g.op("Mul", [x, gate], shape)], shape)


@_motif("affine")
def _affine(g: RandomGraph, x: str, shape: Shape) -> str:
    for op_type in ("Add", "Mul", "Sub", "Div"):
        x = g.op(op_type, [x, g.number(g.integer(1, 5))], shape)
    return x


def _normal(g: RandomGraph, x: str, shape: Shape, axes: list[int], *, centered: bool = True) -> str:
    few = tuple(1 if i in axes else d for i, d in enumerate(shape))
    if centered:
        x = g.op("Sub", [x, g.op("ReduceMean", [x, g.ints(*axes)], few)], shape)
    mean = g.op("ReduceMean", [g.op("Mul", [x, x], shape), g.ints(*axes)], few)
    root = g.op("Sqrt", [g.op("Add", [mean, g.number(1e-2)], few)], few)
    if g.chance():
        return g.op("Div", [x, root], shape)
    return g.op("Mul", [g.op("Reciprocal", [root], few), x], shape)


@_motif("instance_norm", provider="wasm")
def _each_image(g: RandomGraph, x: str, shape: Shape) -> str:
    normal = _normal(g, x, shape, [2, 3])
    return g.op("Mul", [normal, g.floats(shape[1], 1, 1)], shape)


@_motif("layer_norm")
def _layer_norm(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, made = _rows(g, x, shape, 6)
    return g.op("Add", [g.op("Mul", [_normal(g, rows, made, [2]), g.floats(6)], made), g.floats(6)], made)


@_motif("rms_norm", provider="wasm")
def _rms_norm(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, made = _rows(g, x, shape, 6)
    return g.op("Mul", [g.floats(6), _normal(g, rows, made, [2], centered=False)], made)


@_motif("group_norm", provider="wasm")
def _groups(g: RandomGraph, x: str, shape: Shape) -> str:
    image, made = _image(g, x, shape, 4)
    n, _, h, w = made
    rows = g.op("Reshape", [image, g.ints(0, 2, -1)], (n, 2, 2 * h * w))
    ones, zeros = (g.constant(np.full(2, k, np.float32)) for k in (1, 0))
    normal = g.op("InstanceNormalization", [rows, ones, zeros], (n, 2, 2 * h * w))
    return g.op("Reshape", [normal, g.op("Shape", [image], (4,))], made)


@_motif("skip_norm", "linear")
def _skip_norm(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, made = _rows(g, x, shape, 6)
    more = g.op("Add", [g.op("MatMul", [rows, g.floats(6, 6)], made), g.floats(6)], made)
    total = g.op("Add", [rows, more], made)
    return g.op("LayerNormalization", [total, g.floats(6), g.floats(6)], made)


@_motif("padded_windows", "nhwc")
def _padded(g: RandomGraph, x: str, shape: Shape) -> str:
    n, c, h, w = shape
    pad = g.op("Pad", [x, g.ints(0, 0, 1, 0, 0, 0, 2, 1)], (n, c, h + 3, w + 1))
    return g.op("Conv", [pad, g.floats(2, c, 3, 3)], (n, 2, h + 1, w - 1))


@_motif("conv_affine", "activation", "activation_offset")
def _scaled_convolution(g: RandomGraph, x: str, shape: Shape) -> str:
    made = (shape[0], 2, *shape[2:])
    y = g.op("Conv", [x, g.floats(2, shape[1], 1, 1)], made)
    y = g.op("Add", [g.op("Mul", [y, g.floats(2, 1, 1)], made), g.floats(1, 2, 1, 1)], made)
    y = g.op(g.pick("Relu", "Sigmoid", "Tanh", "HardSwish"), [y], made)
    return g.op("Add", [y, g.number(0.25)], made)


@_motif("activation_forms", "activation")
def _slope(g: RandomGraph, x: str, shape: Shape) -> str:
    made = (shape[0], 2, *shape[2:])
    y = g.op("Conv", [x, g.floats(2, shape[1], 1, 1)], made)
    return g.op("PRelu", [y, g.constant(np.full((2, 1, 1), 0.25, np.float32))], made)


@_motif("residual")
def _residual(g: RandomGraph, x: str, shape: Shape) -> str:
    y = g.op("Conv", [x, g.floats(shape[1], shape[1], 1, 1)], shape)
    return g.op("Relu", [g.op("Add", [y, x] if g.chance() else [x, y], shape)], shape)


@_motif("residual")
def _residual_of_a_transposed(g: RandomGraph, x: str, shape: Shape) -> str:
    y = g.op("ConvTranspose", [x, g.floats(shape[1], shape[1], 1, 1)], shape)
    return g.op("Relu", [g.op("Add", [y, x] if g.chance() else [x, y], shape)], shape)


@_motif("residual")
def _residual_of_rows(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, made = _rows(g, x, shape, 6)
    kept = g.op("Abs", [rows], made)
    y = g.op("MatMul", [kept, g.floats(6, 6)], made)
    if g.chance():
        y = g.op("Add", [y, g.floats(6)], made)
    if g.chance():
        y = g.op("Relu", [y], made)
    return g.op("Tanh", [g.op("Add", [y, kept] if g.chance() else [kept, y], made)], made)


@_motif("flat_products")
def _flat(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, (n, h, width) = _rows(g, x, shape, 6)
    flat = g.op("Reshape", [rows, g.ints(-1, width)], (n * h, width))
    made = g.op("Gemm", [flat, g.floats(width, 3), g.floats(3)], (n * h, 3))
    sizes = g.op("Slice", [g.op("Shape", [rows], (3,)), g.ints(0), g.ints(-1), g.ints(0)], (2,))
    return g.op("Reshape", [made, g.op("Concat", [sizes, g.ints(3)], (3,), axis=0)], (n, h, 3))


@_motif("concats")
def _rejoined(g: RandomGraph, x: str, shape: Shape) -> str:
    image, made = _image(g, x, shape, 4)
    halves = g.add("Split", [image, g.ints(1, 3)], [(made[0], size, *made[2:]) for size in (1, 3)], axis=1)
    return g.op("Concat", [*halves, image], (made[0], 8, *made[2:]), axis=1)


@_motif("transposed_products")
def _transposed(g: RandomGraph, x: str, shape: Shape) -> str:
    n, c, h, w = shape
    transposed = g.op("Transpose", [g.op("Relu", [x], shape)], (n, c, w, h), perm=[0, 1, 3, 2])
    return g.op("MatMul", [x, transposed], (n, c, h, h))


def _heads(g: RandomGraph, x: str, shape: Shape) -> list[str]:
    """Queries, keys and values of two heads of [n, h, 8]: [n, 2, h, 4]."""
    rows, (n, h, _) = _rows(g, x, shape, 8)
    found = []
    for _ in range(3):
        wide = g.op("MatMul", [rows, g.floats(8, 8)], (n, h, 8))
        apart = g.op("Reshape", [wide, g.ints(0, 0, 2, 4)], (n, h, 2, 4))
        found.append(g.op("Transpose", [apart], (n, 2, h, 4), perm=[0, 2, 1, 3]))
    return found


def _mixed(g: RandomGraph, q: str, k: str, v: str, shape: Shape) -> str:
    n, heads, places, size = shape
    scores = (n, heads, places, places)
    transposed = g.op("Transpose", [k], (n, heads, size, places), perm=[0, 1, 3, 2])
    chosen = g.op("Mul", [g.op("MatMul", [q, transposed], scores), g.number(size**-0.5)], scores)
    mixed = g.op("MatMul", [g.op("Softmax", [chosen], scores, axis=-1), v], shape)
    rows = g.op("Transpose", [mixed], (n, places, heads, size), perm=[0, 2, 1, 3])
    return g.op("Reshape", [rows, g.ints(0, 0, heads * size)], (n, places, heads * size))


@_motif("attention", "packed_projections")
def _attention(g: RandomGraph, x: str, shape: Shape) -> str:
    return _mixed(g, *_heads(g, x, shape), (shape[0], 2, shape[2], 4))


@_motif("interleaved_heads")
def _interleaved_heads(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, (n, h, _) = _rows(g, x, shape, 8)
    wide = g.op("MatMul", [rows, g.floats(8, 24)], (n, h, 24))
    five = g.op("Reshape", [wide, g.ints(0, 0, 2, 3, 4)], (n, h, 2, 3, 4))
    parts = [g.op("Gather", [five, g.constant(np.int64(i))], (n, h, 2, 4), axis=3) for i in range(3)]
    transposed = [g.op("Transpose", [part], (n, 2, h, 4), perm=[0, 2, 1, 3]) for part in parts]
    return _mixed(g, *transposed, (n, 2, h, 4))


@_motif("transposed_norms")
def _normalized_heads(g: RandomGraph, x: str, shape: Shape) -> str:
    q, k, v = _heads(g, x, shape)
    heads = (shape[0], 2, shape[2], 4)
    return _mixed(g, g.op("LayerNormalization", [q, g.floats(4)], heads), k, v, heads)


@_motif("stacked_heads")
def _windows(g: RandomGraph, x: str, shape: Shape) -> str:
    image, (n, _, h, w) = _image(g, x, shape, 4)
    five, scores = (n, 2, 2, h * w, 1), (n, 2, 2, h * w, h * w)
    t = g.op("Reshape", [image, g.ints(0, 2, 2, -1, 1)], five)
    transposed = g.op("Transpose", [t], (n, 2, 2, 1, h * w), perm=[0, 1, 2, 4, 3])
    weights = g.op("Softmax", [g.op("MatMul", [t, transposed], scores)], scores, axis=-1)
    return g.op("MatMul", [weights, t], five)


@_motif("transposed_attention")
def _transposed_attention(g: RandomGraph, x: str, shape: Shape) -> str:
    image, (n, _, h, w) = _image(g, x, shape, 4)
    columns = g.op("Reshape", [image, g.ints(0, 1, 4, -1)], (n, 1, 4, h * w))
    rows = g.op("Transpose", [columns], (n, 1, h * w, 4), perm=[0, 1, 3, 2])
    weights = g.op("Softmax", [g.op("MatMul", [rows, columns], (n, 1, h * w, h * w))], (n, 1, h * w, h * w), axis=-1)
    transposed = g.op("Transpose", [weights], (n, 1, h * w, h * w), perm=[0, 1, 3, 2])
    return g.op("MatMul", [columns, transposed], (n, 1, 4, h * w))


@_motif("rotary_embedding", provider="wasm", known=True)
def _rotary(g: RandomGraph, x: str, shape: Shape) -> str:
    q, k, v = _heads(g, x, shape)
    heads, half = (shape[0], 2, shape[2], 4), (shape[0], 2, shape[2], 2)
    angles = np.tile(np.outer(np.arange(shape[2]), [1.0, 0.1]), 2).astype(np.float32)[None, None]
    cos, sin = (g.constant(f(angles)) for f in (np.cos, np.sin))
    transposed = []
    for t in (q, k):
        a, b = g.add("Split", [t, g.ints(2, 2)], [half, half], axis=-1)
        crossed = g.op("Concat", [g.op("Neg", [b], half), a], heads, axis=-1)
        transposed.append(g.op("Add", [g.op("Mul", [t, cos], heads), g.op("Mul", [crossed, sin], heads)], heads))
    return _mixed(g, *transposed, v, heads)


@_motif("quantized", provider="wasm", integers=True)
def _quantized(g: RandomGraph, x: str, shape: Shape) -> str:
    def stepped(value: str, steps: float) -> list[str]:
        scale, zero = g.number(steps), g.constant(np.uint8(128))
        return [g.op("QuantizeLinear", [value, scale, zero], shape), scale, zero]

    integers = stepped(x, 1 / 64)
    wide = g.op("DequantizeLinear", integers, shape)
    return g.op("DequantizeLinear", stepped(g.op("Add", [wide, wide], shape), 1 / 32), shape)


@_motif("dynamic_products", provider="wasm", integers=True)
def _dynamic_product(g: RandomGraph, x: str, shape: Shape) -> str:
    rows, made = _rows(g, x, shape, 8)
    integers, scale, zero = g.add("DynamicQuantizeLinear", [rows], [made, (), ()])
    weights = g.constant(np.arange(-24, 24).reshape(8, 6).astype(np.int8))
    result = (*made[:2], 6)
    sums = g.op("Cast", [g.op("MatMulInteger", [integers, weights, zero], result)], result, to=TensorProto.FLOAT)
    scaled = g.op("Mul", [sums, g.op("Mul", [scale, g.number(0.01)], ())], result)
    return g.op("Add", [g.floats(6), scaled], result)


@_motif("dequantized_weights", integers=True)
def _dequantized(g: RandomGraph, x: str, shape: Shape) -> str:
    few = g.op("ReduceMean", [x, g.ints(1, 2, 3)], (shape[0], 1, 1, 1))
    wide = g.op("Mul", [few, g.floats(512)], (shape[0], 1, 1, 512))
    weights = g.constant(np.arange(1 << 18).reshape(512, 512).astype(np.int8))
    made = g.op("DequantizeLinear", [weights, g.constant(np.full(512, 0.01, np.float32))], (512, 512), axis=1)
    return g.op("MatMul", [wide, made], (shape[0], 1, 1, 512))


def _block_product(g: RandomGraph, x: str, made: Shape, width: int, columns: int) -> str:
    """With random weights of 4 bits."""
    bytes_of = g.numbers.integers(0, 256, (columns, width // 16, 8)).astype(np.uint8)
    scales = (g.numbers.random(columns * width // 16) * 0.02).astype(np.float32)
    inputs = [x, g.constant(bytes_of), g.constant(scales)]
    given = {"K": width, "N": columns, "bits": 4, "block_size": 16, "domain": "com.microsoft"}
    return g.op("MatMulNBits", inputs, (*made[:2], columns), **given)


@_motif("packed_blocks", "block_ends", integers=True)
def _gated_block(g: RandomGraph, x: str, shape: Shape) -> str:
    """As between the attentions of language models."""
    rows, made = _rows(g, x, shape, 32)
    normed = g.op("SimplifiedLayerNormalization", [rows, g.floats(32)], made, epsilon=1e-3, axis=-1, stash_type=1)
    gate, up = (_block_product(g, normed, made, 32, 48) for _ in range(2))
    wide = (*made[:2], 48)
    function = g.pick("Sigmoid", "Tanh")
    activated = g.op(function, [gate], wide)
    if function == "Sigmoid":
        activated = g.op("Mul", [gate, activated], wide)
    product = g.op("Mul", [activated, up] if g.chance() else [up, activated], wide)
    down = _block_product(g, product, made, 48, 32)
    return g.op("Abs", [g.op("Add", [down, rows] if g.chance() else [rows, down], made)], made)


@_motif("elementwise_chains", chains=True)
def _chain(g: RandomGraph, x: str, shape: Shape) -> str:
    for op_type in ("Abs", "Sqrt", "Neg", "Tanh"):
        x = g.op(op_type, [x], shape)
    return x


@_motif("columns", "sibling_convolutions", columns=True)
def _columns(g: RandomGraph, x: str, shape: Shape) -> str:
    image, made = _image(g, x, shape, 4)
    branches = [
        g.op("Conv", [image, g.floats(4, 4, 1, 1)], made),
        *(
            g.op("Conv", [g.op("Conv", [image, g.floats(4, 4, 1, 1)], made), g.floats(4, 4, 3, 3)], made, pads=[1] * 4)
            for _ in range(2)
        ),
    ]
    return g.op("Concat", branches, (made[0], 12, *made[2:]), axis=1)


#: Passes that no motif is for, and where they are proven.
ELSEWHERE = {
    "behind_convolutions": "tests/unit/plan/test_source_form.py",
    "cache_writes": "tests/unit/passes/test_cache_writes.py",
    "counts": "tests/models/test_counted_launches.py",
    "index_grids": "tests/unit/passes/test_index_grids.py",
    "packed_gates": "tests/unit/passes/test_packed_projections.py",
}
