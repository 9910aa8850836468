"""A decoder that generates token by token: caches bound as both inputs and outputs are written in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import small_models
from native import native_session
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from py_ort import OrtValue, SessionOptions
from py_ort.exceptions import PyOrtError

pytestmark = pytest.mark.browser
HEADS, KV_HEADS, SIZE, LAYERS, CAPACITY = 4, 2, 16, 2, 96
WIDTH = HEADS * SIZE
UNTOUCHED = 7.0
#: Objects that a step makes none of where it needs nothing new.
MADE = ("pipelines", "buffers", "bind_groups", "suspensions")
ELEMENT = {np.float32: TensorProto.FLOAT, np.float16: TensorProto.FLOAT16}
CACHES = [f"{kind}.{layer}" for layer in range(LAYERS) for kind in ("key", "value")]


def decoder(dtype: Any, batch: int) -> bytes:
    """LAYERS of y = x + attention(x W) V, with caches past.KIND.LAYER and present.KIND.LAYER."""
    rng = np.random.default_rng(5)
    nodes, weights = [], {}
    angles = np.arange(CAPACITY)[:, None] / 10 ** np.linspace(0, 3, SIZE // 2)
    weights["cos"], weights["sin"] = np.cos(angles), np.sin(angles)
    x = "x"
    for layer in range(LAYERS):
        weights[f"w{layer}"] = rng.standard_normal((WIDTH, (HEADS + 2 * KV_HEADS) * SIZE)) / 8
        weights[f"v{layer}"] = rng.standard_normal((WIDTH, WIDTH)) / 8
        past, present = ([f"{when}.{kind}.{layer}" for kind in ("key", "value")] for when in ("past", "present"))
        inputs = [f"qkv{layer}", "", "", *past, "lengths", "total", "cos", "sin"]
        nodes += [
            helper.make_node("MatMul", [x, f"w{layer}"], [f"qkv{layer}"]),
            helper.make_node(
                "GroupQueryAttention",
                inputs,
                [f"a{layer}", *present],
                domain="com.microsoft",
                num_heads=HEADS,
                kv_num_heads=KV_HEADS,
                do_rotary=1,
            ),
            helper.make_node("MatMul", [f"a{layer}", f"v{layer}"], [f"o{layer}"]),
            helper.make_node("Add", [x, f"o{layer}"], [f"x{layer}" if layer + 1 < LAYERS else "y"]),
        ]
        x = f"x{layer}"
    element = ELEMENT[dtype]
    cache = [batch, KV_HEADS, CAPACITY, SIZE]
    infos = [
        helper.make_tensor_value_info("x", element, [batch, "rows", WIDTH]),
        helper.make_tensor_value_info("lengths", TensorProto.INT32, [batch]),
        helper.make_tensor_value_info("total", TensorProto.INT32, [1]),
        *(helper.make_tensor_value_info(f"past.{name}", element, cache) for name in CACHES),
    ]
    outputs = [helper.make_tensor_value_info("y", element, [batch, "rows", WIDTH])]
    outputs += [helper.make_tensor_value_info(f"present.{name}", element, cache) for name in CACHES]
    initializers = [numpy_helper.from_array(value.astype(dtype), name) for name, value in weights.items()]
    return small_models.model(nodes, infos, outputs, initializers, domains=["com.microsoft"])


def steps(dtype: Any, batch: int) -> list[dict[str, np.ndarray]]:
    """The feeds of a prompt of three tokens and of five tokens after it; the last batch's prompt is shorter by one."""
    rng, total, made = np.random.default_rng(6), 0, []
    for rows in (3, 1, 1, 1, 1, 1):
        total += rows
        x = rng.standard_normal((batch, rows, WIDTH)).astype(dtype)
        lengths = np.full(batch, total - 1, np.int32)
        if batch > 1:
            lengths[-1] -= 1
        made.append({"x": x, "lengths": lengths, "total": np.array([total], np.int32)})
    return made


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["f32", "f16"])
@pytest.mark.parametrize("batch", [1, 2])
def test_caches_in_place_are_those_that_are_copied(new_session, dtype, batch):
    model = decoder(dtype, batch)
    session = new_session(model, providers=["webgpu"])
    native = native_session(model)
    tolerance = {"rtol": 1e-4, "atol": 1e-5} if dtype == np.float32 else {"rtol": 2e-2, "atol": 2e-2}
    start = np.full((batch, KV_HEADS, CAPACITY, SIZE), UNTOUCHED, dtype)
    caches = {name: session.create_ortvalue_from_shape_and_type(start.shape, dtype, "webgpu") for name in CACHES}
    for value in caches.values():
        value.update_inplace(start)
    copied = {f"past.{name}": start for name in CACHES}
    theirs = dict(copied)
    for step, feeds in enumerate(steps(dtype, batch)):
        binding = bound(session, feeds, caches)
        session.run_with_iobinding(binding)
        counters = session.stats()["last_run"]["counters"]
        # Everything except y stays in its place.
        assert (counters["downloads"], counters["submits"]) == (1, 1)
        if step > 2:
            assert [counters[name] for name in MADE] == [0] * len(MADE), step
        (y,) = binding.copy_outputs_to_cpu()[:1]
        expected, *presents = native.run(None, {**feeds, **theirs})
        theirs = {f"past.{name}": value for name, value in zip(CACHES, presents, strict=True)}
        np.testing.assert_allclose(y, expected, **tolerance, err_msg=f"step {step}")
        again, *presents = session.run(None, {**feeds, **copied})
        copied = {f"past.{name}": value for name, value in zip(CACHES, presents, strict=True)}
        np.testing.assert_allclose(y, again, **tolerance)
    for name, value in caches.items():
        array = value.numpy()
        for b, last in enumerate(feeds["lengths"]):
            written = array[b, :, : last + 1]
            np.testing.assert_allclose(written, copied[f"past.{name}"][b, :, : last + 1], **tolerance)
            np.testing.assert_allclose(written, theirs[f"past.{name}"][b, :, : last + 1], **tolerance)
        assert (array[:, :, feeds["total"][0] :] == UNTOUCHED).all(), "more than the new rows was written"


def from_a_mask(model: bytes) -> bytes:
    """The same with lengths computed from a mask that grows with each token, in exporters' form."""
    changed = onnx.load_from_string(model)
    graph = changed.graph
    before = [
        helper.make_node("ReduceSum", ["mask", "one"], ["seen"], keepdims=0),
        helper.make_node("Sub", ["seen", "one"], ["last"]),
        helper.make_node("Cast", ["last"], ["lengths"], to=TensorProto.INT32),
        helper.make_node("Shape", ["mask"], ["shape"]),
        helper.make_node("Gather", ["shape", "one"], ["longest"]),
        helper.make_node("Cast", ["longest"], ["total"], to=TensorProto.INT32),
    ]
    nodes = [*before, *graph.node]
    inputs = [info for info in graph.input if info.name not in ("lengths", "total")]
    inputs.append(helper.make_tensor_value_info("mask", TensorProto.INT64, ["batch", "total"]))
    del graph.node[:], graph.input[:]
    graph.node.extend(nodes)
    graph.input.extend(inputs)
    graph.initializer.append(numpy_helper.from_array(np.array([1]), "one"))
    return changed.SerializeToString()


def test_a_mask_that_grows_leaves_steps_as_they_are(new_session):
    """The CPU computes all that differs from step to step, and on the GPU only a number changes: the plan is
    not walked again."""
    model = from_a_mask(decoder(np.float32, 1))
    session = new_session(model, providers=["webgpu"])
    native = native_session(model)
    start = np.zeros((1, KV_HEADS, CAPACITY, SIZE), np.float32)
    caches = {name: session.create_ortvalue_from_shape_and_type(start.shape, np.float32, "webgpu") for name in CACHES}
    theirs = {f"past.{name}": start for name in CACHES}
    for step, given in enumerate(steps(np.float32, 1)):
        feeds = {"x": given["x"], "mask": np.ones((1, given["total"][0]), np.int64)}
        binding = bound(session, feeds, caches)
        session.run_with_iobinding(binding)
        counters = session.stats()["last_run"]["counters"]
        if step > 1:
            assert [counters[name] for name in (*MADE, "walks")] == [0] * (len(MADE) + 1), step
        expected, *presents = native.run(None, {**feeds, **theirs})
        theirs = {f"past.{name}": value for name, value in zip(CACHES, presents, strict=True)}
        np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], expected, rtol=1e-4, atol=1e-5)


def test_steps_are_told_by_what_is_new_and_texts_do_not_mix(new_session):
    """Two texts, each with its caches, alternately: a step sends only its token and its mask."""
    model = from_a_mask(decoder(np.float32, 1))
    options = SessionOptions()
    options.add_session_config_entry("session.specialize_shapes", "0")  # plans for new lengths are messages, too
    session = new_session(model, options, providers=["webgpu"])
    native = native_session(model)
    start = np.zeros((1, KV_HEADS, CAPACITY, SIZE), np.float32)
    make = session.create_ortvalue_from_shape_and_type
    ours = [{name: make(start.shape, np.float32, "webgpu") for name in CACHES} for _ in range(2)]
    theirs = [{f"past.{name}": start for name in CACHES} for _ in range(2)]
    told = []
    for given in steps(np.float32, 1):
        for text, sign in enumerate((1, -1)):
            feeds = {"x": sign * given["x"], "mask": np.ones((1, given["total"][0]), np.int64)}
            binding = bound(session, feeds, ours[text])
            before = session.stats()["traffic"]
            session.run_with_iobinding(binding)
            after = session.stats()["traffic"]
            expected, *presents = native.run(None, {**feeds, **theirs[text]})
            theirs[text] = {f"past.{name}": value for name, value in zip(CACHES, presents, strict=True)}
            np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], expected, rtol=1e-4, atol=1e-5)
            told.append(after["sent"] - before["sent"] - sum(array.nbytes for array in feeds.values()))
    # Includes stats() itself; the common part of all steps is sent once for each text.
    assert max(told[2:]) < 1000, told


def test_steps_beyond_the_caches_are_told_where_the_plan_is_not_walked(new_session):
    """A kernel's check of a number is made for each step's, and a step that fails spoils nothing."""
    session = new_session(from_a_mask(decoder(np.float32, 1)), providers=["webgpu"])
    shape = [1, KV_HEADS, CAPACITY, SIZE]
    caches = {name: session.create_ortvalue_from_shape_and_type(shape, np.float32, "webgpu") for name in CACHES}
    x = steps(np.float32, 1)[1]["x"]

    def step(total):
        binding = bound(session, {"x": x, "mask": np.ones((1, total), np.int64)}, caches)
        session.run_with_iobinding(binding)
        return binding.copy_outputs_to_cpu()[0]

    first = step(1)
    step(2)
    assert session.stats()["last_run"]["counters"]["walks"] == 0
    with pytest.raises(PyOrtError, match=f"beyond the {CAPACITY} positions"):
        step(CAPACITY + 1)
    np.testing.assert_array_equal(step(1), first)
    # A mask with a hole ends elsewhere: its contents matter, not its length.
    binding = bound(session, {"x": x, "mask": np.array([[0, 0, 1]])}, caches)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], first)


def test_masks_that_make_a_difference_on_the_gpu_keep_recordings_apart(new_session):
    """Tensors made from values on the CPU: each length has its own recording, after one try to share."""
    nodes = [helper.make_node("Shape", ["mask"], ["n"]), helper.make_node("Expand", ["x", "n"], ["wide"])]
    nodes += [helper.make_node("Exp", ["wide"], ["e"]), helper.make_node("NonZero", ["mask"], ["where"])]
    inputs = [small_models.floats("x", [1]), small_models.floats("mask", ["n"])]
    indices = helper.make_tensor_value_info("where", TensorProto.INT64, [1, None])
    session = new_session(
        small_models.model(nodes, inputs, [small_models.floats("e", [None]), indices]), providers=["webgpu", "wasm"]
    )
    for size in (3, 5, 3, 5, 3, 5):
        mask = (np.arange(size) % 2).astype(np.float32)
        e, where = session.run(None, {"x": np.ones(1, np.float32), "mask": mask})
        np.testing.assert_allclose(e, np.full(size, np.e), rtol=1e-5)
        np.testing.assert_array_equal(where, [np.flatnonzero(mask)])


def bound(session: Any, feeds: dict[str, np.ndarray], caches: dict[str, OrtValue]) -> Any:
    """All inputs and outputs; caches are both."""
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    binding.bind_output("y", "cpu")
    for name, value in caches.items():
        binding.bind_ortvalue_input(f"past.{name}", value)
        binding.bind_ortvalue_output(f"present.{name}", value)
    return binding


def test_caches_that_are_too_short_are_an_error(new_session):
    session = new_session(decoder(np.float32, 1), providers=["webgpu"])
    caches = {
        name: session.create_ortvalue_from_shape_and_type([1, KV_HEADS, CAPACITY, SIZE], np.float32, "webgpu")
        for name in CACHES
    }
    feeds = {**steps(np.float32, 1)[1], "total": np.array([CAPACITY + 1], np.int32)}
    with pytest.raises(PyOrtError, match=f"beyond the {CAPACITY} positions"):
        session.run_with_iobinding(bound(session, feeds, caches))


def test_a_cache_that_is_both_keys_and_values_is_not_written_in_place(new_session):
    """One buffer in two places: all reads precede the writes."""
    session = new_session(decoder(np.float32, 1), providers=["webgpu"])
    start = np.zeros((1, KV_HEADS, CAPACITY, SIZE), np.float32)
    one = session.create_ortvalue_from_shape_and_type(start.shape, np.float32, "webgpu")
    one.update_inplace(start)
    feeds = steps(np.float32, 1)[0]
    expected = session.run(None, {**feeds, **{f"past.{name}": start for name in CACHES}})
    binding = session.io_binding()
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    for name in CACHES:
        binding.bind_ortvalue_input(f"past.{name}", one)
    binding.bind_output("y", "cpu")
    binding.bind_ortvalue_output("present.key.0", one)
    session.run_with_iobinding(binding)
    np.testing.assert_array_equal(binding.copy_outputs_to_cpu()[0], expected[0])
    np.testing.assert_array_equal(one.numpy(), expected[1])


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter_writes_rows_in_place(new_session, mode):
    """ONNX's own way: TensorScatter into the caches, then Attention over the valid keys."""
    floats = small_models.floats
    nodes = [
        helper.make_node("TensorScatter", [f"past.{kind}", kind, "place"], [f"present.{kind}"], mode=mode)
        for kind in ("key", "value")
    ]
    nodes.append(helper.make_node("Attention", ["q", "present.key", "present.value", "", "", "", "seen"], ["y"]))
    integers = [helper.make_tensor_value_info(name, TensorProto.INT64, [1]) for name in ("place", "seen")]
    row, cache = [1, KV_HEADS, 1, SIZE], [1, KV_HEADS, 8, SIZE]
    inputs = [floats("q", [1, HEADS, 1, SIZE]), *(floats(name, row) for name in ("key", "value")), *integers]
    inputs += [floats(f"past.{kind}", cache) for kind in ("key", "value")]
    outputs = [floats("y", [1, HEADS, 1, SIZE]), *(floats(f"present.{kind}", cache) for kind in ("key", "value"))]
    model = small_models.model(nodes, inputs, outputs, opset=24)
    session, reference = new_session(model, providers=["webgpu"]), ReferenceEvaluator(onnx.load_from_string(model))
    rng = np.random.default_rng(7)
    caches = {
        f"{kind}": session.create_ortvalue_from_shape_and_type(cache, np.float32, "webgpu") for kind in ("key", "value")
    }
    theirs = {f"past.{kind}": np.zeros(cache, np.float32) for kind in caches}
    for step in range(10 if mode == "circular" else 8):
        seen = min(step + 1, 8)
        feeds = {"place": np.array([step % 8]), "seen": np.array([seen])}
        feeds["q"] = rng.standard_normal((1, HEADS, 1, SIZE)).astype(np.float32)
        feeds |= {kind: rng.standard_normal(row).astype(np.float32) for kind in caches}
        binding = bound(session, feeds, caches)
        session.run_with_iobinding(binding)
        last = session.stats()["last_run"]
        assert last["replayed"] == (step > 0), step
        assert last["counters"]["downloads"] == 1
        expected, *presents = reference.run(None, {**feeds, **theirs})
        theirs = dict(zip(theirs, presents, strict=True))
        np.testing.assert_allclose(binding.copy_outputs_to_cpu()[0], expected, rtol=1e-4, atol=1e-5)
    for kind, value in caches.items():
        np.testing.assert_array_equal(value.numpy(), theirs[f"past.{kind}"])


@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
def test_rows_scattered_into_a_cache_in_place(new_session, op_type):
    """Arbitrary places, since none is known to follow another."""
    ids = helper.make_tensor_value_info("ids", TensorProto.INT64, ["n"])
    cache, rows = [1, 2, 8, 4], [1, 2, "n", 4]
    if op_type == "ScatterND":
        cache, rows = cache[2:], ["n", 4]
        nodes = [helper.make_node("Unsqueeze", ["ids", "last"], ["at"])]
    else:
        nodes = [helper.make_node("Reshape", ["ids", "row"], ["line"]), helper.make_node("Shape", ["rows"], ["wide"])]
        nodes.append(helper.make_node("Expand", ["line", "wide"], ["at"]))
    axis = {"axis": 2} if op_type == "ScatterElements" else {}
    nodes.append(helper.make_node(op_type, ["past", "at", "rows"], ["present"], **axis))
    nodes.append(helper.make_node("Exp", ["present"], ["y"]))
    floats = small_models.floats
    constants = [numpy_helper.from_array(np.array(v), n) for n, v in (("last", [1]), ("row", [1, 1, -1, 1]))]
    model = small_models.model(
        nodes,
        [floats("past", cache), floats("rows", rows), ids],
        [floats("y", cache), floats("present", cache)],
        constants,
    )
    session = new_session(model, providers=["webgpu"])
    native = native_session(model)
    value = session.create_ortvalue_from_shape_and_type(cache, np.float32, "webgpu")
    theirs, rng = np.zeros(cache, np.float32), np.random.default_rng(3)
    for places in ([5, 2], [-1, 0], [3, 4]):
        given = [2 if size == "n" else size for size in rows]
        feeds = {"rows": rng.standard_normal(given).astype(np.float32), "ids": np.array(places)}
        binding = session.io_binding()
        for name, array in feeds.items():
            binding.bind_cpu_input(name, array)
        binding.bind_ortvalue_input("past", value)
        binding.bind_ortvalue_output("present", value)
        binding.bind_output("y", "cpu")
        session.run_with_iobinding(binding)
        expected, theirs = native.run(["y", "present"], {**feeds, "past": theirs})
        np.testing.assert_allclose(binding.copy_outputs_to_cpu()[1], expected, rtol=1e-5)
        np.testing.assert_array_equal(value.numpy(), theirs)
