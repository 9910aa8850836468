"""transformers.js 4 from npm, on py_ort: an import map instead of onnxruntime-web, and no Python in the run."""

import shutil
from contextlib import closing
from pathlib import Path

import hub_models
import numpy as np
import onnx
import pytest
from native import native_session
from npm_packages import npm_package, peer_dist
from static_site import StaticSite, browsing

from py_ort.exporting.embedded import export_embedded
from py_ort.exporting.runtime_files import copy_runtime

VERSION = "4.3.1"
NEW_WORDS = 12
MODELS = ("features", "classes", "words")
#: Folders of models, with those that are not exported. In the last one the library's own are raw, too.
RAW = {"half": ["classes", "words"], "raw": list(MODELS)}


@pytest.fixture(scope="module")
def models():
    return {}


@pytest.fixture(scope="module")
def site(tmp_path_factory, models):
    folder: Path = tmp_path_factory.mktemp("site")
    library = npm_package("@huggingface/transformers", VERSION) / "dist/transformers.web.js"
    copy_runtime(folder / "runtime")
    (folder / "transformers").mkdir()
    shutil.copy(library, folder / "transformers")
    shutil.copy(Path(__file__).parent / "transformers_js.html", folder / "index.html")
    export_embedded(library, folder / "exports")
    models.update(hub_models.write_all(folder / "models"))
    (folder / "peer").symlink_to(peer_dist())
    for name, raw in RAW.items():
        shutil.copytree(folder / "models", folder / name)
        for model in raw:
            (folder / name / model / "onnx/model.onnx").write_bytes(models[model].SerializeToString())
    with closing(StaticSite(folder)) as site:
        yield site


@pytest.fixture(scope="module", params=["wasm", "webgpu", "wasm&files", *(f"wasm&models={name}" for name in RAW)])
def told(site, request):
    """Return the page's report of a run on one device."""
    with browsing("chromium", f"{site.origin}/index.html?device={request.param}"):
        told = site.told(240)
    assert "error" not in told, told
    device, _, more = request.param.partition("&")
    raw = RAW.get(more.removeprefix("models="), [])
    assert told["engines"] == ["fallback" if name in raw else "py_ort" for name in MODELS]
    assert not [line for line in told["said"] if "without effect" not in line], told["said"]
    assert device in told["providers"]
    return {**told, "device": device}


def native(model: onnx.ModelProto, ids: list[int]) -> dict[str, np.ndarray]:
    """The outputs for one text without a cache, by name."""
    session = native_session(model)
    feeds: dict[str, np.ndarray] = {}
    for value in session.get_inputs():
        match value.name:
            case "input_ids":
                feeds[value.name] = np.array([ids])
            case "attention_mask":
                feeds[value.name] = np.ones((1, len(ids)), np.int64)
            case "position_ids":
                feeds[value.name] = np.arange(len(ids))[None]
            case _:
                each = hub_models.WIDTH // hub_models.HEADS
                feeds[value.name] = np.zeros((1, hub_models.HEADS, 0, each), np.float32)
    names = [value.name for value in session.get_outputs()]
    return dict(zip(names, session.run(None, feeds), strict=True))


def test_feature_extraction(told, models):
    for ids, found in zip(told["ids"], told["features"], strict=True):
        pooled = native(models["features"], ids)["last_hidden_state"][0].mean(0)
        np.testing.assert_allclose(found, pooled / np.linalg.norm(pooled), rtol=1e-3, atol=1e-4)


def test_text_classification(told, models):
    for ids, found in zip(told["ids"], told["classes"], strict=True):
        logits = native(models["classes"], ids)["logits"][0]
        shares = np.exp(logits) / np.exp(logits).sum()
        order = np.argsort(-shares)
        assert [each["label"] for each in found] == [hub_models.LABELS[i] for i in order]
        np.testing.assert_allclose([each["score"] for each in found], shares[order], rtol=1e-3)


def test_text_generation(told, models):
    """The same tokens with a growing cache as native onnxruntime finds without one."""
    ids = list(told["prompt"])
    end = hub_models.VOCABULARY.index("[SEP]")
    for _ in range(NEW_WORDS):
        ids.append(int(native(models["words"], ids)["logits"][0, -1].argmax()))
        if ids[-1] == end:
            break
    assert told["sequence"] == ids
    assert len(ids) > len(told["prompt"]) + 3
    (generated,) = told["generated"]
    words = [hub_models.VOCABULARY[i] for i in ids]
    assert generated["generated_text"].startswith(" ".join(words[: len(told["prompt"])]))


def test_sampling_takes_what_the_library_computes_by_models_of_its_own(told):
    assert len(told["sampled"]) == len(told["prompt"]) + 4


def test_caches_stay_on_the_gpu(told):
    wanted = "gpu-buffer" if told["device"] == "webgpu" else "cpu"
    assert set(told["caches"]) == {wanted}
