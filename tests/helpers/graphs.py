"""Small models from ONNX's text form, compiled and compared with native onnxruntime."""

from __future__ import annotations

import collections
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import provisional
from standard_form import run_native, standard_form
from text_form import parse as parse

from py_ort.compiler import CompiledModel, CompileOptions, compile_model


def compiled(
    model: onnx.ModelProto,
    *,
    providers: Sequence[str] = ("webgpu", "wasm"),
    level: str = "all",
    chains: bool = False,
    columns: bool = False,
    integers: bool = False,
    **options: Any,
) -> CompiledModel:
    """Compile with the provisional manifests; `chains`, `columns` and `integers` add abilities to them."""
    manifests = provisional.manifests(chains=chains, columns=columns, integers=integers)
    chosen = CompileOptions(graph_optimization_level=level, **options)
    return compile_model(model.SerializeToString(), providers=providers, options=chosen, manifests=manifests)


def operators(model: CompiledModel) -> dict[str, int]:
    """Count a compiled model's nodes by operator; those of the NHWC domain as nhwc.NAME."""
    found = (("nhwc." if node.domain == provisional.NHWC else "") + node.op_type for node in model.placement.nodes)
    return dict(collections.Counter(found))


def random_feeds(
    model: onnx.ModelProto, sizes: Mapping[str, int] | None = None, seed: int = 0
) -> dict[str, np.ndarray]:
    """Make random inputs; symbolic dimensions from `sizes`, 2 by default."""
    rng = np.random.default_rng(seed)
    constants = {item.name for item in model.graph.initializer}
    feeds = {}
    for value in model.graph.input:
        if value.name in constants:
            continue
        tensor = value.type.tensor_type
        shape = [
            d.dim_value if d.HasField("dim_value") else (sizes or {}).get(d.dim_param, 2) for d in tensor.shape.dim
        ]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)
        drawn = rng.standard_normal(shape) if np.dtype(dtype).kind == "f" else rng.integers(0, 2, shape)
        feeds[value.name] = np.asarray(drawn).astype(dtype)
    return feeds


def check_equal(
    model: onnx.ModelProto,
    result: CompiledModel | None = None,
    *,
    feeds: Mapping[str, np.ndarray] | None = None,
    tolerance: float = 1e-4,
) -> CompiledModel:
    """Assert that the compiled graph computes the same as native onnxruntime from the model; return it."""
    result = result if result is not None else compiled(model)
    feeds = dict(feeds if feeds is not None else random_feeds(model))
    wanted = run_native(model, feeds)
    found = run_native(standard_form(result), feeds)
    assert len(wanted) == len(found)
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    return result
