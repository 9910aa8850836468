"""Products with operands and results transposed in place: the kernels, and the pass that makes them."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from native import native_session

pytestmark = pytest.mark.browser

DEVICES: dict[str, dict[str, Any]] = {
    "software": {},
    "hardware": {"hardware": True},
    "parts": {"hardware": True, "traits": {"tiles": {"*": "32x32x16_two_slices_4_parts_3"}}},
}


class _Case:
    """Numbers are integers: sums are exact in any order."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.fused = bool(rng.integers(2))
        batch = tuple(int(n) for n in rng.choice([1, 2, 3], rng.integers(0, 4)))
        m, n, k = (int(rng.choice(sizes)) for sizes in ((1, 3, 9, 16, 33), (1, 4, 8, 20, 35), (1, 4, 12, 32, 7)))
        self.attributes: dict[str, Any] = {}
        operands = []
        for name, matrix in (("a", (m, k)), ("b", (k, n))):
            known = batch[int(rng.integers(0, len(batch) + 1)) :] if rng.random() < 0.3 else batch
            dims = (*(1 if rng.random() < 0.2 else dim for dim in known), *matrix)
            operands.append(self._operand(rng, name, rng.integers(-4, 5, dims).astype(np.float32)))
        self.inputs = [stored for stored, _ in operands]
        self.wanted = operands[0][1] @ operands[1][1]
        if rng.random() < 0.5:
            perm = self._perm(rng, self.wanted.ndim, rng.random() < 0.8)
            self.attributes["y_perm"] = perm
            self.wanted = self.wanted.transpose(perm)

    def _operand(self, rng: np.random.Generator, name: str, read: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The operand in the feed's form, and in the product's."""
        given, rank = read, read.ndim
        if self.fused and rng.random() < 0.5:
            self.attributes[f"trans{name.upper()}"] = 1
            given = given.swapaxes(-1, -2)
        if self.fused and rank > 2 and rng.random() < 0.3:
            self.attributes[f"transBatch{name.upper()}"] = 1
            given = np.moveaxis(given, -2, 0)
        if rng.random() < 0.8:
            perm = self._perm(rng, rank, rng.random() < 0.6)
            self.attributes[f"{name}_perm"] = perm
            given = given.transpose(np.argsort(perm))
        return np.ascontiguousarray(given), read

    def _perm(self, rng: np.random.Generator, rank: int, keeps_last: bool) -> list[int]:
        moved = rng.permutation(rank - 1 if keeps_last else rank).tolist()
        return [*moved, rank - 1] if keeps_last else moved


@pytest.mark.parametrize("device", DEVICES)
def test_any_order_of_axes(kernel_page: Any, device: str) -> None:
    for seed in range(150):
        case = _Case(seed)
        op, domain = ("FusedMatMul", "com.microsoft") if case.fused else ("MatMul", "")
        (y,) = kernel_page.run(op, case.inputs, case.attributes, domain=domain, **DEVICES[device]).outputs
        np.testing.assert_array_equal(y, case.wanted, err_msg=f"{seed}: {case.attributes}")


@pytest.mark.parametrize("device", ["software", "hardware"])
def test_few_rows_become_one_tall_matrix(kernel_page: Any, device: str) -> None:
    """Many short matrices would read the one matrix as often."""
    w = np.ones((16, 8), np.float32)
    for name, dims in (("a_perm", (4, 128, 16)), ("y_perm", (128, 4, 16))):
        a = np.ones(dims, np.float32)
        result = kernel_page.run("MatMul", [a, w], {name: [1, 0, 2]}, **DEVICES[device])
        assert any(shader.startswith("strided_copy") for shader in result.shaders), result.shaders
        np.testing.assert_array_equal(result.outputs[0], np.full((dims[1], dims[0], 8), 16, np.float32))
    many = kernel_page.run("MatMul", [a.reshape(2, 256, 16), w], {"y_perm": [1, 0, 2]}, **DEVICES[device])
    assert not any(name.startswith("strided_copy") for name in many.shaders), many.shaders


@pytest.mark.parametrize("around", ["t = Transpose<perm=[1,0]>(a)  y = MatMul(t, a)", "m = MatMul(a, a)  y = T(m)"])
def test_a_perm_of_another_rank_is_an_error(new_session: Any, around: str) -> None:
    text = around.replace("T(", "Transpose<perm=[1,0]>(")
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : 21]> g (float[n,m,k] a) => (float[c,d,e] y) {{ {text} }}'
    )
    session = new_session(model.SerializeToString(), providers=["webgpu"])
    with pytest.raises(Exception, match="does not order the axes"):
        session.run(None, {"a": np.ones((2, 3, 3), np.float32)})


def _attention(dtype: str) -> str:
    """Of two heads, which no pass recognizes: its scores go through a Sigmoid."""
    return f"""
    <ir_version: 10, opset_import: ["" : 21]>
    g ({dtype}[b,20,2,16] q, {dtype}[b,24,2,16] k, {dtype}[b,24,2,12] v)
        => ({dtype}[b,20,2,12] y, {dtype}[b,2,24,12] h) {{
        queries = Transpose<perm=[0,2,1,3]>(q)
        keys = Transpose<perm=[0,2,3,1]>(k)
        scores = MatMul(queries, keys)
        weights = Sigmoid(scores)
        h = Transpose<perm=[0,2,1,3]>(v)
        heads = MatMul(weights, h)
        y = Transpose<perm=[0,2,1,3]>(heads)
    }}"""


@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_heads_stay_where_they_are(new_session: Any, dtype: type[np.floating]) -> None:
    """Another node reads the values: their Transpose stays."""
    model = onnx.parser.parse_model(_attention({np.float32: "float", np.float16: "float16"}[dtype]))
    session = new_session(model.SerializeToString(), providers=["webgpu"])
    rng = np.random.default_rng(5)
    feeds = {
        name: rng.standard_normal(shape).astype(dtype)
        for name, shape in {"q": (3, 20, 2, 16), "k": (3, 24, 2, 16), "v": (3, 24, 2, 12)}.items()
    }
    wanted = native_session(model).run(None, feeds)
    near = {"rtol": 1e-2, "atol": 1e-2} if dtype == np.float16 else {"rtol": 1e-5, "atol": 1e-4}
    for found, each in zip(session.run(None, feeds), wanted, strict=True):
        np.testing.assert_allclose(found, each, **near)
    counts = {op_type: count for count, op_type, *_ in session.placement().by_operator()}
    assert (counts["MatMul"], counts["Transpose"]) == (2, 1)
