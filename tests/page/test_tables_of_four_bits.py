"""GatherBlockQuantized with tables of int4 and uint4, the form of embeddings by onnxruntime's MatMulNBitsQuantizer."""

import ml_dtypes
import numpy as np
import pytest
from array_models import assert_as_native, model_of
from contributed_cases import PROVIDERS
from onnx import helper
from session_settings import settings


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("with_zeros", [False, True], ids=["", "zeros"])
@pytest.mark.parametrize("kind", [ml_dtypes.int4, ml_dtypes.uint4], ids=["int4", "uint4"])
def test_equals_native(new_session, kind, with_zeros, provider):
    rng = np.random.default_rng(5)
    least = -8 if kind == ml_dtypes.int4 else 0
    # Rows of zero points that are not whole bytes.
    weights = {"table": rng.integers(least, least + 16, (19, 80)).astype(kind)}
    weights["steps"] = rng.uniform(0.1, 1, (19, 5)).astype(np.float32)
    if with_zeros:
        weights["zeros"] = rng.integers(least, least + 16, (19, 5)).astype(kind)
    names = ["table", "x", *list(weights)[1:]]
    axes = {"gather_axis": 0, "quantize_axis": 1, "block_size": 16}
    node = helper.make_node("GatherBlockQuantized", names, ["y"], domain="com.microsoft", **axes)
    feeds = {"x": rng.integers(0, 19, (2, 3))}
    model = model_of([node], feeds, ["y"], weights)
    options = settings(entries={"session.disable_cpu_ep_fallback": str(int(provider == "webgpu"))})
    assert_as_native(new_session(model, options, providers=PROVIDERS[provider]), model, feeds, rtol=1e-6, atol=0)
