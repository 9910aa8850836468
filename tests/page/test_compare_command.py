"""`py-ort compare`: every value, the first difference, and the largest errors."""

from __future__ import annotations

import sys

import numpy as np
import onnx
import pytest
from npm_packages import peer_dist
from onnx import TensorProto, helper, numpy_helper
from shared_browser import BROWSER

from py_ort.exceptions import Fail, NotImplemented
from py_ort.testing.compare import InBrowser, Native, compare

X = np.linspace(-2, 2, 64, dtype=np.float32).reshape(8, 8)
WEBGPU = ("--provider", "webgpu", "--webgpu", "software")


@pytest.fixture
def model(tmp_path):
    """Two branches of a product, with a fusion in one, integers, and more values than are fetched at a time; its
    weights are external."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"], "the_product"),
        helper.make_node("Relu", ["product"], ["positive"], "the_relu"),
        helper.make_node("Shape", ["positive"], ["size"], "the_size"),
        helper.make_node("Softmax", ["product"], ["shares"], "the_shares"),
        *(helper.make_node("Sin", [f"s{i - 1}" if i else "shares"], [f"s{i}"], f"sine_{i}") for i in range(20)),
        helper.make_node("Add", ["positive", "s19"], ["y"], "the_sum"),
    ]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    w = numpy_helper.from_array(np.cos(X) / 4, "w")
    graph = helper.make_graph(nodes, "network", [x], [y], [w])
    network = helper.make_model(graph, ir_version=8, opset_imports=[helper.make_opsetid("", 17)])
    file = tmp_path / "network.onnx"
    onnx.save(network, file, save_as_external_data=True, location="w.bin", size_threshold=0)
    return file


def test_the_same_everywhere(model, py_ort_command, py_ort_json):
    for providers, reference in ((WEBGPU, "onnxruntime"), ((*WEBGPU, "--provider", "wasm"), "wasm")):
        status, found, said = py_ort_json("compare", model, *providers, "--dim", "rows=4")
        assert status == 0, said
        assert found["ok"] and found["first"] is None and not found["outputs"]
        assert (found["tested"], found["reference"]) == ("webgpu", reference)
        values = {value["name"]: value for value in found["values"]}
        assert list(values) == ["product", "positive", "size", "shares", *(f"s{i}" for i in range(20)), "y"]
        assert values["product"]["shape"] == [4, 8] and values["size"]["dtype"] == "int64"
        assert all(value["part"] < 1e-5 and not value["error"] for value in values.values())
    status, out, _ = py_ort_command("compare", model, *WEBGPU)
    assert status == 0 and "25 values on webgpu against onnxruntime: 0 differ" in out and "largest error" in out


class Wrong(InBrowser):
    """An engine with a fault in some values, if these are looked at or not: all computed from them differs, too."""

    def __init__(self, change=lambda proto: None, fails: str = "") -> None:
        super().__init__("wasm", options={"browser": BROWSER})
        object.__setattr__(self, "change", change)
        object.__setattr__(self, "fails", fails)

    def run(self, model, folder, names, feeds):
        proto = onnx.ModelProto.FromString(model)
        self.change(proto)
        needed, wanted = set(names), self.fails
        for node in reversed(proto.graph.node):
            if needed.intersection(node.output):
                needed.update(node.input)
        if wanted and wanted in needed:
            raise Fail(f"{wanted} cannot be")
        return super().run(proto.SerializeToString(), folder, names, feeds)


def node(proto: onnx.ModelProto, name: str) -> onnx.NodeProto:
    return next(node for node in proto.graph.node if node.name == name)


def test_the_first_that_differs_and_what_else_does_by_itself(model):
    def change(proto):
        node(proto, "sine_9").op_type = "Cos"
        node(proto, "the_relu").op_type = "Abs"

    found = compare(model, {"x": X}, Wrong(change), Native())
    assert found.first.name == "positive" and found.first.op_type == "Relu" and found.first.origin
    assert [value.name for value in found.values if value.origin] == ["positive", "s9"]
    assert [value.name for value in found.values if value.wrong] == ["positive", *(f"s{i}" for i in range(9, 20)), "y"]
    assert "elements differ" in found.outputs["y"] and not found.ok


def test_what_fails_and_what_is_behind_it(model):
    found = compare(model, {"x": X}, Wrong(fails="s3"), Native())
    assert found.first.name == "s3" and "s3 cannot be" in found.first.error and found.first.origin
    told = {value.name: value.error for value in found.values}
    assert "computed from what fails" in told["s4"] and "computed from what fails" in told["y"]
    assert not any(told[name] for name in ("product", "positive", "size", "shares", "s2"))
    assert "s3 cannot be" in found.outputs["y"]


def test_an_engine_that_runs_nothing(model, py_ort_command, monkeypatch):
    """The refusal is one error, and no value is said to differ."""
    found = compare(model, {"x": X}, Wrong(fails="product"), Native())
    assert not found.ok and found.first is None and not found.values
    assert isinstance(found.refusal, Fail) and "wasm ran no node of the model: product cannot be" in str(found.refusal)

    def refuse(*args):
        raise NotImplemented("no operator MatMul")

    monkeypatch.setattr(InBrowser, "run", refuse)
    status, out, said = py_ort_command("compare", model, *WEBGPU)
    assert status == 1 and not out and "differ" not in said
    assert said.endswith("py-ort: NotImplemented: webgpu ran no node of the model: no operator MatMul\n")


def test_what_differs_only_where_it_is_fused(model):
    """A value that is an output prevents fusing its node with the next one."""

    def change(proto):
        shown = {output.name for output in proto.graph.output}
        if len(shown) == 1 and (shown == {"y"} or shown < {f"s{i}" for i in range(5, 20)}):
            node(proto, "sine_5").op_type = "Cos"

    found = compare(model, {"x": X}, Wrong(change), Native())
    assert not any(value.wrong for value in found.values if value.name != "y")
    assert found.fused is found.first and found.fused.name == "s5" and "y" in found.outputs


def test_tolerance_and_integers(model):
    """Equal values have the smallest difference."""
    x = {"x": X}
    exact = compare(model, x, InBrowser("wasm", options={"browser": BROWSER}), Native(), tolerance=0)
    assert exact.first.op_type in ("MatMul", "Softmax", "Sin")

    def change(proto):
        node(proto, "the_size").attribute.append(helper.make_attribute("end", 1))

    found = compare(model, x, Wrong(change), Native(), tolerance=10.0)
    assert found.first.name == "size" and "shape" in found.first.difference


def test_the_runtime_that_others_ship(model, py_ort_json):
    """Its own values, with weights in another file, compared with native onnxruntime and with py_ort."""
    peer_dist()
    peer = ("--engine", "onnxruntime-web", "--provider", "wasm", "--dim", "rows=4")
    for more, reference in (((), "onnxruntime"), (("--engine", "py_ort"), "wasm")):
        status, found, said = py_ort_json("compare", model, *peer, *more)
        assert status == 0, said
        assert (found["tested"], found["reference"]) == ("onnxruntime-web wasm", reference)
        assert len(found["values"]) == 25 and all(value["part"] is not None for value in found["values"])


def test_without_native_onnxruntime_two_providers_are_compared(model, py_ort_command, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    status, _, said = py_ort_command("compare", model, "--provider", "wasm")
    assert status == 1 and "pip install onnxruntime" in said and "two --provider or two --engine" in said
    status, out, _ = py_ort_command("compare", model, *WEBGPU, "--provider", "wasm")
    assert status == 0 and "25 values on webgpu against wasm: 0 differ" in out


def test_wrong_command_lines(model, py_ort_command):
    two = (*WEBGPU, "--provider", "wasm", "--engine", "onnxruntime-web", "--engine", "py_ort")
    for options, wanted, words in (
        (("--input", "z=z.npy"), 2, ""),
        (("--shape", "z=1"), 2, "no input 'z'"),
        (two, 2, "one --engine or two"),
        (("--webgpu", "off"), 1, "NoAdapter"),
    ):
        status, _, said = py_ort_command("compare", model, *options)
        assert status == wanted and words in said, options
