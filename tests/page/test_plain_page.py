"""Resolve, commit and replay in a plain page: correct each time, without making anything twice."""

import numpy as np
import onnx
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from plain_page import GpuTensor, PageError
from text_form import parse

from py_ort.schema.gen.ErrorCode import ErrorCode


def model(text: str, **constants: np.ndarray) -> onnx.ModelProto:
    """A model from ONNX's text form, with names like Exp_b for its nodes."""
    made = parse(text, constants)
    for node in made.graph.node:
        node.name = f"{node.op_type}_{' '.join(node.output)}"
    return made


def randn(*dims: int) -> np.ndarray:
    return np.random.default_rng(sum(dims)).standard_normal(dims).astype(np.float32)


CHAIN_TEXT = "g (float[n,4] x) => (float[n,4] y) { a = Relu(x)  b = Exp(a)  c = Add(a, b)  y = Neg(c) }"
CHAIN = model(CHAIN_TEXT)


@pytest.fixture
def load(plain_page):
    """Load models in the page, and release their sessions after the test."""
    sessions = []

    def start(*arguments, **options):
        sessions.append(plain_page.load(*arguments, **options))
        return sessions[-1]

    yield start
    for session in sessions:
        session.release()


def chain(x: np.ndarray) -> np.ndarray:
    a = np.maximum(x, 0)
    return -(a + np.exp(a))


def test_the_second_run_of_a_shape_makes_nothing(load):
    session = load(CHAIN)
    for rows, replayed in [(3, False), (3, True), (700, False), (3, True), (700, True), (0, False), (0, True)]:
        x = randn(rows, 4)
        ran = session.run({"x": x})
        assert_allclose(ran.outputs["y"], chain(x), rtol=1e-5)
        assert ran.info["replayed"] == replayed, rows
        assert ran.info["segments"] == 1
        if replayed:
            assert ran.made == 0


def test_memory_is_shared_along_a_chain(load, plain_page):
    nodes = "  ".join(f"t{i + 1} = Neg(t{i})" for i in range(12))
    session = load(model(f"g (float[256,256] t0) => (float[256,256] t12) {{ {nodes} }}"))
    x = randn(256, 256)
    assert_array_equal(session.run({"t0": x}).outputs["t12"], x)
    arena = plain_page.call("stats")["sessions"][str(session.id)]["arena_bytes"]
    assert arena == x.nbytes  # each output is in the place of its input


@pytest.mark.parametrize("on_cpu", [[], ["Exp_b"]], ids=["one segment", "two segments"])
def test_pipelines_are_compiled_at_creation_when_shapes_are_known(load, on_cpu):
    session = load(model(CHAIN_TEXT.replace("[n,4]", "[5,7]")), on_cpu)
    x = randn(5, 7)
    ran = session.run({"x": x})
    assert_allclose(ran.outputs["y"], chain(x), rtol=1e-5)
    assert ran.info["counters"]["pipelines"] == 0
    assert ran.info["counters"]["dispatches"] == 4 - len(on_cpu)


def test_a_cpu_node_between_gpu_nodes_makes_two_segments(load, plain_page):
    session = load(CHAIN, on_cpu=["Exp_b"])
    for i in range(3):
        x = randn(5, 4) + i
        ran = session.run({"x": x})
        assert_allclose(ran.outputs["y"], chain(x), rtol=1e-5)
        assert ran.info["segments"] == 2
        assert ran.info["counters"]["suspensions"] == 1
        assert ran.info["replayed"] == (i > 0)
        if i > 0:
            assert ran.made == 0
    assert plain_page.call("stats")["suspending_imports"] == ["jsepCopyAsync"]


def test_shapes_that_depend_on_contents(load):
    text = """g (float[2] x) => (float[k,l] y) {
        a = Neg(x)  n = Cast<to=7>(a)  c = ConstantOfShape<value = float[1] {1.0}>(n)  y = Neg(c) }"""
    session = load(model(text))
    for shape in [(2, 3), (2, 3), (700, 5), (0, 4), (2, 3)]:
        ran = session.run({"x": -np.array(shape, np.float32)})
        assert_array_equal(ran.outputs["y"], -np.ones(shape, np.float32))
        assert ran.info["segments"] == 2


def test_host_inputs_that_change_are_noticed(load):
    session = load(model("g (float[6] x, int64[2] s) => (y) { a = Neg(x)  y = Reshape(a, s) }"))
    for shape in [(2, 3), (2, 3), (3, 2), (6, 1)]:
        ran = session.run({"x": randn(6), "s": np.array(shape, np.int64)})
        assert_array_equal(ran.outputs["y"], -randn(6).reshape(shape))


def test_integers_and_bools_keep_their_types(load):
    text = """t (float[n] x, int64[n] i, bool[n] b) => (float[n] g, bool[n] c, int64[n] i) {
        f = Gather(x, i)  g = Neg(f)  c = Not(b) }"""
    session = load(model(text))
    x, i, b = randn(3), np.array([1, -1, 0]), np.array([True, False, True])
    for _ in range(2):
        ran = session.run({"x": x, "i": i, "b": b})
        assert ran.info["counters"]["dispatches"] == 3
        assert_array_equal(ran.outputs["g"], -x[i], strict=True)
        assert_array_equal(ran.outputs["c"], ~b, strict=True)
        assert_array_equal(ran.outputs["i"], i, strict=True)
    with pytest.raises(PageError, match="does not fit the 32 bits"):
        session.run({"x": x, "i": np.array([0, 0, 2**40]), "b": b})


def test_weights_arrive_whole(load):
    """Several ranges and chunks, weights that cross them, and integers that are widened on the way."""
    sizes = [3, 1_000_003, 1, 700_001, 64]
    constants = {f"w{i}": randn(size) for i, size in enumerate(sizes)} | {"k": np.arange(-40_000, 40_000)}
    nodes = "  ".join(f"{name}_y = Neg({name})" for name in constants)
    names = ", ".join(f"{name}_y" for name in constants)
    session = load(model(f"g (float[1] x) => ({names}, float[1] y) {{ {nodes}  y = Neg(x) }}", **constants))
    outputs = session.run({"x": randn(1)}).outputs
    for name, array in constants.items():
        assert_array_equal(outputs[f"{name}_y"], -array, strict=True)


def test_outputs_stay_on_the_gpu_and_are_fed_again(load):
    session = load(CHAIN)
    x = randn(3, 4)
    kept = session.run({"x": x}, outputs_on_gpu=["y"]).outputs["y"]
    assert isinstance(kept, GpuTensor)
    for again in range(3):
        ran = session.run({"x": kept})
        assert_allclose(ran.outputs["y"], chain(chain(x)), rtol=1e-5)
        assert ran.info["counters"]["uploads"] == 0
        assert ran.info["replayed"] == (again > 0)
    with pytest.raises(PageError, match="no GPU buffer 999999"):
        session.run({"x": GpuTensor("float32", [3, 4], 999999)})


def test_a_profile_has_a_row_for_each_dispatch(load):
    session = load(CHAIN, on_cpu=["Exp_b"])
    for _ in range(2):
        ran = session.run({"x": randn(3, 4)}, profile="dispatches")
        assert_allclose(ran.outputs["y"], chain(randn(3, 4)), rtol=1e-5)
        rows = ran.info["profile"]
        assert len(rows) == ran.info["counters"]["dispatches"] == 3
        assert all(row["ms"] >= 0 and row["kernel"] for row in rows)
    assert not session.run({"x": randn(3, 4)}).info.get("profile")


def test_a_profile_of_passes_has_those_of_each_segment(load):
    for on_cpu, passes in ([], 1), (["Exp_b"], 2):
        session = load(CHAIN, on_cpu)
        for _ in range(2):
            ran = session.run({"x": randn(3, 4)}, profile="passes")
            assert_allclose(ran.outputs["y"], chain(randn(3, 4)), rtol=1e-5)
            gpu = ran.info["gpu"]
            assert gpu["passes"] == passes == ran.info["segments"] and ran.info["counters"]["dispatches"] > passes
            assert 0 < gpu["ms"] <= gpu["span_ms"] <= ran.info["run_ms"]
            assert (gpu["ms"] < gpu["span_ms"]) == (passes > 1), "between segments the GPU waits"
            assert ran.info["timeline"] and "profile" not in ran.info
        for profile in ("dispatches", None):
            assert "gpu" not in session.run({"x": randn(3, 4)}, profile=profile).info


def test_runs_at_once_do_not_mix(load, plain_page):
    for on_cpu in ([], ["Exp_b"]):
        session = load(CHAIN, on_cpu)
        xs = [randn(2 + i % 3, 4) * i for i in range(9)]
        for x, ran in zip(xs, plain_page.run_at_once(session, [{"x": x} for x in xs]), strict=True):
            assert_allclose(ran.outputs["y"], chain(x), rtol=1e-5)


def test_old_recordings_go(load, plain_page):
    session = load(CHAIN)
    for rows in range(1, 25):
        session.run({"x": randn(rows * 300, 4)})
    stats = plain_page.call("stats")["sessions"][str(session.id)]
    assert stats["recordings"] == 16
    largest = 24 * 300 * 16
    assert stats["arena_bytes"] < 16 * 4 * largest
    assert session.run({"x": randn(300, 4)}).info["replayed"] is False


@pytest.mark.parametrize(
    ("feeds", "text"),
    [
        ({}, 'no feed for the input "x"'),
        ({"x": randn(1, 4), "z": randn(1)}, 'no input named "z"'),
        ({"x": np.ones((1, 4), np.int32)}, "wants float32, got int32"),
        ({"x": randn(1, 5)}, r"wants shape \[\?,4\], got \[1,5\]"),
        ({"x": randn(4)}, r"wants shape \[\?,4\], got \[4\]"),
    ],
    ids=["missing", "extra", "dtype", "dim", "rank"],
)
def test_wrong_feeds(load, feeds, text):
    session = load(CHAIN)
    with pytest.raises(PageError, match=text) as error:
        session.run(feeds)
    assert error.value.code == ErrorCode.invalid_argument


def test_a_kernel_that_fails_names_its_node_and_the_session_goes_on(load):
    session = load(model("g (float[n] x, float[m] z) => (y) { a = Neg(x)  y = Add(a, z) }"))
    with pytest.raises(PageError) as error:
        session.run({"x": randn(3), "z": randn(2)})
    assert error.value.code == ErrorCode.runtime_exception
    assert error.value.place["opType"] == "Add"
    assert error.value.place["node"] == "Add_y"
    assert_array_equal(session.run({"x": randn(3), "z": randn(3)}).outputs["y"], np.zeros(3, np.float32))


def test_a_cancelled_run_says_so(load):
    session = load(CHAIN, on_cpu=["Exp_b"])
    x = randn(3, 4)
    with pytest.raises(PageError) as error:
        for _ in range(20):
            session.run({"x": x}, cancel_after=0)
    assert error.value.code == ErrorCode.cancelled
    assert_allclose(session.run({"x": x}).outputs["y"], chain(x), rtol=1e-5)


def test_a_released_session_is_gone(plain_page):
    before = plain_page.call("stats")["gpu_bytes"]
    session = plain_page.load(CHAIN)
    session.run({"x": randn(3, 4)})
    session.release()
    assert plain_page.call("stats")["gpu_bytes"] == before


def test_a_lost_device_fails_its_sessions_and_a_new_one_works(plain_page):
    session = plain_page.load(CHAIN)
    x = randn(3, 4)
    session.run({"x": x})
    plain_page.call("loseDevice")
    with pytest.raises(PageError, match="create the session again") as error:
        session.run({"x": x})
    assert error.value.code == ErrorCode.device_lost
    again = plain_page.load(CHAIN)
    assert_allclose(again.run({"x": x}).outputs["y"], chain(x), rtol=1e-5)
    again.release()


def test_a_device_lost_in_the_middle_fails_the_runs_under_way(plain_page):
    for on_cpu in ([], ["Exp_b"]):
        session = plain_page.load(CHAIN, on_cpu)
        x = randn(1000, 4)
        session.run({"x": x})
        outcomes = plain_page.lose_device_meanwhile(session, {"x": x}, 4)
        assert set(outcomes) <= {"done", ErrorCode.device_lost}, outcomes
        assert ErrorCode.device_lost in outcomes


def test_a_shader_that_does_not_compile_shows_the_line(load, plain_page):
    with pytest.raises(PageError, match=r"nonsense__any does not compile(.|\n)*nobody(.|\n)*y\[0\] = nobody;") as error:
        plain_page.call("compileNonsense")
    assert error.value.code == ErrorCode.shader


def test_an_uncaptured_gpu_error_fails_the_run(load, plain_page):
    session = load(CHAIN)
    plain_page.call("provokeGpuError")
    with pytest.raises(PageError, match=r"(?s)WebGPU: .*provoked") as error:
        session.run({"x": randn(3, 4)})
    assert error.value.code == ErrorCode.shader
    assert_allclose(session.run({"x": randn(3, 4)}).outputs["y"], chain(randn(3, 4)), rtol=1e-5)
