"""Products that leave their sums to the following normalization."""

from __future__ import annotations

import re

import numpy as np
import onnx_ir as ir
import pytest
from graphs import parse

from py_ort.compiler import CompileOptions, compile_model
from py_ort.exceptions import InvalidGraph
from py_ort.ir.graph import attribute, dims, input_at

_RNG = np.random.default_rng(2)
_CONSTANTS = {
    "w": _RNG.standard_normal((2048, 16)).astype(np.float32),
    "t": _RNG.standard_normal((16, 2048)).astype(np.float32),
    "shallow": _RNG.standard_normal((2048, 16)).astype(np.float32)[:2044],
    "odd": _RNG.standard_normal((2048, 18)).astype(np.float32),
    **{name: _RNG.standard_normal(16).astype(np.float32) for name in ("b", "c", "g", "h")},
    **{f"{name}18": _RNG.standard_normal(18).astype(np.float32) for name in "bgh"},
}
_NORM = "y = LayerNormalization(s, g, h)"
# id: (nodes from x [n, 3, 2048], r [n, 3, 16], z [n, 3, 2044], q [n, 3, 18] to y, true if they are joined)
CASES = {
    "bias": (f"p = MatMul(x, w) a = Add(p, b) s = Add(a, r) {_NORM}", True),
    "no bias": (f"p = MatMul(x, w) s = Add(p, r) {_NORM}", True),
    "the residual first": (f"p = MatMul(x, w) a = Add(p, b) s = Add(r, a) {_NORM}", True),
    "weights [n, k]": (f"v = Transpose<perm=[1, 0]>(t) p = MatMul(x, v) s = Add(p, r) {_NORM}", True),
    "of two products one": (f"p = MatMul(x, w) k = MatMul(x, w2) s = Add(p, k) {_NORM}", True),
    "read by another": ("p = MatMul(x, w) a = Add(p, b) s = Add(a, r) n = LayerNormalization(s, g, h) "
                        "e = Sin(a) y = Add(n, e)", False),
    "an activation": (f"p = MatMul(x, w) a = Relu(p) s = Add(a, r) {_NORM}", False),
    "little to share": (f"p = MatMul(z, shallow) s = Add(p, r) {_NORM}", False),
    "odd columns": ("p = MatMul(x, odd) s = Add(p, q) y18 = LayerNormalization(s, g18, h18) y = Identity(y18)", False),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("providers", [("webgpu", "wasm"), ("wasm",)])
@pytest.mark.parametrize("dtype", ["float", "float16"])
def test_products_are_joined_to_normalizations(case: str, providers: tuple[str, ...], dtype: str) -> None:
    text, joined = CASES[case]
    constants = {**_CONSTANTS, "w2": _CONSTANTS["w"][:, ::-1].copy()}
    inputs = ", ".join(f"{dtype}[n, 3, {size}] {name}" for name, size in zip("xrzq", (2048, 16, 2044, 18), strict=True))
    kind = {"float": np.float32, "float16": np.float16}[dtype]
    model = parse(
        f"g ({inputs}) => ({dtype}[n, 3, m] y) {{ {text} }}",
        {name: array.astype(kind) for name, array in constants.items() if name in re.findall(r"\w+", text)},
    )
    made = compile_model(model.SerializeToString(), providers=providers, options=CompileOptions()).model.graph
    products = [node for node in made if node.op_type == "MatMul" and attribute(node, "y_parts", 0)]
    norms = [node for node in made if attribute(node, "x_parts", 0)]
    assert len(products) == len(norms) == int(joined and "webgpu" in providers)
    for product, norm in zip(products, norms, strict=True):
        assert norm.inputs[0] is product.outputs[0]
        assert product.outputs[0].dtype == ir.DataType.FLOAT
        assert input_at(product, 2) is None
        assert [str(dim) for dim in dims(product.outputs[0]) or ()][1:] == ["n", "3", "16"]
        assert (input_at(norm, 4) is not None) == ("a = Add(p, b)" in text)


@pytest.mark.parametrize(
    "body",
    [
        "y = com.microsoft.SkipLayerNormalization<x_parts=1>(r, r, g, h)",
        "y = com.microsoft.FusedMatMul<y_parts=1>(x, w)",
        "y = com.microsoft.RotaryEmbedding<y_columns=[0, 4]>(r, g, g, h)",
    ],
)
def test_models_do_not_say_what_passes_write(body: str) -> None:
    text = f"g (float[2, 3, 2048] x, float[2, 3, 16] r) => (float[e, f, m] y) {{ {body} }}"
    model = parse(text, {name: _CONSTANTS[name] for name in "wgh" if f" {name}" in body})
    with pytest.raises(InvalidGraph, match="which the operator does not know"):
        compile_model(model.SerializeToString(), providers=["webgpu", "wasm"])
