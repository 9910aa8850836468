"""User kernels in the page: results, changing shapes, replay, errors, the loop for authors, the sample."""

import json
import math
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import user_kernel as sample
from shared_browser import BROWSER
from text_form import parse
from waiting import wait_until

from py_ort import UserKernel, register_kernel, unregister_kernel
from py_ort.exceptions import RuntimeException, ShaderError
from py_ort.runtime.jsep import JsepBackend
from py_ort.user_kernels.watch import Report, watch_file

pytestmark = pytest.mark.usefixtures("kernels_as_before")
Function = Callable[[np.ndarray], np.ndarray]
RNG = np.random.default_rng(5)
IMPORTS = '<ir_version: 8, opset_import: ["" : 17, "t" : 1]> '


def floats(*shape: int, dtype: Any = np.float32) -> np.ndarray:
    return RNG.uniform(-2, 2, shape).astype(dtype)


def _gather_add(x: np.ndarray, index: np.ndarray, bias: np.ndarray | None = None) -> np.ndarray:
    return x[index] + (0 if bias is None else bias)


#: Rows by index, plus an optional bias.
GATHER_ADD = UserKernel(
    name="t::GatherAdd",
    inputs=["x", "index", "bias?"],
    types={"index": "int64", "bias": "x"},
    shape="[index.shape[0], x.shape[1]]",
    uniforms={"n": "x.shape[1]"},
    constants={"has_bias": "present(bias)"},
    body="var value = load_x(u32(load_index(i / u.n)) * u.n + i % u.n);\n"
    "if (has_bias) { value += load_bias(i % u.n); }\nstore_y(i, value);",
    reference=_gather_add,
)

TRANSPOSE = """
@compute @workgroup_size(8, 8)
fn main(@builtin(global_invocation_id) id: vec3<u32>) {
  if (id.x >= x_dim(0u) || id.y >= x_dim(1u)) { return; }
  y_put(id.y, id.x, x_at(id.x, id.y));
  total_put(select(0i, 1i, x_at(id.x, id.y) > 0.0), id.x, id.y);
}
fn total_put(value: i32, i: u32, j: u32) { store_positive(positive_index(i, j), value); }
"""
ROLL = """
let at = y_position(i);
let shift = (at[0] + y_dim(0u) - u.by) % y_dim(0u);
store_y(i, x_at(shift, at[1]));
"""


def _case(name: str, *arrays: np.ndarray, given: dict[str, Any] | None = None, **kernel: Any) -> tuple[Any, ...]:
    """A kernel, its inputs, and attributes of the call."""
    return UserKernel(name=f"t::{name}", **kernel), arrays, given or {}


KERNELS = {
    "formula": _case(
        "Formula",
        *(floats(2, 3, 7), floats(3, 1)),
        given={"gain": 3.0},
        inputs=["x", "z"],
        expression="tanh(x) ** 2 + gain * max(x, z) - (1 if x > z else 0)",
        attributes={"gain": 0.5},
        reference=lambda x, z, gain: np.tanh(x) ** 2 + gain * np.maximum(x, z) - (x > z),
    ),
    "formula of halves": _case(
        "Half",
        floats(5, 8, dtype=np.float16),
        expression="x / (1 + abs(x))",
        reference=lambda x: x / (1 + np.abs(x)),
    ),
    "formula of integers": _case(
        "Whole",
        *(np.arange(12, dtype=np.int32), np.full((3, 1), 2, np.int32)),
        inputs=["x", "z"],
        types=["int32"],
        expression="3 * x - z",
        reference=lambda x, z: 3 * x - z,
    ),
    "formula of narrow integers": _case(
        "Wrap",
        np.arange(250, 256, dtype=np.uint8),
        types=["uint8"],
        expression="x * 3",
        reference=lambda x: x * np.uint8(3),
    ),
    "formula that asks": _case(
        "Inside",
        floats(9),
        expression="low <= x < high",
        attributes={"low": -1, "high": 1.0},
        dtypes="bool",
        reference=lambda x, low, high: (low <= x) & (x < high),
    ),
    "formula with a function": _case(
        "Cubic",
        floats(4, 4),
        expression="cubic(x) + cubic(1)",
        functions="fn cubic(x: C) -> C { return x * x * x; }",
        reference=lambda x: x**3 + 1,
    ),
    "body with an optional input": (GATHER_ADD, [floats(5, 3), np.array([4, 0, 0, 2]), floats(3)], {}),
    "body without it": (GATHER_ADD, [floats(5, 3), np.array([4, 0, 0, 2])], {}),
    "body with a host input": _case(
        "Roll",
        *(floats(5, 3), np.array([-2])),
        inputs=["x", "shift"],
        host=["shift"],
        uniforms={"by": "shift.values[0] % x.shape[0]"},
        body=ROLL,
        reference=lambda x, shift: np.roll(x, shift[0], 0),
    ),
    "module with two outputs": _case(
        "Turn",
        floats(9, 20),
        outputs=["y", "positive"],
        dtypes={"positive": "int32"},
        shape={"y": "[x.shape[1], x.shape[0]]", "positive": "x.shape"},
        wgsl=TRANSPOSE,
        workgroups=["ceil_div(x.shape[0], 8)", "ceil_div(x.shape[1], 8)"],
        reference=lambda x: (x.T, (x > 0).astype(np.int32)),
    ),
    "empty": _case("None", floats(0, 3), expression="x + 1", reference=lambda x: x + 1),
}


@pytest.mark.parametrize("case", KERNELS)
def test_kernel(case):
    kernel, arrays, attributes = KERNELS[case]
    limit = 2e-3 if arrays[0].dtype == np.float16 else 1e-5
    assert kernel.check(*arrays, browser=BROWSER, **attributes) <= limit


def _named(*names: str) -> dict[str, Function]:
    return {f"{name}(x)": getattr(np, name) for name in names}


def _composed(outer: Function, inner: Function) -> Function:
    return lambda x: outer(inner(x))


def _of_size(*names: str) -> dict[str, Function]:
    return {f"{name}(abs(x))": _composed(getattr(np, name), np.abs) for name in names}


def _arcs(*names: str) -> dict[str, Function]:
    return {f"a{name}(x / 2)": _composed(getattr(np, f"arc{name}"), lambda x: x / 2) for name in names}


FUNCTIONS: dict[str, Function] = {
    **_named("abs", "ceil", "exp", "exp2", "expm1", "floor", "sign", "trunc", "square"),
    **_named("sin", "cos", "tan", "sinh", "cosh", "tanh"),
    **_of_size("sqrt", "log", "log2", "log1p"),
    **_arcs("sin", "cos", "tan", "sinh", "tanh"),
    "acosh(1 + abs(x))": lambda x: np.arccosh(1 + np.abs(x)),
    "round(3 * x)": lambda x: np.round(3 * x),
    "fract(x)": lambda x: x - np.floor(x),
    "rsqrt(1 + x ** 2)": lambda x: 1 / np.sqrt(1 + x * x),
    "erf(x)": np.vectorize(math.erf),
    "sigmoid(x)": lambda x: 1 / (1 + np.exp(-x)),
    "softplus(x)": lambda x: np.log1p(np.exp(x)),
    "relu(x)": lambda x: np.maximum(x, 0),
    "min(x, 1, -x)": lambda x: np.minimum(np.minimum(x, 1), -x),
    "clip(x, -0.5, 0.25)": lambda x: np.clip(x, -0.5, 0.25),
    "pow(abs(x), 1.7)": lambda x: np.abs(x) ** 1.7,
    "x ** 3": lambda x: x**3,
    "x // 0.3": lambda x: x // 0.3,
    "x % 0.3": lambda x: x % 0.3,
    "where(isnan(x) or isinf(x), 1, -x)": np.negative,
    "x if not x < 0 else +2 * x": lambda x: np.where(x < 0, 2 * x, x),
}


def test_every_function_of_formulas():
    """In one shader: row i of the output is function i."""
    text = "0"
    for i, name in enumerate(FUNCTIONS):
        text = f"(({name}) if row == {i} else {text})"
    kernel = UserKernel(name="t::All", inputs=["x", "row"], types={"row": "int32"}, expression=text)
    x = np.linspace(-1.93, 1.91, 64, dtype=np.float32)
    found = kernel(x, np.arange(len(FUNCTIONS), dtype=np.int32)[:, None], browser=BROWSER)
    for row, (name, function) in zip(found, FUNCTIONS.items(), strict=True):
        np.testing.assert_allclose(row, function(x.astype(np.float64)), rtol=2e-5, atol=2e-6, err_msg=name)


def test_shapes_that_change_make_no_new_pipelines(new_session):
    for kernel in (sample.swoosh, sample.spread):
        register_kernel(kernel)
    session = new_session(sample.model(), providers=["webgpu"])
    assert session.placement().counts() == {"webgpu": 3, "wasm": 0}
    made = []
    for batch, length in ((2, 5), (3, 7), (3, 7)):
        x = floats(batch, length, 16)
        (y,) = session.run(None, {"x": x})
        np.testing.assert_allclose(y, sample.reference(x), rtol=1e-4, atol=1e-5)
        run = session.stats()["last_run"]
        made.append((run["counters"]["pipelines"] > 0, run["replayed"]))
    assert made[0] == (True, False)
    assert made[2] == (False, True)
    # The user's kernels read sizes as uniforms: other shapes only need new variants of the product.
    second = session.stats()
    assert second["session"]["recordings"] == 2


def test_error_of_the_compiler(page_errors):
    kernel = UserKernel(name="t::Broken", body="let a = load_x(i);\nstore_y(i, a + b);")
    with pytest.raises(ShaderError, match="broken_user__body") as caught:
        kernel(floats(4), browser=BROWSER)
    ((line, column, text),) = caught.value.places
    assert (line, column) == (2, 16) and "'b'" in text
    page_errors.clear()


def test_error_of_a_size_at_run_time(new_session):
    register_kernel("t::Third", body="y[i] = x[i];", shape="[x.shape[2]]")
    # Python does not know the rank; the page finds it.
    text = "g (float[n] x, int64[rank] to) => (float[k] y) { a = Reshape(x, to)  y = t.Third(a) }"
    model = parse(IMPORTS + text)
    model.graph.node[1].name = "third"
    session = new_session(model, providers=["webgpu"])
    with pytest.raises(RuntimeException, match="index 2 is outside") as caught:
        session.run(None, {"x": floats(6), "to": np.array([2, 3])})
    assert caught.value.node == "third"
    (y,) = session.run(None, {"x": floats(6), "to": np.array([2, 1, 3])})
    assert y.shape == (3,)


def test_a_formula_between_convolutions_stays_in_their_layout(new_session):
    register_kernel("t::Scale", inputs=["x", "by"], expression="by * x / (1 + abs(x))")
    w, v, by = floats(6, 3, 3, 3), floats(4, 6, 1, 1), floats(6, 1, 1)
    text = """g (float[1,3,9,7] x) => (float[1,4,9,7] y) {
        a = Conv<pads=[1,1,1,1]>(x, w)  b = t.Scale(a, by)  y = Conv(b, v) }"""
    session = new_session(parse(IMPORTS + text, {"w": w, "v": v, "by": by}), providers=["webgpu"])
    moves = [node for node in session.placement().nodes if node.op_type == "Transpose"]
    assert len(moves) <= 2  # input and output
    x = floats(1, 3, 9, 7)
    padded = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), (2, 3))
    a = np.einsum("nchwij,mcij->nmhw", windows, w)
    expected = np.einsum("nchw,mc->nmhw", by * a / (1 + np.abs(a)), v[:, :, 0, 0])
    np.testing.assert_allclose(session.run(None, {"x": x})[0], expected, rtol=1e-4, atol=1e-4)


def test_a_plan_carries_them(plain_page):
    """In a page without Python the kernels are in the plan."""
    for kernel in (sample.swoosh, sample.spread):
        register_kernel(kernel)
    session = plain_page.load(onnx.load_from_string(sample.model()))
    for kernel in (sample.swoosh, sample.spread):
        unregister_kernel(kernel.name)
    x = floats(2, 5, 16)
    np.testing.assert_allclose(session.run({"x": x}).outputs["y"], sample.reference(x), rtol=1e-4, atol=1e-5)
    session.release()


def test_one_call_of_the_contract():
    register_kernel(sample.spread)
    x = floats(4, 9)
    with JsepBackend(browser=BROWSER) as backend:
        kernel = backend.create_kernel("Spread", {"scale": 3.0}, "sample")
        (y,) = backend.run(kernel, [x])
        np.testing.assert_allclose(y.numpy(), sample.spread.reference(x, 3.0), rtol=1e-5)  # type: ignore[misc]


FILE = """// kernel: t::Scaled
// attribute by: 2.0
// example x: 3, 5
store_y(i, u.by * load_x(i));
"""


def test_the_writers_loop(tmp_path, page_errors):
    file, done = tmp_path / "scaled.wgsl", False
    file.write_text(FILE)
    reports: list[Report] = []

    def watch() -> None:
        for report in watch_file(file, BROWSER, runs=1, interval=0.02, stop=lambda: done):
            reports.append(report)

    def wait_for(count: int) -> Report:
        wait_until(lambda: len(reports) >= count)
        assert len(reports) == count
        return reports[-1]

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        (first,) = wait_for(1).trials
        np.testing.assert_allclose(first.outputs["y"], 2 * first.feeds["x"], rtol=1e-6)
        file.write_text(FILE.replace("u.by *", "u.bye *"))
        assert "neither of its uniforms" in str(wait_for(2).errors[""])
        file.write_text(FILE.replace("load_x(i)", "load_x(j)"))
        error = wait_for(3).errors["t::Scaled"]
        assert isinstance(error, ShaderError) and error.places[0][0] == 4
        file.write_text(FILE.replace("2.0", "-1.5"))
        (last,) = wait_for(4).trials
        np.testing.assert_allclose(last.outputs["y"], -1.5 * last.feeds["x"], rtol=1e-6)
    finally:
        done = True
        thread.join()
    page_errors.clear()


def test_kernels_for_other_commands(tmp_path, py_ort_command):
    file = tmp_path / "model.onnx"
    file.write_bytes(sample.model())
    common = (file, "--kernels", sample.__file__, "--webgpu", "software")
    status, out, err = py_ort_command("placement", *common, "--nodes")
    assert status == 0, err
    assert ["swoosh", "sample::Swoosh", "(user", "kernel)", "webgpu"] in [line.split() for line in out.splitlines()]
    status, out, err = py_ort_command("profile", *common, "--runs", 1, "--shape", "x=2x3x16", "--json", "-")
    assert status == 0, err
    found = {(row["kernel"], *row["nodes"]) for row in json.loads(out)["kernels"]}
    assert ("swoosh_user__elementwise", "swoosh") in found and ("spread_user__body", "spread") in found


def test_command(tmp_path, py_ort_command):
    file, text = tmp_path / "kernels.py", Path(sample.__file__).read_text()
    command = ("kernel", file, "--once", "--runs", 1, "--webgpu", "software")
    file.write_text(text)
    status, out, err = py_ort_command(*command)
    assert status == 0 and "sample::Swoosh" in out and "sample::Spread" in out, err
    file.write_text(text.replace("scale * (x.max", "1 + scale * (x.max"))
    assert py_ort_command(*command)[0] == 1
