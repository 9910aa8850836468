"""Operators whose result's shape depends on data, on the GPU: counted there, and only the count is downloaded."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest
from graphs import parse
from same_values import assert_same
from session_settings import settings
from standard_form import run_native

from py_ort.compiler import compile_model

sys.path.insert(0, str(Path(__file__).parents[2] / "web/test/kernel_page"))
from run import KernelPage

Model = tuple[str, list[dict[str, np.ndarray]]]  # text, and feeds of runs
RNG = np.random.default_rng(11)


def _sparse(*shape: int, dtype: str = "float32", density: float = 0.3) -> np.ndarray:
    values = RNG.integers(1, 5, shape) * (RNG.random(shape) < density)
    return np.asarray(values).astype(dtype)


def _boxes(batch: int, count: int) -> np.ndarray:
    corners = RNG.random((batch, count, 2)) * 10
    return np.concatenate([corners, corners + 0.5 + RNG.random((batch, count, 2)) * 3], 2).astype(np.float32)


def _of(dtype: str, shape: tuple[int, ...]) -> str:
    return f"{ {'float32': 'float', 'float64': 'double'}.get(dtype, dtype) }[{', '.join(map(str, shape))}]"


def _non_zero(*shape: int, dtype: str = "float32") -> Model:
    text = f"m ({_of(dtype, shape)} x) => (int64[r, n] y) {{ y = NonZero(x) }}"
    feeds = [_sparse(*shape, dtype=dtype, density=d) for d in (0.3, 0.0, 1.0)]
    return text, [{"x": x} for x in feeds]


def _compress(*shape: int, length: int, axis: int | None = None) -> Model:
    attribute = "" if axis is None else f" <axis = {axis}>"
    text = f"m ({_of('float32', shape)} x, bool[{length}] c) => (float y) {{ y = Compress{attribute}(x, c) }}"
    x = RNG.standard_normal(shape).astype(np.float32)
    return text, [{"x": x, "c": RNG.random(length) < density} for density in (0.5, 0.0, 1.0)]


def _unique(*shape: int, dtype: str = "float32", most: int = 9, **attributes: int) -> Model:
    given = ", ".join(f"{name} = {value}" for name, value in {"sorted": 1, **attributes}.items())
    output = _of(dtype, ()).removesuffix("[]")
    text = f"""m ({_of(dtype, shape)} x) => ({output} y, int64[n] i, int64[m] v, int64[n] c)
        {{ y, i, v, c = Unique<{given}>(x) }}"""
    return text, [{"x": np.asarray(RNG.integers(0, high, shape)).astype(dtype)} for high in (most, 1, 1000)]


def _suppression(batch: int, classes: int, count: int, inputs: str = ", k, o, s", center: int = 0) -> Model:
    text = f"""m (float[{batch}, {count}, 4] b, float[{batch}, {classes}, {count}] p,
        int64[1] k, float[1] o, float[1] s) => (int64[n, 3] y)
        {{ y = NonMaxSuppression<center_point_box = {center}>(b, p{inputs}) }}"""
    feeds = []
    for most, overlap, least in ((3, 0.5, 0.2), (count, 0.1, 0.0), (0, 0.5, 0.0), (2, 0.9, 2.0)):
        scores = RNG.integers(0, 50, (batch, classes, count)) / np.float32(50)  # some are equal
        limits = {"k": np.array([most]), "o": np.array([overlap], np.float32), "s": np.array([least], np.float32)}
        feeds.append({"b": _boxes(batch, count), "p": scores.astype(np.float32), **limits})
    return text, feeds


MODELS: Mapping[str, Model] = {
    "NonZero of a matrix": _non_zero(7, 9),
    "NonZero of a number": _non_zero(),
    "NonZero of rank 8": _non_zero(2, 1, 3, 2, 1, 2, 2, 3, dtype="int32"),
    "NonZero of nothing": _non_zero(3, 0),
    "NonZero of many": _non_zero(70_000),
    "NonZero of truths": _non_zero(5, 300, dtype="bool"),
    "Compress all": _compress(3, 4, length=12),
    "Compress all by a short condition": _compress(3, 4, length=7),
    "Compress rows": _compress(130, 4, length=130, axis=0),
    "Compress columns": _compress(3, 2, 5, length=5, axis=-1),
    "Compress the middle by a short condition": _compress(3, 6, 5, length=4, axis=1),
    "Unique": _unique(7, 11),
    "Unique as found": _unique(7, 11, sorted=0),
    "Unique of many": _unique(5000, most=700),
    "Unique of many as found": _unique(5000, most=700, sorted=0),
    "Unique rows": _unique(40, 3, most=2, axis=0),
    "Unique columns as found": _unique(2, 50, 2, most=2, axis=1, sorted=0, dtype="int64"),
    "Unique of nothing": _unique(0),
    "NonMaxSuppression": _suppression(2, 3, 40),
    "NonMaxSuppression of one class": _suppression(1, 1, 300),
    "NonMaxSuppression by centers": _suppression(1, 2, 20, center=1),
    "NonMaxSuppression without a least score": _suppression(1, 2, 20, inputs=", k, o"),
    "NonMaxSuppression without limits": _suppression(1, 1, 5, inputs=""),
}


@pytest.mark.parametrize("name", MODELS)
def test_equals_native(name, new_session):
    """One session, fed repeatedly with contents that yield other shapes."""
    text, feeds = MODELS[name]
    model = parse(text)
    options = settings(entries={"session.disable_cpu_ep_fallback": "1"})
    session = new_session(model, options, providers=["webgpu"])
    names = {value.name for value in session.get_inputs()}
    for given in [*feeds, *feeds[:1]]:
        chosen = {key: value for key, value in given.items() if key in names}
        assert_same(session.run(None, chosen), run_native(model, chosen), rtol=0, atol=0)
    assert session.placement().counts()["webgpu"] == 2


CHAIN = """m (float[n, 4] x) => (float[m, 4] y, int64[m, 1] t) {
    sum = ReduceSum<keepdims = 0>(x, axes)
    large = Greater(sum, bound)
    places = NonZero(large)
    t = Transpose(places)
    y = GatherND(x, t)
}"""
CONSTANTS = {"axes": np.array([1]), "bound": np.array(0, np.float32)}


def test_what_follows_stays_on_the_gpu(new_session):
    """Between nodes on the GPU, only the count is downloaded, 4 bytes, besides the user's outputs."""
    model = parse(CHAIN, CONSTANTS)
    session = new_session(model, providers=["webgpu", "wasm"])
    assert session.placement().counts()["wasm"] == 0
    for rows in (50, 50, 3, 200):
        feeds = {"x": RNG.standard_normal((rows, 4)).astype(np.float32)}
        assert_same(session.run(None, feeds), run_native(model, feeds), rtol=0, atol=0)


SUPPRESSION, _ = MODELS["NonMaxSuppression"]


@pytest.mark.parametrize(
    ("model", "node", "place"),
    [
        (parse(CHAIN, CONSTANTS), "NonZero", "webgpu"),
        (parse(_non_zero(7, 9)[0]), "NonZero", "wasm"),
        (parse(_unique(7)[0]), "Unique", "wasm"),
        (parse(SUPPRESSION), "NonMaxSuppression", "wasm"),
        (parse("m (float[n, m] x) => (int64[k, l] y) { s = Shape(x)  y = NonZero(s) }"), "NonZero", "wasm"),
    ],
    ids=["of what the GPU made", "of what is fed", "Unique", "NonMaxSuppression", "of a shape"],
)
def test_placement(model, node, place):
    """If the CPU already has the data, or is as fast, nothing goes to the GPU."""
    result = compile_model(model.SerializeToString(), providers=["webgpu", "wasm"])
    assert {n.op_type: n.provider for n in result.placement.nodes}[node] == place


def test_teams_pick_the_same_boxes():
    """On hardware a workgroup handles each class; on software adapters, a thread."""
    _, feeds = _suppression(2, 3, 700)
    limits = [np.array([40]), np.array([0.3], np.float32), np.array([0.1], np.float32)]
    inputs = [feeds[0]["b"], feeds[0]["p"], *limits]
    options = {"domain": "com.ms.internal", "host": [2, 3, 4], "outputs": 3}
    with KernelPage() as page:
        one, team = (page.run("NonMaxSuppressionCount", inputs, **options, hardware=hard) for hard in (False, True))
    chosen, starts, total = one.outputs
    np.testing.assert_array_equal(team.outputs[1], starts)
    np.testing.assert_array_equal(team.outputs[2], total)
    ends = [*starts[1:], total[0]]
    for row, (begin, end) in enumerate(zip(starts, ends, strict=True)):
        assert end > begin
        np.testing.assert_array_equal(team.outputs[0][row, : end - begin], chosen[row, : end - begin])
