"""A decoder that generates token by token: caches bound as both inputs and outputs are written in place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from native import native_session
from onnx.reference import ReferenceEvaluator
from text_form import parse

from py_ort import SessionOptions
from py_ort.exceptions import PyOrtError

HEADS, KV_HEADS, SIZE, LAYERS, CAPACITY = 4, 2, 16, 2, 96
WIDTH = HEADS * SIZE
UNTOUCHED = 7.0
#: Objects that a step makes none of where it needs nothing new.
MADE = ("pipelines", "buffers", "bind_groups", "suspensions")
CACHES = [f"{kind}_{layer}" for layer in range(LAYERS) for kind in ("key", "value")]
START = np.zeros((1, KV_HEADS, CAPACITY, SIZE), np.float32)
CLOSE = {"rtol": 1e-4, "atol": 1e-5}
LAYER = f"""
    qkv# = MatMul(x#, w#)
    a#, present_key_#, present_value_# = com.microsoft.GroupQueryAttention
        <num_heads = {HEADS}, kv_num_heads = {KV_HEADS}, do_rotary = 1>
        (qkv#, , , past_key_#, past_value_#, lengths, total, cos, sin)
    o# = MatMul(a#, v#)
    x@ = Add(x#, o#)
"""
#: Lengths that are computed from a mask, which grows with each token, in exporters' form.
FROM_A_MASK = """
    seen = ReduceSum<keepdims = 0>(mask, one)  last = Sub(seen, one)  lengths = Cast<to = 6>(last)
    shape = Shape(mask)  longest = Gather(shape, one)  total = Cast<to = 6>(longest)
"""


def decoder(dtype: Any = np.float32, batch: int = 1, mask: bool = False) -> bytes:
    """LAYERS of y = x + attention(x W) V, with caches past_KIND_LAYER and present_KIND_LAYER."""
    rng = np.random.default_rng(5)
    angles = np.arange(CAPACITY)[:, None] / 10 ** np.linspace(0, 3, SIZE // 2)
    weights = {"cos": np.cos(angles), "sin": np.sin(angles)}
    for layer in range(LAYERS):
        weights[f"w{layer}"] = rng.standard_normal((WIDTH, (HEADS + 2 * KV_HEADS) * SIZE)) / 8
        weights[f"v{layer}"] = rng.standard_normal((WIDTH, WIDTH)) / 8
    constants = {name: value.astype(dtype) for name, value in weights.items()} | (
        {"one": np.array([1])} if mask else {}
    )
    element = "float" if dtype == np.float32 else "float16"
    x, cache = f"{element}[{batch},rows,{WIDTH}]", f"{element}[{batch},{KV_HEADS},{CAPACITY},{SIZE}]"
    places = "int64[batch,total] mask" if mask else f"int32[{batch}] lengths, int32[1] total"
    pasts, presents = (", ".join(f"{cache} {when}_{name}" for name in CACHES) for when in ("past", "present"))
    layers = "".join(LAYER.replace("#", str(i)).replace("@", str(i + 1)) for i in range(LAYERS))
    text = f"{FROM_A_MASK if mask else ''} {layers} y = Identity(x{LAYERS})"
    return parse(f"g ({x} x0, {places}, {pasts}) => ({x} y, {presents}) {{ {text} }}", constants).SerializeToString()


def steps(dtype: Any = np.float32, batch: int = 1) -> list[dict[str, np.ndarray]]:
    """The feeds of a prompt of three tokens and of five tokens after it; the last batch's prompt is shorter by one."""
    rng, total, made = np.random.default_rng(6), 0, []
    for rows in (3, 1, 1, 1, 1, 1):
        total += rows
        x = rng.standard_normal((batch, rows, WIDTH)).astype(dtype)
        lengths = np.full(batch, total - 1, np.int32)
        if batch > 1:
            lengths[-1] -= 1
        made.append({"x0": x, "lengths": lengths, "total": np.array([total], np.int32)})
    return made


def masked(step: dict[str, np.ndarray], sign: int = 1) -> dict[str, np.ndarray]:
    """The same feeds, for a decoder with a mask."""
    return {"x0": sign * step["x0"], "mask": np.ones((1, step["total"][0]), np.int64)}


def run_bound(session: Any, feeds: dict[str, np.ndarray], **values: Any) -> np.ndarray:
    """Return y of a run with values bound as inputs (past…) and outputs (present…)."""
    binding = session.io_binding()
    binding.bind_output("y", "cpu")
    for name, array in feeds.items():
        binding.bind_cpu_input(name, array)
    for name, value in values.items():
        bind = binding.bind_ortvalue_output if name.startswith("present") else binding.bind_ortvalue_input
        bind(name, value)
    session.run_with_iobinding(binding)
    return binding.get_outputs()[0].numpy()


class Text:
    """A text of a decoder: its caches, written in place, and those of a reference with the same model."""

    def __init__(self, session: Any, reference: Any = None, start: np.ndarray = START, caches: Any = CACHES) -> None:
        make = session.create_ortvalue_from_shape_and_type
        self.session, self.reference = session, reference
        self.ours = {name: make(start.shape, start.dtype, "webgpu") for name in caches}
        for value in self.ours.values():
            value.update_inplace(start)
        self.theirs = {f"past_{name}": start for name in caches}

    def run(self, feeds: dict[str, np.ndarray]) -> np.ndarray:
        """Return y."""
        values = {f"{when}_{name}": value for name, value in self.ours.items() for when in ("past", "present")}
        return run_bound(self.session, feeds, **values)

    def step(self, feeds: dict[str, np.ndarray], **close: float) -> np.ndarray:
        """Return y, which is the reference's."""
        y = self.run(feeds)
        expected, *presents = self.reference.run(None, {**feeds, **self.theirs})
        self.theirs = dict(zip(self.theirs, presents, strict=True))
        np.testing.assert_allclose(y, expected, **(close or CLOSE))
        return y

    @property
    def last(self) -> dict[str, Any]:
        """The last run."""
        return self.session.stats()["last_run"]


@pytest.mark.parametrize("dtype", [np.float32, np.float16], ids=["f32", "f16"])
@pytest.mark.parametrize("batch", [1, 2])
def test_caches_in_place_are_those_that_are_copied(new_session, dtype, batch):
    model = decoder(dtype, batch)
    session = new_session(model, providers=["webgpu"])
    close = CLOSE if dtype == np.float32 else {"rtol": 2e-2, "atol": 2e-2}
    start = np.full((batch, KV_HEADS, CAPACITY, SIZE), UNTOUCHED, dtype)
    text = Text(session, native_session(model), start)
    copied = dict(text.theirs)
    for step, feeds in enumerate(steps(dtype, batch)):
        y = text.step(feeds, **close)
        counters = text.last["counters"]
        # Everything except y stays in its place.
        assert (counters["downloads"], counters["submits"]) == (1, 1)
        if step > 2:
            assert [counters[name] for name in MADE] == [0] * len(MADE), step
        again, *presents = session.run(None, {**feeds, **copied})
        copied = dict(zip(copied, presents, strict=True))
        np.testing.assert_allclose(y, again, **close)
    for name, value in text.ours.items():
        array = value.numpy()
        for b, last in enumerate(feeds["lengths"]):
            for other in (copied, text.theirs):
                rows = other[f"past_{name}"][b, :, : last + 1]
                np.testing.assert_allclose(array[b, :, : last + 1], rows, **close)
        assert (array[:, :, feeds["total"][0] :] == UNTOUCHED).all(), "more than the new rows was written"


def test_a_mask_that_grows_leaves_steps_as_they_are(new_session):
    """The CPU computes all that differs from step to step, and on the GPU only a number changes: the plan is
    not walked again."""
    model = decoder(mask=True)
    text = Text(new_session(model, providers=["webgpu"]), native_session(model))
    for step, given in enumerate(steps()):
        text.step(masked(given))
        if step > 1:
            assert [text.last["counters"][name] for name in (*MADE, "walks")] == [0] * (len(MADE) + 1), step


def test_steps_are_told_by_what_is_new_and_texts_do_not_mix(new_session):
    """Two texts, each with its caches, alternately: a step sends only its token and its mask."""
    model = decoder(mask=True)
    options = SessionOptions()
    options.add_session_config_entry("session.specialize_shapes", "0")  # plans for new lengths are messages, too
    session, native = new_session(model, options, providers=["webgpu"]), native_session(model)
    texts, told = [Text(session, native) for _ in range(2)], []
    for given in steps():
        for text, sign in zip(texts, (1, -1), strict=True):
            feeds = masked(given, sign)
            before = session.stats()["traffic"]["sent"]
            text.step(feeds)
            told.append(session.stats()["traffic"]["sent"] - before - sum(array.nbytes for array in feeds.values()))
    # Includes stats() itself; the common part of all steps is sent once for each text.
    assert max(told[2:]) < 1000, told


def test_steps_beyond_the_caches_are_told_where_the_plan_is_not_walked(new_session):
    """A kernel's check of a number is made for each step's, and a step that fails spoils nothing."""
    text = Text(new_session(decoder(mask=True), providers=["webgpu"]))
    x = steps()[1]["x0"]
    run = lambda *mask: text.run({"x0": x, "mask": np.array([mask])})  # noqa: E731
    first = run(1)
    run(1, 1)
    assert text.last["counters"]["walks"] == 0
    with pytest.raises(PyOrtError, match=f"beyond the {CAPACITY} positions"):
        run(*[1] * (CAPACITY + 1))
    np.testing.assert_array_equal(run(1), first)
    # A mask with a hole ends elsewhere: its contents matter, not its length.
    np.testing.assert_array_equal(run(0, 0, 1), first)


def test_masks_that_make_a_difference_on_the_gpu_keep_recordings_apart(new_session):
    """Tensors made from values on the CPU: each length has its own recording, after one try to share."""
    text = """g (float[1] x, float[n] mask) => (float[m] e, int64[1,k] where) {
        size = Shape(mask)  wide = Expand(x, size)  e = Exp(wide)  where = NonZero(mask) }"""
    session = new_session(parse(text), providers=["webgpu", "wasm"])
    for size in (3, 5, 3, 5, 3, 5):
        mask = (np.arange(size) % 2).astype(np.float32)
        e, where = session.run(None, {"x": np.ones(1, np.float32), "mask": mask})
        np.testing.assert_allclose(e, np.full(size, np.e), rtol=1e-5)
        np.testing.assert_array_equal(where, [np.flatnonzero(mask)])


def test_caches_that_are_too_short_are_an_error(new_session):
    text = Text(new_session(decoder(), providers=["webgpu"]))
    with pytest.raises(PyOrtError, match=f"beyond the {CAPACITY} positions"):
        text.run({**steps()[1], "total": np.array([CAPACITY + 1], np.int32)})


def test_a_cache_that_is_both_keys_and_values_is_not_written_in_place(new_session):
    """One buffer in two places: all reads precede the writes."""
    session = new_session(decoder(), providers=["webgpu"])
    one = session.create_ortvalue_from_shape_and_type(START.shape, np.float32, "webgpu")
    one.update_inplace(START)
    feeds, pasts = steps()[0], [f"past_{name}" for name in CACHES]
    y, key, *_ = session.run(None, {**feeds, **dict.fromkeys(pasts, START)})
    np.testing.assert_array_equal(run_bound(session, feeds, **dict.fromkeys(pasts, one), present_key_0=one), y)
    np.testing.assert_array_equal(one.numpy(), key)


@pytest.mark.parametrize("mode", ["linear", "circular"])
def test_tensor_scatter_writes_rows_in_place(new_session, mode):
    """ONNX's own way: TensorScatter into the caches, then Attention over the valid keys."""
    queries, row, cache = (f"float[1,{heads},{rows},{SIZE}]" for heads, rows in ((4, 1), (KV_HEADS, 1), (KV_HEADS, 8)))
    model = parse(
        f"""g ({queries} q, {row} key, {row} value, int64[1] place, int64[1] seen, {cache} past_key, {cache} past_value)
        => ({queries} y, {cache} present_key, {cache} present_value) {{
        present_key = TensorScatter<mode = "{mode}">(past_key, key, place)
        present_value = TensorScatter<mode = "{mode}">(past_value, value, place)
        y = Attention(q, present_key, present_value, , , , seen) }}""",
        opset=24,
    )
    session, start = new_session(model, providers=["webgpu"]), START[:, :, :8]
    text, rng = Text(session, ReferenceEvaluator(model), start, ("key", "value")), np.random.default_rng(7)
    for step in range(10 if mode == "circular" else 8):
        feeds = {"place": np.array([step % 8]), "seen": np.array([min(step + 1, 8)])}
        for name, heads in (("q", HEADS), ("key", KV_HEADS), ("value", KV_HEADS)):
            feeds[name] = rng.standard_normal((1, heads, 1, SIZE)).astype(np.float32)
        text.step(feeds)
        assert text.last["replayed"] == (step > 0), step
        assert text.last["counters"]["downloads"] == 1
    for kind, value in text.ours.items():
        np.testing.assert_array_equal(value.numpy(), text.theirs[f"past_{kind}"])


@pytest.mark.parametrize("op_type", ["ScatterElements", "ScatterND"])
def test_rows_scattered_into_a_cache_in_place(new_session, op_type):
    """Arbitrary places, since none is known to follow another."""
    if op_type == "ScatterND":
        cache, rows, at = [8, 4], ["n", 4], "at = Unsqueeze(ids, last)  present = ScatterND(past, at, rows)"
    else:
        cache, rows = [1, 2, 8, 4], [1, 2, "n", 4]
        at = """line = Reshape(ids, row)  wide = Shape(rows)  at = Expand(line, wide)
            present = ScatterElements<axis = 2>(past, at, rows)"""
    type_of = lambda shape: f"float[{','.join(map(str, shape))}]"  # noqa: E731
    text = f"""g ({type_of(cache)} past, {type_of(rows)} rows, int64[n] ids)
        => ({type_of(cache)} y, {type_of(cache)} present) {{ {at}  y = Exp(present) }}"""
    constants = {"last": np.array([1])} if op_type == "ScatterND" else {"row": np.array([1, 1, -1, 1])}
    model = parse(text, constants, opset=17).SerializeToString()
    session, native = new_session(model, providers=["webgpu"]), native_session(model)
    value = session.create_ortvalue_from_shape_and_type(cache, np.float32, "webgpu")
    theirs, rng = np.zeros(cache, np.float32), np.random.default_rng(3)
    for places in ([5, 2], [-1, 0], [3, 4]):
        given = rng.standard_normal([2 if size == "n" else size for size in rows]).astype(np.float32)
        feeds = {"rows": given, "ids": np.array(places)}
        y = run_bound(session, feeds, past=value, present=value)
        expected, theirs = native.run(["y", "present"], {**feeds, "past": theirs})
        np.testing.assert_allclose(y, expected, rtol=1e-5)
        np.testing.assert_array_equal(value.numpy(), theirs)
