"""PP-OCRv4's three models, in several shapes, on both providers, compared with native onnxruntime."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import make_sample
import numpy as np
import pytest
from native import native_session
from shared_browser import BROWSER

from py_ort import InferenceSession

SPEC = importlib.util.find_spec("rapidocr_onnxruntime")
FOLDER = Path(next(iter(SPEC.submodule_search_locations or ["."])) if SPEC else ".") / "models"
FILES = {
    "det": "ch_PP-OCRv4_det_infer.onnx",
    "rec": "ch_PP-OCRv4_rec_infer.onnx",
    "cls": "ch_ppocr_mobile_v2.0_cls_infer.onnx",
}
SHAPES = {
    "det": [(1, 3, 320, 320), (1, 3, 192, 256)],
    "rec": [(1, 3, 48, 320), (3, 3, 48, 240)],
    "cls": [(1, 3, 48, 192), (3, 3, 48, 192)],
}
PROVIDERS = ["webgpu", "wasm"]
CASES = [(model, shape) for model, shapes in SHAPES.items() for shape in shapes]

pytestmark = pytest.mark.skipif(SPEC is None, reason="needs pip install rapidocr-onnxruntime")


@pytest.fixture(scope="module")
def sessions():
    """Sessions by (model, provider), made once."""
    made: dict[tuple[str, str], InferenceSession] = {}

    def session(model: str, provider: str) -> InferenceSession:
        if (model, provider) not in made:
            made[model, provider] = InferenceSession(FOLDER / FILES[model], providers=[provider], browser=BROWSER)
        return made[model, provider]

    yield session
    for one in made.values():
        one.close()


@pytest.fixture(scope="module")
def expected():
    """Return native onnxruntime's answers, computed once."""
    import onnxruntime

    natives: dict[str, onnxruntime.InferenceSession] = {}
    answers: dict[tuple[str, tuple[int, ...]], list[np.ndarray]] = {}

    def expected(model: str, shape: tuple[int, ...]) -> list[np.ndarray]:
        if model not in natives:
            natives[model] = native_session(FOLDER / FILES[model])
        if (model, shape) not in answers:
            answers[model, shape] = natives[model].run(None, {natives[model].get_inputs()[0].name: image(shape)})
        return answers[model, shape]

    return expected


def image(shape: tuple[int, ...]) -> np.ndarray:
    """The sample picture, or one of its lines for each of a batch, in these models' form: in [-1, 1], N, C, H, W."""
    picture, (count, _, height, width) = make_sample.draw(), shape
    found = []
    for number in range(count):
        top = make_sample.MARGIN + number % len(make_sample.LINES) * make_sample.LEADING - 12
        part = picture if height > 48 else picture.crop((16, top, 340, top + 44))
        found.append(np.asarray(part.resize((width, height)), np.float32).transpose(2, 0, 1) / 127.5 - 1)
    return np.ascontiguousarray(np.stack(found))


@pytest.mark.parametrize("model, shape", CASES, ids=lambda v: v if isinstance(v, str) else "x".join(map(str, v)))
@pytest.mark.parametrize("provider", PROVIDERS)
def test_equals_onnxruntime(sessions, expected, provider, model, shape):
    session = sessions(model, provider)
    feeds = {session.get_inputs()[0].name: image(shape)}
    for attempt in ("first run", "second run"):
        for got, want in zip(session.run(None, feeds), expected(model, shape), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-3, err_msg=attempt)
    if provider == "webgpu":
        run = session.stats()["last_run"]
        assert run["replayed"]
        assert {name: run["counters"][name] for name in ("pipelines", "buffers", "bind_groups")} == {
            "pipelines": 0,
            "buffers": 0,
            "bind_groups": 0,
        }


@pytest.mark.parametrize("model", FILES)
def test_only_shape_arithmetic_is_on_the_cpu(sessions, model):
    placement = sessions(model, "webgpu").placement()
    strays = [node for node in placement.nodes if node.provider != "webgpu" and node.reason != "shape arithmetic"]
    assert not strays, f"on the CPU: {strays}"
    assert placement.counts()["webgpu"] > 20
    text = str(placement)
    assert "Conv" in text and f"{placement.counts()['webgpu']} nodes on webgpu" in text


@pytest.mark.parametrize("model", FILES)
def test_feeds_may_change_with_the_same_shapes(sessions, expected, model):
    """A replay uses the new contents, not the recorded ones."""
    session, shape = sessions(model, "webgpu"), SHAPES[model][0]
    name = session.get_inputs()[0].name
    first = session.run(None, {name: image(shape)})[0]
    other = session.run(None, {name: np.ascontiguousarray(image(shape)[..., ::-1])})[0]
    assert np.abs(first - other).max() > 0.05
    np.testing.assert_allclose(session.run(None, {name: image(shape)})[0], first, rtol=1e-6, atol=1e-6)


def test_nothing_suspends_but_copy_async(sessions):
    sessions("cls", "webgpu").run(None, {sessions("cls", "webgpu").get_inputs()[0].name: image((1, 3, 48, 192))})
    suspending = sessions("cls", "webgpu").stats()["page"]["suspending_imports"]
    assert set(suspending) <= {"jsepCopyAsync"}


def test_what_a_session_says_of_the_model(sessions):
    session = sessions("rec", "wasm")
    (x,), (y,) = session.get_inputs(), session.get_outputs()
    assert (x.name, x.type, len(x.shape)) == ("x", "tensor(float)", 4) and x.shape[1] == 3
    assert y.type == "tensor(float)"
    assert len(session.get_modelmeta().custom_metadata_map["character"].splitlines()) == 6623
