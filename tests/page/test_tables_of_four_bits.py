"""GatherBlockQuantized with tables of int4 and uint4, the form of embeddings by onnxruntime's MatMulNBitsQuantizer."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
from contributed_cases import PROVIDERS
from native import native_session
from onnx import helper, numpy_helper

from py_ort import SessionOptions

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("with_zeros", [False, True], ids=["", "zeros"])
@pytest.mark.parametrize("kind", [ml_dtypes.int4, ml_dtypes.uint4], ids=["int4", "uint4"])
def test_equals_native(new_session: Any, kind: Any, with_zeros: bool, provider: str) -> None:
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
    x, y = helper.make_tensor_value_info("x", 7, [2, 3]), helper.make_tensor_value_info("y", 1, [2, 3, 80])
    held = [numpy_helper.from_array(value, name) for name, value in weights.items()]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(helper.make_graph([node], "g", [x], [y], held), opset_imports=opsets, ir_version=10)
    options = SessionOptions()
    if provider == "webgpu":
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    source, feeds = model.SerializeToString(), {"x": rng.integers(0, 19, (2, 3))}
    (wanted,) = native_session(source).run(None, feeds)
    (found,) = new_session(source, options, providers=PROVIDERS[provider]).run(None, feeds)
    np.testing.assert_allclose(found, wanted, rtol=1e-6)
