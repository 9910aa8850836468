"""Two operators of one's own in a model: a formula, and WGSL with a shape of its own. Runs in headless Chromium.

    python samples/user_kernel.py [--browser B] [--webgpu software]

docs/user_kernels.md tells more. `py-ort kernel samples/user_kernel.py` runs the kernels again when this file changes.
"""

from __future__ import annotations

import click
import numpy as np
import onnx
from onnx import helper

import py_ort
from py_ort.browser.browser_options import WEBGPU

# Elementwise: Python's syntax, broadcasting, attributes by name.
swoosh = py_ort.UserKernel(
    name="sample::Swoosh",
    expression="x * sigmoid(beta * x)",
    attributes={"beta": 1.0},
    example={"x": (1, 64, 56, 56), "beta": 1.5},
    reference=lambda x, beta: x / (1 + np.exp(-beta * x)),
)

# One thread for each row: the body computes element i of the output, and `shape` says how many there are.
SPREAD = """
var low = load_x(i * u.n);
var high = low;
for (var k = 1u; k < u.n; k++) {
  let value = load_x(i * u.n + k);
  low = min(low, value);
  high = max(high, value);
}
store_y(i, u.scale * (high - low));
"""
spread = py_ort.UserKernel(
    name="sample::Spread",
    body=SPREAD,
    shape="x.shape[:-1]",
    uniforms={"n": "x.shape[-1]"},
    attributes={"scale": 1.0},
    example={"x": (64, 1000)},
    reference=lambda x, scale: scale * (x.max(-1) - x.min(-1)),
)


def model() -> bytes:
    """Return MatMul, Swoosh, Spread; batch and length are open."""
    weights = np.random.default_rng(0).normal(size=(16, 32)).astype(np.float32)
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["a"]),
        helper.make_node("Swoosh", ["a"], ["b"], name="swoosh", domain="sample", beta=1.5),
        helper.make_node("Spread", ["b"], ["y"], name="spread", domain="sample", scale=2.0),
    ]
    graph = helper.make_graph(
        nodes,
        "user_kernel",
        [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, ["batch", "length", 16])],
        [helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, ["batch", "length"])],
        [onnx.numpy_helper.from_array(weights, "w")],
    )
    opsets = [helper.make_opsetid("", 17), helper.make_opsetid("sample", 1)]
    return helper.make_model(graph, opset_imports=opsets, ir_version=8).SerializeToString()


def reference(x: np.ndarray) -> np.ndarray:
    """Compute the same in numpy."""
    a = x @ np.random.default_rng(0).normal(size=(16, 32)).astype(np.float32)
    b = a / (1 + np.exp(-1.5 * a))
    return 2.0 * (b.max(-1) - b.min(-1))


@click.command()
@click.option("--browser", default=None, help="As for py_ort.InferenceSession.")
@click.option("--webgpu", type=click.Choice(WEBGPU), default=None, help="Default: a GPU's, else software.")
def main(browser: str | None, webgpu: str | None) -> None:
    """Run a model with user kernels, and compare with numpy."""
    for kernel in (swoosh, spread):
        py_ort.register_kernel(kernel)
    given = {"browser": browser, "webgpu": webgpu}
    options = py_ort.BrowserOptions(**{key: value for key, value in given.items() if value})  # type: ignore[arg-type]
    with py_ort.InferenceSession(model(), providers=["webgpu"], browser=options) as session:
        print(session.placement())
        rng = np.random.default_rng(1)
        for batch, length in ((2, 5), (3, 7), (3, 7)):
            x = rng.normal(size=(batch, length, 16)).astype(np.float32)
            (y,) = session.run(None, {"x": x})
            error = np.abs(y - reference(x)).max()
            run = session.stats()["last_run"]
            print(f"x {list(x.shape)}: error {error:.1e}, {run['counters']['pipelines']} pipelines compiled")
            assert error < 1e-4


if __name__ == "__main__":
    main()
