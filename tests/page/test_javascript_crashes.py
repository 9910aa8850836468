"""A crash of the core in a page without Python: a typed error, and sessions that go on, or say what to do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import crashes
import numpy as np
import pytest
import small_models
from javascript_site import lay_out
from onnx import helper, load_from_string

import py_ort
from py_ort.schema.gen.ErrorCode import ErrorCode

pytestmark = pytest.mark.browser
#: Begins runs of sessions that stay in `globalThis`, all at once; reports outputs, or errors.
RUNS = """async ([proxy, names]) => {
    const { env, InferenceSession, Tensor } = await import('./py_ort.mjs');
    env.wasm.proxy = proxy;
    const sessions = (globalThis.sessions ??= {});
    for (const name of new Set(names)) {
        const options = { executionProviders: [name === 'add' ? 'webgpu' : 'wasm'] };
        sessions[name] ??= await InferenceSession.create(`${name}.pyort`, options);
    }
    const feeds = {
        joined: { x: new Tensor('float32', Float32Array.from({ length: 1024 }, (_, i) => i), [1024]) },
        wasm: { x: new Tensor('float32', [1, 2, 3], [1, 3]), scale: new Tensor('float32', [10, 20, 30]) },
    };
    feeds.add = { ...feeds.wasm, x: globalThis.kept ?? feeds.wasm.x };
    const runs = await Promise.allSettled(names.map((name) => sessions[name].run(feeds[name])));
    return runs.map(({ reason, value }) =>
        reason ? { message: reason.message, code: reason.code, place: reason.place } : { y: [...value.y.data] });
}"""
#: Makes an output of `add` left on the GPU its feed from then on.
KEEP = """async () => {
    const { InferenceSession, Tensor } = await import('./py_ort.mjs');
    const options = { executionProviders: ['webgpu'], preferredOutputLocation: 'gpu-buffer' };
    const session = await InferenceSession.create('add.pyort', options);
    const x = new Tensor('float32', [5, 6, 7], [1, 3]);
    globalThis.kept = (await session.run({ x, scale: new Tensor('float32', [1, 1, 1]) })).y;
}"""
JOINED, WASM = {"y": [*range(1024), *range(1024)]}, {"y": [11, 22, 33]}


@pytest.fixture
def plain_page() -> Iterator[Any]:
    """A separate page: sessions of the API share a worker as long as the page lives."""
    from plain_page import PlainPage

    page = PlainPage()
    lay_out(page._page.folder)
    py_ort.export(crashes.joined(), page._page.folder / "joined.pyort", providers=["wasm"])
    yield page
    page.close()


@pytest.mark.parametrize("how", ["trap", "memory", "stack"])
@pytest.mark.parametrize("proxy", [None, False], ids=["worker", "page"])
def test_sessions_come_back(plain_page: Any, proxy: bool | None, how: str) -> None:
    page = plain_page._page
    names = ["joined", "wasm"]
    assert page.evaluate(RUNS, [proxy, names]) == [JOINED, WASM]
    for where in ("kernel", "walk"):
        if proxy is False:
            page.evaluate(crashes.CRASH, [how, where])
        else:
            assert page.evaluate_in_workers(crashes.CRASH, [how, where]) == 1
        error, *others = page.evaluate(RUNS, [proxy, [*names, *names]])
        assert error["code"] == ErrorCode.core_crashed
        assert "the core crashed" in error["message"] and "loaded again when they are used next" in error["message"]
        if where == "kernel":
            assert error["place"] == {"node": "joined", "opType": "Concat", "provider": "wasm"}
            assert "in node 'joined' (Concat); sessions" in error["message"]
        assert others == [WASM, JOINED, WASM], "runs that wait are done again"
        assert page.evaluate(RUNS, [proxy, names]) == [JOINED, WASM]


def test_tensors_on_the_gpu_stay(plain_page: Any) -> None:
    """They belong to the device, which is independent of the core."""
    page = plain_page._page
    assert page.evaluate(RUNS, [False, ["joined", "add"]]) == [JOINED, WASM]
    page.evaluate(KEEP)
    page.evaluate(crashes.CRASH, ["trap", "kernel"])
    error, y = page.evaluate(RUNS, [False, ["joined", "add"]])
    assert error["code"] == ErrorCode.core_crashed
    assert y == {"y": [16, 27, 38]}
    assert page.evaluate(RUNS, [False, ["add", "joined"]]) == [y, JOINED]


def test_a_session_beneath_the_api_says_what_to_do(plain_page: Any) -> None:
    from plain_page import PageError

    joined, beside = (plain_page.load(load_from_string(model)) for model in (crashes.joined(), small_models.add()))
    x, feeds = np.arange(1024, dtype=np.float32), {"x": np.ones((1, 3), np.float32), "scale": np.ones(3, np.float32)}
    beside.run(feeds)
    plain_page._page.evaluate(crashes.CRASH, ["memory", "walk"])
    with pytest.raises(PageError, match="the core crashed: memory access out of bounds") as error:
        joined.run({"x": x})
    assert error.value.code == ErrorCode.core_crashed
    for session, values in ((joined, {"x": x}), (beside, feeds)):
        with pytest.raises(PageError, match="the core of this session has crashed: create the session again") as error:
            session.run(values)
        assert error.value.code == ErrorCode.core_crashed
        session.release()
    again = plain_page.load(load_from_string(small_models.add()))
    np.testing.assert_array_equal(again.run(feeds).outputs["y"], [[2, 2, 2]])
    again.release()


def test_a_run_that_waits_for_the_gpu_is_told_at_once(plain_page: Any) -> None:
    """A crash in another call, such as the creation of a session: the run itself may never end."""
    script = """async ([id, feeds]) => {
        const { mapAsync } = GPUBuffer.prototype;
        const waits = new Promise((resolve) => {
            GPUBuffer.prototype.mapAsync = () => {
                resolve();
                return new Promise(() => {});
            };
        });
        const running = session.run(id, feeds);
        await waits;
        GPUBuffer.prototype.mapAsync = mapAsync;
        return [await session.crash(), await running].map(({ error }) => error);
    }"""
    nodes = [helper.make_node("Neg", ["x"], ["a"]), helper.make_node("Exp", ["a"], ["y"], name="exp")]
    model = small_models.model(nodes, [small_models.floats("x", [2])], [small_models.floats("y", [2])])
    waiting = plain_page.load(load_from_string(model), ["exp"])
    feeds = {"x": {"dtype": "float32", "dims": [2], "data": "AAAAAAAAAAA="}}
    crash, told = plain_page._page.evaluate(script, [waiting.id, feeds])
    assert crash["code"] == told["code"] == ErrorCode.core_crashed
    assert crash["message"] == told["message"]
    assert crash["message"].startswith("the core crashed: memory access out of bounds;")
    waiting.release()
