"""Sessions of one model in a page share weights; the plans they make for shapes, and their reports of memory."""

import dataclasses
import zlib

import numpy as np
import pytest
import small_models
from session_settings import settings
from text_form import parse

from py_ort import SessionOptions, export
from py_ort.compiler.package.format import read_header
from py_ort.exceptions import InvalidArgument

PROVIDERS = ["webgpu", "wasm"]
WEIGHTS = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)


def open_model() -> bytes:
    """y = relu(x · w) of [N, 64], after a copy of x's rows by their numbers: N is known only in the page."""
    text = """g (float[N,64] x) => (float[M,64] y) {
        shape = Shape<end=1>(x)  n = Squeeze(shape, axis)  places = Range(zero, n, one)
        rows = Gather(x, places)  p = MatMul(rows, w)  y = Relu(p) }"""
    constants = {"w": WEIGHTS, "axis": np.array([0], np.int64), "zero": np.int64(0), "one": np.int64(1)}
    return parse(text, constants, 17).SerializeToString()


def feeds(rows: int) -> dict[str, np.ndarray]:
    return {"x": np.random.default_rng(rows).standard_normal((rows, 64)).astype(np.float32)}


def check(session, rows: int) -> None:
    given = feeds(rows)
    np.testing.assert_allclose(session.run(None, given)[0], np.maximum(given["x"] @ WEIGHTS, 0), rtol=1e-4, atol=1e-4)


def options(shapes: str) -> SessionOptions:
    return settings(entries={"session.specialize_shapes": shapes})


def test_sessions_of_a_model_share_its_weights(new_session, provider):
    one = new_session(open_model(), providers=[provider])
    check(one, 3)
    assert one.memory()[provider]["shared"] == 0
    two = new_session(open_model(), providers=[provider])
    assert two.memory()[provider]["shared"] >= WEIGHTS.nbytes
    one.close()
    check(two, 3)
    three = new_session(open_model(), providers=[provider])
    assert three.memory()[provider]["shared"] >= WEIGHTS.nbytes
    check(three, 2)


def test_weights_go_with_the_last_session(new_session, provider):
    model = parse("g (float[1,64] x) => (float[1,64] y) { y = MatMul(x, w) }", {"w": WEIGHTS * np.float32(3)})
    for _ in range(2):
        session = new_session(model, providers=[provider])
        assert session.memory()[provider]["shared"] == 0
        session.close()


def test_plans_for_shapes_that_come_again(new_session, provider):
    session = new_session(open_model(), providers=[provider])
    plans = session._opened.shape_plans
    check(session, 3)
    plans.wait()
    assert session.stats()["shapes"] == []
    check(session, 3)
    plans.wait()
    assert session.stats()["shapes"] == [{"x": [3, 64]}]
    check(session, 3)
    check(session, 4)
    assert session.stats()["shapes"] == [{"x": [3, 64]}]


def test_plans_at_once(new_session):
    session = new_session(open_model(), options("first"), providers=["wasm"])
    for rows in (1, 2, 3, 4, 5, 6):
        check(session, rows)
    assert session.stats()["shapes"] == [{"x": [rows, 64]} for rows in (3, 4, 5, 6)]  # the last four


def test_no_storm_of_plans(new_session):
    session = new_session(open_model(), providers=["wasm"])
    plans = session._opened.shape_plans
    for _ in range(4):
        for rows in range(1, 9):
            for _ in range(2):
                check(session, rows)
                plans.wait()
    made = plans._evictions + len(plans.shapes())
    assert made <= 10, f"{made} plans for 64 runs"


def test_no_plans_for_what_grows_from_run_to_run(new_session):
    """Texts of many lengths: each length returns with the next text, after more others than plans are kept."""
    session = new_session(open_model(), providers=["wasm"])
    plans = session._opened.shape_plans
    for _ in range(3):
        for rows in range(1, 7):
            check(session, rows)
            plans.wait()
    assert plans.shapes() == []
    for _ in range(2):
        check(session, 9)
        plans.wait()
    assert plans.shapes() == [{"x": [9, 64]}]


@pytest.mark.parametrize(
    ("model", "entries"),
    [(open_model, options("0")), (small_models.add, None)],
    ids=["switched off", "nothing to gain"],
)
def test_no_plans_for_shapes(new_session, model, entries):
    assert new_session(model(), entries, providers=["wasm"])._opened.shape_plans is None


def test_a_wrong_entry_is_an_error(new_session):
    with pytest.raises(InvalidArgument, match="specialize_shapes"):
        new_session(open_model(), options("maybe"), providers=["wasm"])


def test_memory_is_told_by_provider(new_session, provider):
    session = new_session(open_model(), providers=[provider])
    for rows in (1, 50):
        check(session, rows)
    told = session.memory()
    assert set(told) == {provider, "wasm"}
    x = 50 * 64 * 4
    assert WEIGHTS.nbytes <= told[provider]["weights"] < WEIGHTS.nbytes + 1024
    assert 2 * x <= told[provider]["peak"] <= 6 * x
    assert told[provider]["peak"] <= told[provider]["arena"] + 256


def test_memory_of_plans_for_shapes_is_the_sessions_too(new_session, provider):
    session = new_session(open_model(), options("first"), providers=[provider])
    check(session, 8)
    one = session.memory()[provider]
    check(session, 40)
    two = session.memory()[provider]
    assert WEIGHTS.nbytes <= two["weights"] < WEIGHTS.nbytes + 4096, "plans share the weights"
    assert two["peak"] >= 5 * one["peak"]
    if provider == "wasm":
        assert two["arena"] == two["peak"]
    else:
        assert two["arena"] >= one["arena"] + two["peak"], "each plan has an arena"


def test_what_kernels_make_of_weights_is_weights(new_session):
    """Winograd's convolutions keep transformed weights, sixteen numbers for nine."""
    feed, weights = {"x": np.ones((1, 64, 32, 32), np.float32)}, np.ones((64, 64, 3, 3), np.float32)
    text = "g (float[1,64,32,32] x) => (float[1,64,32,32] y) { y = Conv<kernel_shape=[3,3], pads=[1,1,1,1]>(x, w) }"
    session = new_session(parse(text, {"w": weights}), providers=["wasm"])
    session.run(None, feed)
    first = session.memory()["wasm"]
    session.run(None, feed)
    assert session.memory()["wasm"] == first, "nothing more is kept, nor needed"
    assert first["weights"] >= weights.nbytes * (1 + 16 / 9)
    assert first["peak"] < 5 * feed["x"].nbytes


def test_a_file_that_claims_the_weights_of_another(new_session, provider, tmp_path):
    """Sessions of one file share its weights; another file's plan cannot claim them."""
    text = "g (float[64,64] x) => (float[64,64] y) { y = Add(x, w) }"
    model = parse(text, {"w": WEIGHTS}).SerializeToString()
    (file,) = export(model, tmp_path / "net.pyort")
    data = file.read_bytes()
    header, start = read_header(data)
    at = data.index(WEIGHTS.tobytes()) - start
    others = np.full_like(WEIGHTS, 77).tobytes()
    sums = [(offset, zlib.crc32(others) if offset == at else crc) for offset, crc in header.checksums]
    forged = dataclasses.replace(header, checksums=sums).tobytes() + data[start:].replace(WEIGHTS.tobytes(), others)
    (tmp_path / "forged.pyort").write_bytes(forged)
    zeros = {"x": np.zeros((64, 64), np.float32)}
    for given, expected, shared in (
        (file, WEIGHTS, False), (tmp_path / "forged.pyort", 77, False), (forged, 77, False), (model, WEIGHTS, False),
        (file, WEIGHTS, True),
    ):  # fmt: skip
        session = new_session(given, providers=[provider])
        np.testing.assert_array_equal(session.run(None, zeros)[0], np.broadcast_to(expected, (64, 64)))
        assert (session.memory()[provider]["shared"] >= WEIGHTS.nbytes) == shared
