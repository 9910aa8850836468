"""GatherBlockQuantized on wasm along any axes, of which native onnxruntime supports few from Python."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import onnx
from case import MICROSOFT
from onnx import helper
from test_wasm_kernels import ASSETS


def _case(seed: int) -> tuple[onnx.ModelProto, dict[str, np.ndarray], np.ndarray]:
    rng = np.random.default_rng(seed)
    rank = int(rng.integers(2, 4))
    shape = [int(size) for size in rng.integers(2, 40, rank)]
    shape[-1] += shape[-1] % 2  # two per byte
    gather, quantize = int(rng.integers(0, rank)), int(rng.integers(0, rank))
    dtype = (ml_dtypes.int4, ml_dtypes.uint4)[seed % 2]
    least = -8 if seed % 2 == 0 else 0
    data = rng.integers(least, least + 16, shape)
    blocks = [-(-size // 16) if axis == quantize else size for axis, size in enumerate(shape)]
    scales = rng.uniform(0.1, 1, blocks).astype((np.float32, np.float16)[seed // 2 % 2])
    zeros = rng.integers(least, least + 16, blocks) if seed % 3 else np.zeros(blocks, int)
    indices = rng.integers(0, shape[gather], (2, 3))
    spread = [np.repeat(x, 16, quantize).take(range(shape[quantize]), quantize) for x in (zeros, scales)]
    wanted = ((data - spread[0]) * spread[1].astype(np.float32)).take(indices, gather)
    feeds = {"data": data.astype(dtype), "indices": indices, "scales": scales}
    if seed % 3:
        feeds["zeros"] = zeros.astype(dtype)
    axes = {"gather_axis": gather, "quantize_axis": quantize, "block_size": 16}
    node = helper.make_node("GatherBlockQuantized", list(feeds), ["y"], domain=MICROSOFT, **axes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in feeds.items()
    ]
    y = helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(scales.dtype), None)
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid(MICROSOFT, 1)]
    graph = helper.make_graph([node], "case", infos, [y])
    return helper.make_model(graph, opset_imports=opsets, ir_version=10), feeds, wanted


def test_rows_of_any_axis(monkeypatch):
    monkeypatch.setenv("PY_ORT_CORE", str(ASSETS / "core.mjs"))
    from one_node import run_many  # type: ignore[import-not-found]

    cases = [_case(seed) for seed in range(48)]
    results = run_many([(model, feeds) for model, feeds, _ in cases])
    for seed, (result, (_, _, wanted)) in enumerate(zip(results, cases, strict=True)):
        assert not isinstance(result, Exception), (seed, result)
        np.testing.assert_allclose(result.outputs[0].astype(np.float32), wanted, rtol=1e-3, err_msg=str(seed))
