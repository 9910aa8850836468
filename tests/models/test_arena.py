"""The GPU memory between the nodes of models is close to the most that is needed at one time.

In Node, on a GPU that computes nothing but checks bindings (web/test/fake_gpu): real plans, kernels, recordings.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx
import onnx.backend.test
import pytest
from drawn_networks import drawn
from yolo import yolo

from py_ort.compiler.compile import compile_model
from py_ort.compiler.compile_options import CompileOptions
from py_ort.folders import ASSETS

WEB = Path(__file__).resolve().parents[2] / "web"
LIGHT = Path(onnx.backend.test.__file__).parent / "data/light"
_found = importlib.util.find_spec("rapidocr_onnxruntime")
OCR = Path(_found.origin).parent / "models" if _found and _found.origin else Path("rapidocr_onnxruntime")
IMAGE = (1, 3, 224, 224)
MODELS = {
    "squeezenet": (LIGHT / "light_squeezenet.onnx", IMAGE),
    "resnet50": (LIGHT / "light_resnet50.onnx", IMAGE),
    "densenet121": (LIGHT / "light_densenet121.onnx", IMAGE),
    "inception_v2": (LIGHT / "light_inception_v2.onnx", IMAGE),
    "shufflenet": (LIGHT / "light_shufflenet.onnx", IMAGE),
    "det": (OCR / "ch_PP-OCRv4_det_infer.onnx", (1, 3, 96, 96)),
    "rec": (OCR / "ch_PP-OCRv4_rec_infer.onnx", (1, 3, 48, 320)),
    "cls": (OCR / "ch_ppocr_mobile_v2.0_cls_infer.onnx", (1, 3, 48, 192)),
}
ADAPTERS = {"software": {"software": True}, "hardware": {"software": False, "f16": True}}
pytestmark = pytest.mark.skipif(
    not (WEB / "node_modules").exists(), reason="npm packages are not installed (npm ci in web/)"
)


OPEN = " of any size"  # the plan is for any size; a run still has one
DRAWN = [f"{kind} {seed}" for kind in ("convolutional", "transformer") for seed in range(8)]


class FakeGpu:
    """Plans in Node; each model is compiled once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._jobs: dict[str, dict[str, Any]] = {}
        subprocess.run(["node", "build.mjs", "--node", "fake_gpu", "--out", str(folder)], cwd=WEB, check=True)

    def run(self, names: Sequence[str], adapter: str) -> list[dict[str, Any]]:
        """Load models and run each twice; return the sessions' reports."""
        jobs, answers = self._folder / "jobs.json", self._folder / "answers.json"
        jobs.write_text(json.dumps([{**self._job(name), **ADAPTERS[adapter]} for name in names]))
        command = ["node", str(self._folder / "main.mjs"), str(jobs), str(answers)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, check=False)
        assert done.returncode == 0, done.stderr
        told: list[dict[str, Any]] = json.loads(answers.read_text())
        for name, one in zip(names, told, strict=True):
            assert "error" not in one, f"{name}: {one['error']}"
        return told

    def _job(self, name: str) -> dict[str, Any]:
        if name not in self._jobs:
            model, shapes = self._model(name)
            known = {} if name.endswith(OPEN) else shapes
            compiled = compile_model(model, options=CompileOptions(input_shapes=known))
            plan, weights = self._folder / f"{name}.plan", self._folder / f"{name}.weights"
            plan.write_bytes(compiled.plan)
            weights.write_bytes(compiled.weights.tobytes())
            feeds = {feed: {"dtype": "float32", "dims": shape} for feed, shape in shapes.items()}
            core = str(ASSETS / "core.mjs")
            self._jobs[name] = {"plan": str(plan), "weights": str(weights), "core": core, "feeds": feeds}
        return self._jobs[name]

    @staticmethod
    def _model(name: str) -> tuple[bytes, dict[str, Sequence[int]]]:
        if name.startswith("yolo"):
            height, width = map(int, name.removesuffix(OPEN).split()[1].split("x"))
            return yolo(None).SerializeToString(), {"images": (1, 3, height, width)}
        if name not in MODELS:
            model = drawn(name)
            return model.SerializeToString(), {
                "x": [dim.dim_value for dim in model.graph.input[0].type.tensor_type.shape.dim]
            }
        path, shape = MODELS[name]
        if not path.exists():
            pytest.skip(f"{path.name} is not installed")
        model = onnx.load(path)
        known = {weight.name for weight in model.graph.initializer}
        return model.SerializeToString(), {value.name: shape for value in model.graph.input if value.name not in known}


@pytest.fixture(scope="module")
def fake_gpu(tmp_path_factory: pytest.TempPathFactory) -> FakeGpu:
    return FakeGpu(tmp_path_factory.mktemp("fake_gpu"))


def check(told: dict[str, Any], name: str) -> None:
    memory = told["memory"]["webgpu"]
    # Small buffers are rounded up.
    assert 0 < memory["arena"] <= 1.1 * memory["peak"] + 4096, f"{name}: {memory}"
    first, second = told["runs"]
    # Creation compiles what the run wants, and nothing else.
    assert first["counters"]["pipelines"] == 0, name
    assert len(told["pipelines"]) == told["create"]["counters"]["pipelines"], name
    assert second["replayed"], name


@pytest.mark.parametrize("adapter", ADAPTERS)
@pytest.mark.parametrize("name", MODELS)
def test_the_arena_is_near_the_lower_bound(name: str, adapter: str, fake_gpu: FakeGpu) -> None:
    (told,) = fake_gpu.run([name], adapter)
    check(told, name)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_the_arena_of_networks_drawn_at_random(adapter: str, fake_gpu: FakeGpu) -> None:
    for name, told in zip(DRAWN, fake_gpu.run(DRAWN, adapter), strict=True):
        check(told, name)


@pytest.mark.parametrize("adapter", ADAPTERS)
def test_plans_for_any_size_need_no_more(adapter: str, fake_gpu: FakeGpu) -> None:
    """Ranges joined before sizes are known cost no memory when they come; sizes computed of shapes are right, too."""
    sizes = ["yolo 320x320", "yolo 352x288", "yolo 96x224"]
    plans = fake_gpu.run([name + end for name in sizes for end in ("", OPEN)], adapter)
    for name, known, opened in zip(sizes, plans[::2], plans[1::2], strict=True):
        memory, least = opened["memory"]["webgpu"], known["memory"]["webgpu"]
        assert all(0 < memory[what] <= 1.03 * least[what] for what in ("peak", "arena")), f"{name}: {memory}, {least}"
        assert opened["runs"][1]["replayed"], name
