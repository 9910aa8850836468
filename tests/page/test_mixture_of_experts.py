"""MoE and QMoE on both providers."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from contributed_cases import PROVIDERS, Case, Draws, check

from py_ort.exceptions import NotImplemented

_DRAWS = Draws()
RNG, f32 = _DRAWS.rng, _DRAWS.f32

TOKENS, HIDDEN, INNER, EXPERTS = 7, 32, 24, 5


def _moe(
    name: str, gated: int = 1, third: bool = False, tokens: tuple[int, ...] = (TOKENS,), **attributes: Any
) -> Case:
    count, width = int(np.prod(tokens)), INNER * gated
    more = [f32(EXPERTS, INNER, HIDDEN), f32(EXPERTS, INNER)] if third else []
    inputs = [
        *(f32(*tokens, HIDDEN), f32(count, EXPERTS)),
        *(f32(EXPERTS, width, HIDDEN), f32(EXPERTS, width), f32(EXPERTS, HIDDEN, INNER), f32(EXPERTS, HIDDEN), *more),
    ]
    expected = _expected(attributes) if third or attributes.get("swiglu_fusion") == 2 else None
    return Case(name, "MoE", inputs, {"k": 2, **attributes}, fed=2, tolerance=1e-4, expected=expected)


def _expected(attributes: dict[str, Any]) -> Callable[..., Any]:
    """In plain numpy: native has no third layer, and SwiGLU only of interleaved columns."""

    def run(x: Any, scores: Any, w1: Any, b1: Any, w2: Any, b2: Any, w3: Any = None, b3: Any = None) -> Any:
        y = np.zeros_like(x)
        for t, row in enumerate(x):
            weights = np.exp(scores[t]) / np.exp(scores[t]).sum()
            for e in np.argsort(-scores[t])[:2]:
                gate = w1[e] @ row + b1[e]
                gate, value = (gate, w3[e] @ row + b3[e]) if w3 is not None else np.split(gate, 2)
                limit = attributes.get("swiglu_limit", np.inf)
                gate, value = (
                    np.minimum(gate, limit),
                    np.clip(value, -limit, limit) + attributes.get("activation_beta", 0),
                )
                hidden = gate / (1 + np.exp(-attributes.get("activation_alpha", 1) * gate)) * value
                y[t] += weights[e] * (w2[e] @ hidden + b2[e])
        return [y]

    return run


def _packed(values: np.ndarray, bits: int) -> np.ndarray:
    """Along the last axis, the lowest bits first; missing bits of the last byte are zero."""
    each = 8 // bits
    values = np.pad(values, [(0, 0)] * (values.ndim - 1) + [(0, -values.shape[-1] % each)])
    parts = values.reshape(*values.shape[:-1], -1, each)
    return sum(parts[..., i] << (bits * i) for i in range(each)).astype(np.uint8)


def _layer(rows: int, size: int, bits: int, block: int, zeros: bool, dtype: Any) -> list[np.ndarray | None]:
    """Weights, scales, zero points, a bias."""
    shape = (EXPERTS, rows, size // block) if block else (EXPERTS, rows)
    made = [
        _packed(RNG.integers(0, 2**bits, (EXPERTS, rows, size)), bits),
        RNG.uniform(0.01, 0.05, shape).astype(dtype),
    ]
    return [*made, _packed(RNG.integers(0, 2**bits, shape), bits) if zeros else None, f32(EXPERTS, rows).astype(dtype)]


def _qmoe(
    name: str,
    bits: int = 4,
    block: int = 0,
    zeros: bool = False,
    gated: int = 1,
    shares: bool = False,
    size: int = HIDDEN,
    inner: int = INNER,
    dtype: Any = np.float32,
    **attributes: Any,
) -> Case:
    inner = 32 if block else inner
    w1, s1, z1, b1 = _layer(inner * gated, size, bits, block, zeros, dtype)
    w2, s2, z2, b2 = _layer(size, inner, bits, block, zeros, dtype)
    x, scores = f32(TOKENS, size).astype(dtype), f32(TOKENS, EXPERTS).astype(dtype)
    inputs = [x, scores, w1, s1, b1, w2, s2, b2, None, None, None, z1, z2, None]
    inputs += [np.abs(f32(TOKENS, EXPERTS)).astype(dtype)] if shares else []
    while inputs[-1] is None:
        inputs.pop()
    given = {"k": 2, "expert_weight_bits": bits, **({"block_size": block} if block else {}), **attributes}
    return Case(name, "QMoE", inputs, given, fed=2, tolerance=2e-2 if dtype == np.float16 else 2e-4)


def _tied(case: Case) -> Case:
    """Equal scores: which experts are chosen?"""
    case.inputs[1][:, :3] = 2
    case.inputs[1][0] = 0
    return case


GPT_OSS = {
    "activation_type": "swiglu",
    "swiglu_fusion": 1,
    "swiglu_limit": 1.0,
    "activation_alpha": 1.702,
    "activation_beta": 1.0,
}
CASES = [
    *(_moe(kind, activation_type=kind) for kind in ("relu", "gelu", "silu", "identity")),
    *(_moe(f"{k} of all, normalized {n}", k=k, normalize_routing_weights=n) for k, n in [(1, 0), (3, 1), (EXPERTS, 0)]),
    _moe("of batches", tokens=(2, 3)),
    _moe("swiglu", 2, activation_type="swiglu", swiglu_fusion=1),
    _moe("swiglu with limits", 2, **GPT_OSS),
    _moe("swiglu of halves", 2, **{**GPT_OSS, "swiglu_fusion": 2}),
    _moe("a third layer", third=True, activation_type="silu"),
    _moe("a third layer, swiglu", third=True, **{**GPT_OSS, "swiglu_fusion": 0}),
    _tied(_moe("ties")),
    *(
        _qmoe(f"{bits} bits, blocks of {block}{', zero points' * zeros}", bits, block, zeros)
        for bits in (2, 4)
        for block in (0, 16, 32)
        for zeros in (False, True)
    ),
    _qmoe("8 bits", 8, 0, True),
    _qmoe("odd sizes", size=20, inner=6, zeros=True),
    _qmoe("many tokens for each", k=EXPERTS),
    _qmoe("like gpt-oss", 4, 32, gated=2, **GPT_OSS),
    _qmoe("shares", shares=True),
    _qmoe("shares, normalized", shares=True, normalize_routing_weights=1),
    _qmoe("float16", 4, 16, dtype=np.float16),
    _tied(_qmoe("ties")),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_native(case, new_session, provider):
    check(case, new_session, provider)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("block", [16, 32])
def test_rows_are_rounded_for_bytes_in_blocks_as_natively(new_session, block, zeros):
    """WebGPU multiplies floats."""
    check(_qmoe(f"8 bits, blocks of {block}", 8, block, zeros, k=3), new_session, "wasm")


def test_other_weights_are_refused(new_session):
    """Weights of fp8 have the same form as those of 8 bits."""
    model, _ = _qmoe("fp8", 8, quant_type="fp8").model()
    with pytest.raises(NotImplemented, match="quant_type 'fp8'"):
        new_session(model.SerializeToString(), providers=["wasm"])
