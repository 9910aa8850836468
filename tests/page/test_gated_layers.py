"""Gates, norms of branches and streams, each a single operator in com.microsoft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from contributed_cases import PROVIDERS, Case, Draws, NewSession, check

_DRAWS = Draws()
f32 = _DRAWS.f32

pytestmark = pytest.mark.browser


def _case(name: str, op: str, inputs: Sequence[Any], fed: int = 2, outputs: int = 1, **attributes: Any) -> Case:
    half = inputs[0].dtype == np.float16
    return Case(name, op, list(inputs), attributes, fed=fed, outputs=outputs, tolerance=4e-3 if half else 2e-5)


def f16(*shape: int) -> np.ndarray:
    return f32(*shape).astype(np.float16)


ENGRAM = [f32(2, 3, 4, 8), f32(2, 3, 4, 8), f32(2, 3, 8), f32(4, 8), f32(4, 8), f32(4, 8)]
CASES = [
    _case("", "GatedAdd", [f32(2, 3, 8), f32(2, 3, 8), f32(2, 3, 1)], fed=3),
    _case("of halves", "GatedAdd", [f16(5, 8), f16(5, 8), f16(5, 1)], fed=3),
    _case("", "ScaledSiLU", [f32(3, 8)], alpha=1.7),
    _case("by an input", "ScaledSiLU", [f32(3, 8), np.array(0.4, np.float32)], alpha=1.7),
    _case("of halves", "ScaledSiLU", [f16(3, 8), np.array(0.4, np.float32)]),
    *(
        _case(kind, "GatedRMSNorm", [f32(2, 3, 8), f32(8), f32(2, 3, 8)], activation=kind)
        for kind in ("silu", "sigmoid")
    ),
    _case("of heads", "GatedRMSNorm", [f32(2, 3, 24), f32(8), f32(2, 3, 24)], activation="swish", epsilon=1e-2),
    _case("of halves", "GatedRMSNorm", [f16(2, 3, 24), f16(8), f16(2, 3, 24)]),
    _case("", "BranchwiseRMSNorm", [f32(2, 3, 4, 8), f32(8)], epsilon=1e-3),
    _case("without scale", "BranchwiseRMSNorm", [f32(2, 4, 8)]),
    _case("own scales", "BranchwiseRMSNorm", [f32(2, 3, 4, 8), f32(4, 8)]),
    _case("flat", "BranchwiseRMSNorm", [f32(2, 3, 32), f32(32)], num_branches=4),
    _case("of halves", "BranchwiseRMSNorm", [f16(2, 4, 8), f32(8)]),
    _case("", "LinearAttentionGate", [f32(2, 3, 4), f32(4), -np.abs(f32(4)), f32(2, 3, 4)], outputs=2),
    _case("decay alone", "LinearAttentionGate", [f32(2, 3, 4), f32(4), -np.abs(f32(4))]),
    _case("of halves", "LinearAttentionGate", [f16(2, 3, 4), f32(4), -np.abs(f32(4)), f16(2, 3, 4)], outputs=2),
    *(
        _case(f"gates {shape}", "HyperConnectionPreMix", [f32(2, 3, 4, 8), f32(2, 3, *shape)], reduction_scale=0.5)
        for shape in ((4,), (4, 1), (4, 8))
    ),
    *(
        _case(f"flat, gates {shape}", "HyperConnectionPreMix", [f32(2, 3, 32), f32(2, 3, *shape)], num_branches=4)
        for shape in ((4,), (4, 1), (4, 8), (32,))
    ),
    *(
        _case(f"gates {shape}", "HyperConnectionPostMix", [f32(2, 3, 4, 8), f32(2, 3, 8), f32(2, 3, *shape)], fed=3)
        for shape in ((4,), (4, 1), (4, 8))
    ),
    _case("mixed", "HyperConnectionPostMix", [f32(2, 3, 4, 8), f32(2, 3, 8), f32(2, 3, 4), f32(2, 3, 4, 4)], fed=4),
    _case(
        *("flat, mixed", "HyperConnectionPostMix", [f32(5, 32), f32(5, 8), f32(5, 4), f32(5, 4, 4)]),
        fed=4,
        num_branches=4,
    ),
    _case("", "EngramGate", ENGRAM[:5], fed=3),
    _case("normalized", "EngramGate", ENGRAM, fed=3, outputs=2, epsilon=1e-3),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_native(case: Case, new_session: NewSession, provider: str) -> None:
    check(case, new_session, provider)
