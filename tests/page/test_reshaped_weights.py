"""Weights that a graph reshapes in each run: values that kernels derive from a constant depend on its shape."""

import numpy as np
import pytest
from array_models import assert_as_native
from text_form import parse

MATRICES = [(12, 24), (24, 12), (12, 24), (8, 36)]
FILTERS = [(4, 8, 3, 3), (8, 4, 3, 3), (4, 8, 3, 3), (72, 4, 1, 1)]


@pytest.mark.parametrize("provider", ["wasm", "webgpu"])
@pytest.mark.parametrize("op", ["MatMul", "Gemm", "Conv", "MatMulInteger", "ConvInteger"])
def test_each_shape_has_its_own(op, provider, new_session):
    kind, type_name = (np.uint8, "uint8") if op.endswith("Integer") else (np.float32, "float")
    rank, shapes = (4, FILTERS) if op.startswith("Conv") else (2, MATRICES)
    rng = np.random.default_rng(0)
    w = rng.integers(0, 9, shapes[0]).astype(kind)
    sizes = "a,b,c,d"[: 2 * rank - 1]
    text = f"g ({type_name}[{sizes}] x, int64[{rank}] shape) => (y) {{ r = Reshape(w, shape)  y = {op}(x, r) }}"
    model = parse(text, {"w": w})
    session = new_session(model, providers=[provider])
    for shape in shapes:
        x = rng.integers(0, 9, (1, shape[1], 6, 6) if rank == 4 else (5, shape[0])).astype(kind)
        assert_as_native(session, model, {"x": x, "shape": np.array(shape)}, atol=0)
