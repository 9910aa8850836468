"""Each fusion: the remaining operators, and the same results."""

from __future__ import annotations

import numpy as np
import pytest
from fusion_cases import CASES, CONV, IN, OUT, B, W
from graphs import check_equal, compiled, operators, parse


@pytest.mark.parametrize("case", CASES)
def test_fusion(case: str) -> None:
    text, constants, expected = CASES[case]
    model = parse(text, constants)
    result = check_equal(model, compiled(model), tolerance=2e-4)
    if expected is not None:
        assert operators(result) == expected


@pytest.mark.parametrize("level", ["disabled", "basic", "extended", "layout", "all"])
@pytest.mark.parametrize(
    "case", ["conv+batchnorm+relu", "residual, then relu", "layer normalization", "matmul+bias+gelu"]
)
def test_every_level_computes_the_same(case: str, level: str) -> None:
    text, constants, _ = CASES[case]
    model = parse(text, constants)
    result = check_equal(model, compiled(model, level=level), tolerance=2e-4)
    fused = [n for n in result.model.graph if "epilogue" in n.attributes]
    assert not fused if level in ("disabled", "basic") else True


def test_a_branch_whose_condition_is_known_is_taken() -> None:
    model = parse(
        """g (float[2,3] x) => (float[a,b] y) { s = Shape(x)  r = Size(s)  c = Equal(r, two)  z = Tanh(x)
            y = If (c) <then_branch = yes () => (float[a,b] o) {
                            k = Constant<value_floats=[1.0,2.0,3.0]>()  o = Mul(z, k) },
                        else_branch = no () => (float[a,b] q) { q = Unsqueeze(x, one) }> }""",
        {"two": np.int64(2), "one": np.array([0], np.int64)},
    )
    result = check_equal(model)
    assert operators(result) == {"Tanh": 1, "Mul": 1}


def test_a_branch_that_gives_out_an_outer_value() -> None:
    model = parse(
        """g (float[2] x) => (float[2] y) { z = Tanh(x)
            y = If (yes) <then_branch = a () => (float[2] o) { o = Identity(z) },
                          else_branch = b () => (float[2] q) { q = Neg(x) }> }""",
        {"yes": np.bool_(True)},
    )
    result = check_equal(model)
    assert operators(result) == {"Tanh": 1} and result.outputs[0].name == "y"


def test_a_value_that_others_read_too_is_not_fused_away() -> None:
    model = parse(
        f"g ({IN}) => ({OUT}, float[a,b,c,d] z) {{ {CONV}  y = Relu(c)  z = Sigmoid(c) }}", {"w": W, "bias": B}
    )
    result = check_equal(model)
    assert operators(result)["Relu"] == 1


def test_an_output_that_is_an_intermediate_value_keeps_its_name() -> None:
    model = parse(f"g ({IN}) => ({OUT}, float[a,b,c,d] c) {{ {CONV}  y = Relu(c) }}", {"w": W, "bias": B})
    result = check_equal(model)
    assert [v.name for v in result.model.graph.outputs] == ["y", "c"]


def test_an_input_given_out_unchanged() -> None:
    model = parse("g (float[2] x) => (float[2] y, float[2] z) { y = Identity(x)  z = Identity(x) }")
    result = check_equal(model)
    assert [v.name for v in result.model.graph.outputs] == ["y", "z"]


def test_a_constant_given_out() -> None:
    model = parse("g (float[2] x) => (float[2] y, float[2] c) { y = Relu(x)  c = Constant<value_floats=[1.0,2.0]>() }")
    check_equal(model)


def test_folding_keeps_to_its_limit() -> None:
    """A small constant that grows huge stays a node."""
    model = parse(
        "g (float[1] x) => (float[n] y) { big = Expand(c, s)  m = ReduceMax<keepdims=0>(big)  y = Add(x, m) }",
        {"c": np.ones(1, np.float32), "s": np.array([1 << 28], np.int64)},
    )
    assert "Expand" in operators(compiled(model))


def test_random_numbers_are_not_folded() -> None:
    model = parse("g (float[2] x) => (float[2] y) { r = RandomNormal<shape=[2], seed=1.0>()  y = Add(x, r) }")
    assert "RandomNormal" in operators(compiled(model))
