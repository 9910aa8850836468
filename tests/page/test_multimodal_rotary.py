"""MRotaryEmbedding, for vision-language models."""

from typing import Any

import pytest
from contributed_cases import PROVIDERS, Case, Draws, check

_DRAWS = Draws()
RNG, f32 = _DRAWS.rng, _DRAWS.f32


def _case(name: str, shape: tuple[int, ...] = (2, 5, 64), half: int = 8, **attributes: Any) -> Case:
    positions = RNG.integers(0, 12, (3, 2, 5))
    heads = {"num_heads": 4} if len(shape) == 3 else {}
    return Case(
        name, "MRotaryEmbedding", [f32(*shape), positions, f32(12, half), f32(12, half)], {**heads, **attributes}, fed=2
    )


CASES = [
    _case("in sections", mrope_section=[4, 2, 2]),
    _case("of heads", (2, 4, 5, 16), mrope_section=[2, 3, 3]),
    _case("by turns", mrope_section=[4, 2, 2], mrope_layout=1),
    _case("by turns, neighbors", mrope_section=[3, 3, 2], mrope_layout=1, interleaved=1),
    _case("of a part", half=4, mrope_section=[2, 1, 1], rotary_embedding_dim=8),
    _case("scaled", half=4, mrope_section=[2, 1, 1], rotary_embedding_dim=8, scale=0.5),
    _case("text alone", mrope_section=[8, 0, 0]),
]


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_equals_native(case, new_session, provider):
    check(case, new_session, provider)
