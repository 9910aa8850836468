"""Operators that only the compiler makes: attention on parts of rows, ends of convolutions."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from case import Case, r
from epilogues import epilogue

Array = np.ndarray[Any, np.dtype[Any]]


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def _attention(
    heads: tuple[int, int],
    sizes: tuple[int, int],
    offsets: Sequence[int],
    *,
    causal: bool = False,
    nan_rows: bool = False,
) -> Callable[..., Array]:
    def compute(q: Array, k: Array, v: Array, mask: Array | None = None, *more: Array | None) -> Array:
        def part(x: Array, start: int, count: int, size: int) -> Array:
            cut = x[:, :, start : start + count * size]
            return cut.reshape(*x.shape[:2], count, size).transpose(0, 2, 1, 3).astype(np.float64)

        queries = part(q, offsets[0], heads[0], sizes[0])
        keys, values = (
            np.repeat(part(x, offsets[i], heads[1], sizes[i - 1]), heads[0] // heads[1], 1) for i, x in ((1, k), (2, v))
        )
        scores = queries @ keys.transpose(0, 1, 3, 2) * 0.3
        seen = np.ones(scores.shape, bool)
        if more:
            scores = np.where(more[-1], scores, 0)
        if mask is not None and mask.dtype == bool:
            seen &= mask
        elif mask is not None:
            scores, seen = scores + mask, seen & (mask != -np.inf)
        if causal:
            seen &= np.tril(np.ones(scores.shape[-2:], bool))
        largest = np.max(np.where(seen, scores, -1e300), -1, keepdims=True)
        weights = np.where(seen, np.exp(np.minimum(scores - largest, 0)), 0)
        shares = weights / np.maximum(weights.sum(-1, keepdims=True), 0 if nan_rows else 1e-300)
        mixed = shares @ values
        return mixed.transpose(0, 2, 1, 3).reshape(len(mixed), mixed.shape[2], -1).astype(np.float32)

    return compute


def _packed(
    name: str,
    heads: tuple[int, int],
    sizes: tuple[int, int],
    queries: int,
    width: int,
    mask: Any = None,
    kept: Any = None,
    batch: int = 2,
    **more: Any,
) -> Case:
    """Queries, keys and values in one tensor, with some columns before them."""
    start = width - heads[0] * sizes[0] - heads[1] * sum(sizes)
    offsets = [start, start + heads[0] * sizes[0], start + (heads[0] + heads[1]) * sizes[0]]
    attributes = {"q_num_heads": heads[0], "kv_num_heads": heads[1], "offsets": offsets, "head_sizes": list(sizes)}
    packed = r(batch, queries, width).make(7)
    inputs = [packed, packed, packed, *([mask] if mask is not None else [])]
    if kept is not None:
        inputs += [None, None, None, kept]
    asked = {"causal": bool(more.get("is_causal")), "nan_rows": bool(more.get("nan_rows"))}
    expected = _attention(heads, sizes, offsets, **asked)
    return Case("Attention", inputs, {**attributes, "scale": 0.3, **more}, expected, tolerance="normal", name=name)


def _conv(activation: Callable[[Array], Array], last: bool = False, offset: float = 0.0) -> Callable[..., Array]:
    """A 1x1 convolution of channels-last images, followed by its end."""

    def compute(x: Array, w: Array, bias: Array | None = None, z: Array | None = None) -> Array:
        sums = x @ w[0, 0] + (0 if bias is None else bias)
        if z is not None and not last:
            sums = sums + z
        return activation(sums) + offset + (z if z is not None and last else 0)

    return compute


_1X1 = {
    "kernel_shape": [1, 1],
    "strides": [1, 1],
    "dilations": [1, 1],
    "pads": [0, 0, 0, 0],
    "group": 1,
    "weight_layout": "HWIO",
}
_IMAGE = [r(1, 5, 6, 8), r(1, 1, 8, 12), r(12), r(1, 5, 6, 12)]
_LEAST = np.float32(-3.4028234663852886e38)


def _unseen(queries: int) -> Array:
    """A mask that leaves every third query without a key."""
    mask = np.zeros((1, 1, queries, queries), np.float32)
    mask[:, :, ::3] = -np.inf
    return mask


def _kept(*shape: int) -> Array:
    """Bools, all false in the last row."""
    kept = np.random.default_rng(3).random(shape) < 0.5
    kept[..., -1:, :] = False
    return kept


def _ending(
    activation: str, function: Callable[[Array], Array], inputs: Sequence[Any], offset: float = 0.0, last: bool = False
) -> Case:
    expected = _conv(function, last, offset)
    residual: Any = None if len(inputs) < 4 else "last" if last else "first"
    attributes = {**_1X1, **epilogue(activation, residual=residual, offset=offset or None)}
    return Case("Conv", inputs, attributes, expected, domain="com.ms.internal.nhwc", tolerance="normal")


CASES = [
    _packed("one head", (1, 1), (4, 4), 3, 12),
    _packed("fours", (3, 3), (8, 8), 37, 72),
    _packed("odd", (2, 2), (5, 3), 9, 33),
    _packed("shared keys", (4, 2), (16, 16), 40, 128),
    _packed("causal", (2, 2), (8, 8), 35, 48, is_causal=1),
    _packed("truths", (2, 2), (8, 8), 9, 48, r(2, 1, 1, 9, dtype="bool")),
    _packed("masked by large numbers", (2, 2), (8, 8), 9, 48, np.full((2, 1, 1, 9), _LEAST)),
    _packed("masked by infinity", (2, 2), (8, 8), 9, 48, np.full((1, 1, 9, 9), -np.inf, np.float32)),
    _packed("unseen", (2, 2), (8, 8), 40, 48, _unseen(40)),
    *(_packed("unseen", (2, 2), (8, 8), n, 48, _unseen(n), nan_rows=1) for n in (2, 40)),
    *(
        _packed("one column", (2, 2), (8, 8), n, 48, r(*shape), mask_broadcasts=1)
        for n in (2, 40)
        for shape in ((2, 1, n, 1), (2, 1, 1), (1, 1))
    ),
    *(
        _packed("kept", (2, 2), (8, 8), n, 48, np.where(_kept(*shape), 0, np.float32(-1e4)), _kept(*shape))
        for n in (2, 40)
        for shape in ((2, 1, n, n), (1, n))
    ),
    _packed("kept", (2, 2), (8, 8), 9, 48, r(2, 1, 9, 9), _kept(2, 1, 9, 1)),
    *(
        _packed("more batches", (4, 2), (8, 8), n, 80, r(3, 1, *shape), _kept(3, 1, 1, n), batch=1, mask_broadcasts=1)
        for n in (2, 9, 40)
        for shape in ((1, n), (n, n))
    ),
    _packed("added", (2, 2), (8, 8), 9, 48, r(1, 2, 9, 9)),
    _ending("HardSwish", lambda v: v * np.clip(v / 6 + 0.5, 0, 1), _IMAGE[:3], offset=0.7),
    _ending("LeakyRelu", lambda v: np.where(v < 0, 0.01 * v, v), _IMAGE[:3], offset=-0.2),
    _ending("Sigmoid", _sigmoid, _IMAGE[:2], offset=1.5),
    _ending("Tanh", np.tanh, _IMAGE[:2], offset=1.5),
    _ending("Swish", lambda v: v * _sigmoid(v), _IMAGE, last=True),
    _ending("Swish", lambda v: v * _sigmoid(v), _IMAGE),
    _ending("Relu", lambda v: np.maximum(v, 0), _IMAGE, last=True),
]
