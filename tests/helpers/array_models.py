"""Models whose inputs and constants are arrays, and their results compared with native onnxruntime's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from native import native_session
from onnx import helper, numpy_helper
from same_values import assert_same


def model_of(
    nodes: Iterable[onnx.NodeProto],
    feeds: Mapping[str, np.ndarray],
    outputs: Iterable[str],
    constants: Mapping[str, Any] | None = None,
    *,
    opset: int = 21,
    domains: Mapping[str, int] | None = None,
    sizes: Mapping[str, Sequence[int | str | None]] | None = None,
) -> onnx.ModelProto:
    """Make a model; types of outputs are open.

    Args:
        nodes: The nodes of the graph.
        feeds: Arrays with the types and sizes of the inputs.
        outputs: The names of the outputs.
        constants: Initializers.
        opset: The version of ONNX's own operators.
        domains: Versions of other domains, by default 1 of com.microsoft.
        sizes: Declared sizes of inputs, instead of those of their arrays.
    """
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), (sizes or {}).get(name, x.shape))
        for name, x in feeds.items()
    ]
    results = [onnx.ValueInfoProto(name=name) for name in outputs]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in (constants or {}).items()]
    graph = helper.make_graph(list(nodes), "arrays", inputs, results, tensors)
    versions = {"": opset, **(domains or {"com.microsoft": 1})}
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid(*item) for item in versions.items()], ir_version=10
    )


def any_size(feeds: Mapping[str, np.ndarray]) -> dict[str, list[str]]:
    """Return open sizes for arrays."""
    return {name: [f"{name}_{axis}" for axis in range(x.ndim)] for name, x in feeds.items()}


def random_floats(seed: int, **shapes: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Return arrays of float32, by name."""
    rng = np.random.default_rng(seed)
    return {name: rng.standard_normal(shape).astype(np.float32) for name, shape in shapes.items()}


def assert_as_native(
    session: Any,
    model: onnx.ModelProto | bytes,
    *runs: Mapping[str, np.ndarray],
    rtol: float = 1e-5,
    atol: float = 1e-5,
) -> None:
    """Assert that the session returns native onnxruntime's results for the feeds of each run."""
    native = native_session(model)
    for feeds in runs:
        found, wanted = (each.run(None, dict(feeds)) for each in (session, native))
        assert_same(found, wanted, rtol=rtol, atol=atol)
