"""3x3 convolutions on a software adapter: those that use Winograd's algorithm, and equal results."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native import native_session

NHWC = "com.ms.internal.nhwc"
#: images, height, width, channels, outputs; other attributes; true if Winograd's algorithm is expected
CASES: dict[str, tuple[tuple[int, int, int, int, int], dict[str, Any], bool]] = {
    "many tiles": ((1, 56, 56, 64, 64), {}, True),
    "few tiles, shared out by output channels": ((1, 14, 14, 128, 128), {}, True),
    "tiles that end beyond the image": ((2, 27, 29, 32, 36), {"pads": [0, 1, 2, 1]}, True),
    "blocks of tiles one after the other": ((1, 122, 121, 12, 24), {}, True),
    "fewer channels than transforms are worth": ((1, 60, 60, 4, 8), {}, False),
    "too little to gain": ((1, 12, 12, 16, 16), {}, False),
    "more weights than work": ((1, 7, 7, 256, 256), {}, False),
    "strides": ((1, 56, 56, 32, 32), {"strides": [2, 2]}, False),
    "channels that are no fours": ((1, 40, 40, 31, 32), {}, False),
}
TRAITS: dict[str, dict[str, Any]] = {
    "": {},
    "slow compiler": {"slowCompiler": True},
    "no subgroups": {"subgroups": False},
}
RUNS = [(name, "") for name in CASES] + [("tiles that end beyond the image", traits) for traits in TRAITS if traits]


@pytest.mark.browser
@pytest.mark.parametrize(("name", "traits"), RUNS, ids=["-".join(filter(None, run)) for run in RUNS])
def test_way_and_result(kernel_page: Any, name: str, traits: str) -> None:
    from onnx import helper

    (images, height, width, channels, outputs), given, expected = CASES[name]
    attributes = {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "strides": [1, 1], **given}
    rng = np.random.default_rng(0)
    x, w, b = (
        rng.standard_normal(shape).astype(np.float32)
        for shape in ((images, channels, height, width), (outputs, channels, 3, 3), (outputs,))
    )
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"], **attributes)
    infos = [helper.make_tensor_value_info(name, 1, value.shape) for name, value in (("x", x), ("w", w), ("b", b))]
    graph = helper.make_graph([node], "conv", infos, [helper.make_tensor_value_info("y", 1, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    native = native_session(model)
    (wanted,) = native.run(None, {"x": x, "w": w, "b": b})

    last, hwio = np.ascontiguousarray(x.transpose(0, 2, 3, 1)), np.ascontiguousarray(w.transpose(2, 3, 1, 0))
    result = kernel_page.run(
        "Conv", [last, hwio, b], {**attributes, "weight_layout": "HWIO"}, domain=NHWC, traits=TRAITS[traits] or None
    )
    ways = {label.split("__")[0] for label in result.shaders}
    assert ways == ({"conv_winograd_weights", "conv_winograd"} if expected and traits != "slow compiler" else {"conv"})
    found = result.outputs[0].transpose(0, 3, 1, 2)
    np.testing.assert_allclose(found, wanted, atol=2e-5 * float(np.abs(wanted).max()), rtol=0)
