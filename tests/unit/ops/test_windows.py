"""Sizes of windows: inference, the page and the core have one function each, and all agree with onnxruntime."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import pytest
from native import native_session
from onnx import helper

from py_ort.ir.spatial import conv_transpose_output, explicit_pads, fill_spatial, infer_window

ROOT = Path(__file__).parents[3]
WEB = ROOT / "web"
WINDOW = WEB / "src/contract/window.ts"
sys.path.insert(0, str(ROOT / "wasm_build/test"))

Window = dict[str, Any]
COUNT = 250


def _drawn(draw: random.Random, op: str) -> tuple[list[int], Window]:
    """The sizes of an image, and a window over it that may be larger."""
    kernel = [draw.randint(1, 4), draw.randint(1, 3)]
    window: Window = {
        "kernel_shape": kernel,
        "strides": [draw.randint(1, 4), draw.randint(1, 3)],
        "dilations": [draw.choice((1, 1, 2)), 1],
    }
    auto = draw.choice(("NOTSET", "NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"))
    if auto == "NOTSET":
        window["pads"] = [draw.randint(0, size - 1) for size in (*kernel, *kernel)]
    else:
        window |= {"auto_pad": auto, "dilations": [1, 1]}
    if op == "MaxPool":
        window["ceil_mode"] = draw.randint(0, 1)
    if op == "ConvTranspose":
        window["output_padding"] = [draw.randint(0, stride - 1) for stride in window["strides"]]
        if draw.random() < 0.4:
            window.pop("pads", None)
            window["output_shape"] = [draw.randint(4, 16), draw.randint(4, 16)]
    return [draw.randint(1, 9), draw.randint(1, 9)], window


def _model(op: str, sizes: list[int], window: Window) -> onnx.ModelProto:
    inputs = ["x"] if op == "MaxPool" else ["x", "w"]
    shapes = {"x": [1, 1, *sizes], "w": [1, 1, *window["kernel_shape"]]}
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shapes[name]) for name in inputs]
    output = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node(op, inputs, ["y"], **window)], "window", infos, [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _feeds(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    shapes = {info.name: [d.dim_value for d in info.type.tensor_type.shape.dim] for info in model.graph.input}
    return {name: np.ones(shape, np.float32) for name, shape in shapes.items()}


@cache
def drawn(op: str) -> list[tuple[list[int], Window, list[int]]]:
    """Windows that onnxruntime runs, and the sizes of their results."""
    onnxruntime.set_default_logger_severity(4)
    draw, found = random.Random(7), []
    while len(found) < COUNT:
        sizes, window = _drawn(draw, op)
        model = _model(op, sizes, window)
        try:
            session = native_session(model)
            (y,) = session.run(None, _feeds(model))
        except Exception:  # it refuses windows without a place
            continue
        found.append((sizes, window, list(y.shape[2:])))
    return found


OPERATORS = pytest.mark.parametrize("op", ["Conv", "ConvTranspose", "MaxPool"])


def _inferred(op: str, sizes: list[int], window: Window) -> list[Any]:
    node = ir.from_proto(_model(op, sizes, window)).graph[0]
    fill_spatial(node)
    if op == "ConvTranspose":
        conv_transpose_output(node)
    else:
        explicit_pads(node)
    assert "pads" in node.attributes and "auto_pad" not in node.attributes and "output_shape" not in node.attributes
    infer_window(node, 1, channels_last=False)
    shape = node.outputs[0].shape
    assert shape is not None
    return list(shape)[2:]


@OPERATORS
def test_inference(op: str) -> None:
    """With known sizes the pads are explicit, and the sizes of the result are known."""
    for sizes, window, wanted in drawn(op):
        assert _inferred(op, sizes, window) == wanted, (sizes, window)


@OPERATORS
def test_the_page(op: str, tmp_path: Path) -> None:
    """The page's function, with the original attributes."""
    script = tmp_path / "windows.ts"
    script.write_text(
        f"import {{ slide, slideTransposed }} from {json.dumps(str(WINDOW))};\n"
        f"const cases: any[] = {json.dumps([case[:2] for case in drawn(op)])};\n"
        "const sizes = ([input, a]: any) => {\n"
        "  const window = { kernelShape: a.kernel_shape, strides: a.strides, dilations: a.dilations,\n"
        "    pads: a.pads ?? [], autoPad: a.auto_pad ?? 'NOTSET', ceilMode: a.ceil_mode === 1 };\n"
        "  const more = { outputShape: a.output_shape ?? [], outputPadding: a.output_padding ?? [] };\n"
        f"  return ({json.dumps(op)} === 'ConvTranspose'\n"
        "    ? slideTransposed(window, input, a.kernel_shape, more)\n"
        f"    : slide(window, input, a.kernel_shape, {json.dumps(op == 'MaxPool')})).output;\n"
        "};\n"
        "console.log(JSON.stringify(cases.map(sizes)));\n"
    )
    build = [WEB / "node_modules/.bin/esbuild", script, "--bundle", "--format=esm", "--platform=node"]
    bundle = subprocess.run(build, check=True, capture_output=True, cwd=WEB).stdout
    made = subprocess.run(["node", "--input-type=module"], input=bundle, check=True, capture_output=True).stdout
    for (sizes, window, wanted), found in zip(drawn(op), json.loads(made), strict=True):
        assert found == wanted, (sizes, window)


@OPERATORS
def test_the_core(op: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The results of its kernels, for nodes with original attributes."""
    monkeypatch.setenv("PY_ORT_CORE", str(ROOT / "py_ort/assets/core.mjs"))
    from one_node import run_many  # type: ignore[import-not-found]

    models = [_model(op, sizes, window) for sizes, window, _ in drawn(op)]
    for (sizes, window, wanted), result in zip(
        drawn(op), run_many([(model, _feeds(model)) for model in models]), strict=True
    ):
        assert not isinstance(result, Exception), (sizes, window, result)
        assert list(result.outputs[0].shape[2:]) == wanted, (sizes, window)
