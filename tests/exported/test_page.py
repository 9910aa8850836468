"""`py-ort export --page`: from any file server, without Python in the run."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import small_models
from click.testing import CliRunner
from onnx import TensorProto, helper, numpy_helper
from page_checks import background, fits

import py_ort
from py_ort.cli.export import export

pytestmark = pytest.mark.browser


def state(page: Any, wanted: str) -> None:
    states = ", ".join(f"body[data-state={each}]" for each in ("failed", wanted))
    page.locator(states).wait_for(timeout=60_000)
    assert page.locator("body").get_attribute("data-state") == wanted, page.locator("#status").inner_text()


def run(page: Any) -> list[list[str]]:
    """Press the button; return the table of outputs."""
    state(page, "ready")
    page.get_by_role("button", name="Run").click()
    state(page, "done")
    return [row.locator("td").all_inner_texts() for row in page.locator("#outputs tr").all()]


def image_model() -> bytes:
    """y = the mean of an image's planes; n is the number of each."""
    return small_models.model(
        [helper.make_node("GlobalAveragePool", ["image"], ["y"])],
        [helper.make_tensor_value_info("image", TensorProto.FLOAT, ["N", 3, "H", "W"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 3, 1, 1])],
    )


@pytest.mark.parametrize("part_size", [None, 4096], ids=["one file", "parts"])
@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_runs_and_says_how(
    tmp_path: Path, plainly_served: Any, open_url: Any, provider: str, part_size: int | None
) -> None:
    py_ort.export(small_models.two_products(), tmp_path / "net.pyort", page=True, part_size=part_size)
    assert (tmp_path / "net.pyort.1").exists() == (part_size is not None)
    page = open_url(f"{plainly_served(tmp_path)}?provider={provider}")
    state(page, "ready")
    page.locator("#inputs label", has_text="N").locator("input").fill("3")
    ((name, kind, shape, *numbers, first),) = run(page)
    assert (name, kind, shape) == ("y", "float32", "[3, 7]")
    least, mean, most = map(float, numbers)
    assert least <= mean <= most and len(first.split(", ")) == 9
    times = [float(page.locator("#times").get_attribute(f"data-{name}")) for name in ("load", "first", "steady")]
    assert all(ms > 0 for ms in times)
    assert page.locator("#facts").get_attribute("data-provider") == provider
    assert "no COOP and COEP headers" in page.locator("#facts").inner_text()
    nodes = py_ort.InferenceSession(tmp_path / "net.pyort", providers=[provider]).placement().nodes
    page.locator("summary").click()
    assert page.locator("#nodes tr").count() == len(nodes)
    assert page.locator("#placed").inner_text().startswith(f"{len(nodes)} nodes: ")
    assert set(page.locator("#nodes td:nth-child(3)").all_inner_texts()) == {node.provider for node in nodes}


def test_modules_do_not_wait_for_who_imports_them(tmp_path: Path, plainly_served: Any, chromium: Any) -> None:
    """The page names them, and its script finds them there."""
    py_ort.export(small_models.add(), tmp_path / "add.pyort", providers=["wasm"], page=True)
    page, asked, held = chromium.new_page(), [], []
    page.on("request", lambda request: asked.append(request.url.rpartition("/")[2]))
    page.route("**/model_page.js", lambda route: held.append(route))
    page.goto(plainly_served(tmp_path), wait_until="commit")

    def modules() -> list[str]:
        return sorted(name for name in asked if re.fullmatch(r"py_ort(-\w+)?\.mjs", name))

    for _ in range(200):
        if held and len(modules()) == 2:
            break
        page.wait_for_timeout(50)
    assert held and len(modules()) == 2 and modules()[1] == "py_ort.mjs"
    for route in held:
        route.continue_()
    state(page, "ready")
    assert len(modules()) == len(set(modules())) == 2
    page.close()


def test_numbers_are_those_of_the_model(tmp_path: Path, plainly_served: Any, open_url: Any) -> None:
    py_ort.export(small_models.add(), tmp_path / "add.pyort", page=True)
    page = open_url(plainly_served(tmp_path))
    state(page, "ready")
    for select in page.locator("#inputs select").all():
        select.select_option("ones")
    ((*_, least, mean, most, first),) = run(page)
    assert (least, mean, most, first) == ("2", "2", "2", "2, 2, 2")


def test_an_image_is_scaled_and_normalized(tmp_path: Path, plainly_served: Any, open_url: Any) -> None:
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.full((20, 30, 3), (255, 51, 0), np.uint8)).save(tmp_path / "red.png")
    (tmp_path / "web").mkdir()
    py_ort.export(image_model(), tmp_path / "web/image.pyort", page=True)
    page = open_url(plainly_served(tmp_path / "web"))
    state(page, "ready")
    page.locator("#inputs select").select_option("image, 0 to 1")
    page.locator("#inputs input[type=file]").set_input_files(tmp_path / "red.png")
    ((*_, first),) = run(page)
    np.testing.assert_allclose([float(text) for text in first.split(", ")], [1, 0.2, 0], atol=0.01)


def test_says_why_a_provider_does_not_run(tmp_path: Path, plainly_served: Any, open_url: Any) -> None:
    py_ort.export(small_models.add(), tmp_path / "add.pyort", page=True)
    page = open_url("about:blank")
    page.add_init_script("delete Navigator.prototype.gpu")
    # A worker has its own navigator: without workers, the session is in the page.
    page.add_init_script("delete globalThis.Worker")
    page.goto(plainly_served(tmp_path))
    run(page)
    assert page.locator("#facts").get_attribute("data-provider") == "wasm"
    assert re.search("does not run on\\s+webgpu: .*WebGPU", page.locator("#facts").inner_text())


def test_models_of_the_folder_share_the_page_and_the_runtime(
    tmp_path: Path, plainly_served: Any, open_url: Any
) -> None:
    (tmp_path / "add.onnx").write_bytes(small_models.add())
    (tmp_path / "net.onnx").write_bytes(small_models.two_products())
    folder = tmp_path / "site"
    for name in ("net", "add"):
        done = CliRunner().invoke(export, [str(tmp_path / f"{name}.onnx"), "-o", str(folder), "--page"])
        assert done.exit_code == 0 and str(folder / "index.html") in done.output.replace("\n", "")
    stamps = {file: file.stat().st_mtime_ns for file in (folder / "py_ort").iterdir()}
    py_ort.export(small_models.add(), folder / "add.pyort", page=True)
    assert {file: file.stat().st_mtime_ns for file in (folder / "py_ort").iterdir()} == stamps
    page = open_url(f"{plainly_served(folder)}?model=net.pyort&run")
    state(page, "done")
    assert page.locator("#outputs td").first.inner_text() == "y"
    assert page.locator("#model option").all_inner_texts() == ["add.pyort", "net.pyort"]
    page.locator("#model").select_option("add.pyort")
    state(page, "ready")
    assert page.locator("#inputs legend").all_inner_texts() == ["x", "scale"]
    assert page.title() == "add" and page.locator("h1").inner_text() == "add"


def test_sizes_without_a_name_are_each_their_own(tmp_path: Path, plainly_served: Any, open_url: Any) -> None:
    shape = ["?", "?", "M", "M"]
    model = small_models.model(
        [helper.make_node("Relu", ["x"], ["y"])], [small_models.floats("x", shape)], [small_models.floats("y", shape)]
    )
    py_ort.export(model, tmp_path / "net.pyort", providers=["wasm"], page=True)
    page = open_url(plainly_served(tmp_path))
    state(page, "ready")
    for number, size in enumerate((2, 3, 5)):
        page.locator("#inputs input[type=number]").nth(number).fill(str(size))
    ((_, _, sizes, *_),) = run(page)
    assert sizes == "[2, 3, 5, 5]"


def test_a_large_file_is_read_again_only_for_who_asks(tmp_path: Path, plainly_served: Any, open_url: Any) -> None:
    """Its placement follows the weights, and this server has no ranges."""
    weight = numpy_helper.from_array(np.ones((4200, 4200), np.float32), "w")
    model = small_models.model(
        [helper.make_node("MatMul", ["x", "w"], ["y"], name="product")],
        [small_models.floats("x", [1, 4200])],
        [small_models.floats("y", [1, 4200])],
        [weight],
    )
    py_ort.export(model, tmp_path / "large.pyort", providers=["wasm"], page=True, part_size=40 << 20)
    page = open_url(plainly_served(tmp_path))
    page.locator("#inputs select").select_option("ones")
    ((*_, first),) = run(page)
    assert first.startswith("4200, 4200") and page.locator("#nodes tr").count() == 0
    page.locator("summary").click()
    page.locator("#nodes td", has_text="product").wait_for(timeout=60_000)
    assert page.locator("#placed").inner_text() == "1 nodes: 1 on wasm"


def test_what_is_wrong_is_told(tmp_path: Path, plainly_served: Any, open_url: Any) -> None:
    py_ort.export(small_models.add(), tmp_path / "add.pyort", page=True)
    (tmp_path / "add.pyort").write_bytes(small_models.add())
    page = open_url(plainly_served(tmp_path))
    state(page, "failed")
    assert "is an ONNX file" in page.locator("#status").inner_text()


def test_dark_and_narrow_and_hostile(tmp_path: Path, plainly_served: Any, open_url: Any) -> None:
    """A name in a model is text, however it looks, and nothing extends beyond the edge."""
    name = "<img src=x onerror=\"document.title='taken'\">" + "long" * 60
    model = small_models.model(
        [helper.make_node("Relu", [name], ["y"], name=name)],
        [small_models.floats(name, ["N", "</script>"])],
        [small_models.floats("y", ["N", "</script>"])],
    )
    py_ort.export(model, tmp_path / "odd # name.pyort", page=True)
    url = plainly_served(tmp_path)
    light, dark = open_url(url), open_url(url, dark=True, width=380)
    for page in (light, dark):
        run(page)
        page.locator("summary").click()
        assert fits(page) and page.title() == "odd # name"
    assert background(light) > 600 > 200 > background(dark)
    assert dark.locator("#inputs legend").inner_text() == name
