"""bfloat16 on webgpu: computed in float32, rounded when it is stored."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from graphs import parse
from session_settings import settings

from py_ort import OrtValue

BFLOAT = ml_dtypes.bfloat16
RNG = np.random.default_rng(2)


def _random(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(BFLOAT)


EXTREMES = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 3.3e38, 1e-40, 1.00390625, 1.01171875, -65504.0], np.float32)


def _norm(x: Any, w: Any) -> Any:
    """MatMul, then a softmax: each result is rounded."""
    product = (x.astype(np.float32) @ w.astype(np.float32)).astype(BFLOAT).astype(np.float32)
    powers = np.exp(product - product.max(-1, keepdims=True))
    return (powers / powers.sum(-1, keepdims=True)).astype(BFLOAT)


MODELS: Mapping[str, tuple[str, dict[str, np.ndarray], Callable[..., Any], float]] = {
    "cast to": (
        "(float[10] x) => (bfloat16[10] y) { y = Cast<to = 16>(x) }",
        {"x": EXTREMES},
        lambda x: x.astype(BFLOAT),
        0,
    ),
    "cast from": (
        "(bfloat16[10] x) => (float[10] y) { y = Cast<to = 1>(x) }",
        {"x": EXTREMES.astype(BFLOAT)},
        lambda x: x.astype(np.float32),
        0,
    ),
    "moves": (
        """(bfloat16[3, 5] x, bfloat16[3, 2] z) => (bfloat16[7, 3] y) {
            joined = Concat<axis = 1>(x, z)
            y = Transpose<perm = [1, 0]>(joined)
        }""",
        {"x": _random(3, 5), "z": _random(3, 2)},
        lambda x, z: np.concatenate([x, z], 1).T,
        0,
    ),
    "rounds": (
        "(bfloat16[33] x, bfloat16[1] z) => (bfloat16[33] y) { y = Mul(x, z) }",
        {"x": _random(33), "z": _random(1)},
        lambda x, z: x * z,
        0,
    ),
    "computes": (
        "(bfloat16[4, 24] x, bfloat16[24, 7] w) => (bfloat16[4, 7] y) { p = MatMul(x, w)  y = Softmax(p) }",
        {"x": _random(4, 24), "w": _random(24, 7)},
        _norm,
        2**-8,
    ),
}


def test_values_stay_on_the_gpu(new_session):
    """Two bytes each: left there by a session, fed to the next, written to a bound value."""
    model = parse("g (bfloat16[N] x, bfloat16[1] z) => (bfloat16[N] y) { y = Mul(x, z) }", opset=22).SerializeToString()
    x, z = _random(7), np.array([3], BFLOAT)
    for location in ("webgpu", {"y": "webgpu"}):
        session = new_session(model, settings(preferred_output_location=location), providers=["webgpu"])
        fed = OrtValue.ortvalue_from_numpy(x, "webgpu")
        (y,) = session.run(None, {"x": fed, "z": z})
        assert (y.device_name(), y.data_type(), y.tensor_size_in_bytes()) == ("webgpu", "tensor(bfloat16)", 14)
        binding = session.io_binding()
        binding.bind_ortvalue_input("x", y)
        binding.bind_cpu_input("z", z)
        binding.bind_ortvalue_output("y", fed)
        session.run_with_iobinding(binding)
        for value, wanted in ((y, x * z), (fed, x * z * z)):
            assert value.numpy().dtype == BFLOAT
            np.testing.assert_array_equal(value.numpy(), wanted)
        for value in (y, fed):
            value.release()
        assert session.stats()["page"]["devices"]["0"]["tensors"] == 0


@pytest.mark.parametrize("name", MODELS)
def test_on_the_gpu(name, new_session):
    """With no node on the CPU; to the last bit if there is only one rounding."""
    text, feeds, expected, tolerance = MODELS[name]
    model = parse(f"g {text}", opset=22)
    options = settings(entries={"session.disable_cpu_ep_fallback": "1"})
    (found,) = new_session(model, options, providers=["webgpu"]).run(None, feeds)
    wanted = expected(*feeds.values())
    assert (found.dtype, found.shape) == (wanted.dtype, wanted.shape)
    np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=tolerance, atol=0)
