"""Epilogues of products: their text, the kernels' support, and the passes' results."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import onnx_ir as ir
import pytest
from graphs import check_equal, compiled, operators, parse
from provisional import manifests

from py_ort.compiler.canonical.canonicalize import canonicalize
from py_ort.compiler.passes.fuse.activation import activation
from py_ort.compiler.passes.fuse.residual import residual
from py_ort.compiler.target import Target
from py_ort.ir.epilogue import Epilogue

NONE = Epilogue()
SWISH = NONE.then("Swish", [1.5])
# its program, its text
TEXTS = [
    (NONE, "", ""),
    (NONE.plus_residual(), "Add 0 1", "+ residual"),
    (NONE.then("Relu").plus_residual(), "Relu 0;Add 2 1", "Relu, + residual"),
    (NONE.plus_residual().then("Relu"), "Add 0 1;Relu 2", "+ residual, Relu"),
    (
        SWISH.plus(0.25).plus_residual(),
        "Swish 0 #1.5;Number #0.25;Add 2 3;Add 4 1",
        "Swish(1.5), + 0.25, + residual",
    ),
    (NONE.then("Clip", [0.0]), "Clip 0 #0.0 #Infinity", "Clip(0, inf)"),
    (SWISH.then("Relu"), "Swish 0 #1.5;Relu 2", "Swish(1.5), Relu"),
]


@pytest.mark.parametrize(("epilogue", "program", "text"), TEXTS, ids=[text for _, _, text in TEXTS])
def test_text(epilogue: Epilogue, program: str, text: str) -> None:
    assert epilogue.program == program and str(epilogue) == text
    assert Epilogue.parse(program) == epilogue


@pytest.mark.parametrize("program", ["Mul 0 1", "Add 0 0", "Relu 1", "Relu 0;Relu 0", "Number #1.0;Add 0 3"])
def test_programs_of_other_kinds_are_refused(program: str) -> None:
    with pytest.raises(ValueError, match=program):
        Epilogue.parse(program)


@pytest.mark.parametrize(
    ("epilogue", "known"),
    [
        *((each, True) for each, _, _ in TEXTS[:-1]),
        (NONE.plus_residual().then("Exp").plus(1.0), True),
        (SWISH.then("Relu"), False),
        (SWISH.plus(1.0).then("Relu"), False),
        (SWISH.plus(1.0).plus(1.0), False),
        (SWISH.plus_residual().plus(1.0), False),
        (SWISH.plus_residual().then("Relu"), False),
        (NONE.plus_residual().then("Relu").plus_residual(), False),
        (NONE.then("Sin"), False),  # a function that cannot end a product
        (NONE.then("Nonsense"), False),
    ],
    ids=str,
)
def test_recognized(epilogue: Epilogue, known: bool) -> None:
    assert epilogue.recognized == known


def _f(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).standard_normal(shape).astype(np.float32)


CONV = "g (float[1,4,6,7] x) => (float[1,4,6,7] y) {{ c = Conv(x, w, b)  {} }}"
WEIGHTS = {"w": _f(4, 4, 1, 1), "b": _f(4), "low": np.float32(-0.5), "high": np.float32(0.25), "n": np.float32(0.75)}
# nodes after a convolution of x: (its epilogue, other remaining operators)
CHAINS = {
    "s = HardSwish(c)  t = Add(s, n)  y = Add(t, x)": ("HardSwish, + 0.75, + residual", {}),
    "s = Add(x, c)  t = Tanh(s)  y = Add(t, n)": ("+ residual, Tanh, + 0.75", {}),
    "s = Relu(c)  t = Clip(s, low, high)  y = Add(t, x)": ("Clip(0, 0.25), + residual", {}),
    "s = Add(c, x)  y = Add(s, x)": ("+ residual", {"Add": 1}),
    "s = Relu(c)  t = Add(s, x)  y = Relu(t)": ("Relu, + residual", {"Relu": 1}),
    "s = Tanh(c)  y = Sigmoid(s)": ("Tanh", {"Sigmoid": 1}),
}


@pytest.mark.parametrize("nodes", CHAINS)
def test_what_passes_make(nodes: str) -> None:
    text, left = CHAINS[nodes]
    model = parse(CONV.format(nodes), {name: x for name, x in WEIGHTS.items() if name in nodes or name in "wb"})
    result = check_equal(model, compiled(model))
    (conv,) = (node for node in result.model.graph if node.op_type == "Conv")
    assert str(Epilogue.of(conv)) == text
    assert {name: count for name, count in operators(result).items() if name in ("Add", "Relu", "Sigmoid")} == left


@pytest.mark.parametrize("lacking", ["webgpu", "wasm"])
@pytest.mark.parametrize(("feature", "nodes"), [("epilogue", "y = Relu(c)"), ("residual", "y = Add(c, x)")])
def test_what_a_kernel_cannot_do_is_not_written(lacking: str, feature: str, nodes: str) -> None:
    known = manifests()
    without = {key: names - {feature} for key, names in known[lacking].features.items()}
    for builds in (known, {**known, lacking: replace(known[lacking], features=without)}):
        target = Target.of(["webgpu", "wasm"], builds)
        model = ir.serde.deserialize_model(parse(CONV.format(nodes), {"w": WEIGHTS["w"], "b": WEIGHTS["b"]}))
        canonicalize(model)
        made = (activation if feature == "epilogue" else residual)(target).call(model)
        assert made == (builds is known)
