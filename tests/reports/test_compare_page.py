"""The page of `py-ort compare --html`: the error of each value, and the graph with the nodes that differ."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import small_models
from hostile_names import HOSTILE
from onnx import TensorProto, helper, numpy_helper
from page_checks import background, fits

from py_ort.testing.compare import compare, difference_map
from py_ort.testing.compare_page import page

X = np.linspace(-2, 2, 32, dtype=np.float32).reshape(4, 8)


class Side:
    """An engine that computes the values of the model below, with an error from one value on."""

    def __init__(self, name: str, wrong: str = "") -> None:
        self.name, self.wrong = name, wrong

    def run(self, model: bytes, folder: Any, names: Any, feeds: Any) -> list[np.ndarray]:
        product = feeds["x"] @ (np.eye(8, dtype=np.float32) * 2)
        if self.wrong == "product":
            product[1, 2] += 1
        positive = np.maximum(product, 0)
        if self.wrong == "positive":
            positive[3, 7] += 0.5
        values = {"product": product, "positive": positive, HOSTILE: positive + 1}
        return [values[name] for name in names]


@pytest.fixture
def model(tmp_path):
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["product"], "the product"),
        helper.make_node("Relu", ["product"], ["positive"], "the relu"),
        helper.make_node("Add", ["positive", "one"], [HOSTILE], HOSTILE),
    ]
    weights = [numpy_helper.from_array(np.eye(8, dtype=np.float32) * 2, "w")]
    weights.append(helper.make_tensor("one", TensorProto.FLOAT, [], [1.0]))
    file = tmp_path / "model.onnx"
    ends = [small_models.floats("x", [4, 8])], [small_models.floats(HOSTILE, [4, 8])]
    file.write_bytes(small_models.model(nodes, *ends, weights))
    return file


def shown(model, open_page, wrong: str, **how: Any) -> Any:
    found = compare(model, {"x": X}, Side("webgpu", wrong), Side("onnxruntime"))
    opened = open_page(page(model, found, "webgpu", "onnxruntime", "chromium"), **how)
    opened.wait_for_function("document.querySelector('canvas').dataset.ready === 'the model'")
    return opened


def test_the_first_that_differs_is_chosen(model, open_page):
    """Its node is open at first, with what differs; the summary behind it has errors and a picture."""
    opened = shown(model, open_page, "positive")
    about = opened.locator("#about")
    assert about.locator("h2").inner_text() == "Relu"
    assert "the first that differs" in about.inner_text() and "1 of 32 elements differ" in about.inner_text()
    opened.keyboard.press("Escape")
    summary = opened.locator("#summary")
    assert "2 of 3 values differ" in summary.inner_text() and "webgpu in chromium" in summary.inner_text()
    points = summary.locator("circle").all()
    assert [point.get_attribute("class") for point in points] == ["agrees", "first", "differs"]
    heights = [float(point.get_attribute("cy")) for point in points]
    assert heights[0] > heights[1] and abs(heights[1] - heights[2]) < 10
    (cell,) = summary.locator(".picture rect").all()
    assert (cell.get_attribute("x"), cell.get_attribute("y")) == ("7", "3")
    points[0].click()
    assert opened.locator("#about h2").inner_text() == "MatMul"


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1280])
def test_light_dark_and_a_phone(model, open_page, width, dark):
    opened = shown(model, open_page, "product", dark=dark, width=width)
    assert fits(opened) and (background(opened) < 200) is dark
    opened.keyboard.press("Escape")
    row = opened.locator("aside tbody tr").first
    why = row.locator("td").last.bounding_box()
    assert why["y"] > row.locator("td").first.bounding_box()["y"]  # below the others, with their width
    assert why["width"] > 0.8 * row.bounding_box()["width"]


def test_what_agrees(model, open_page):
    opened = shown(model, open_page, "")
    assert opened.locator("#about").is_hidden() and "0 of 3 values differ" in opened.locator("#summary").inner_text()
    assert opened.locator("circle.agrees").count() == 3 and opened.locator(".picture").count() == 0


def test_maps_of_differences():
    a = np.zeros((2, 100, 300), np.float32)
    a[1, 99, 299], a[0, 0, 0] = 2, np.nan
    found = difference_map(a, np.zeros_like(a))
    assert len(found) == 32 and {len(row) for row in found} == {64}
    assert found[31][63] == 1 and found[0][0] == 1 and sum(map(sum, found)) == 2
    assert difference_map(np.array(3, np.int64), np.array(1, np.int64)) == [[1.0]]
    assert difference_map(np.zeros(3), np.zeros(4)) == difference_map(["a"], ["b"]) == []
