"""The layout pass: the remaining transposes, and unchanged results."""

from __future__ import annotations

import numpy as np
import provisional
import pytest
from graphs import check_equal, compiled, operators, parse, random_feeds

from py_ort.compiler import compile_model
from py_ort.compiler.layout.rules import rule
from py_ort.compiler.layout.windows import WINDOWS
from py_ort.ir.operators import operators as declared_operators
from py_ort.providers.manifest import Manifest

RNG = np.random.default_rng(3)


def _f(*shape: int) -> np.ndarray:
    return (RNG.standard_normal(shape) * 0.5).astype(np.float32)


def _i(*items: int) -> np.ndarray:
    return np.array(items, np.int64)


HEAD = "c = Conv<pads=[1,1,1,1]>(x, w)"
TAIL = "y = Conv<pads=[1,1,1,1]>(t, v)"
W = {"w": _f(4, 3, 3, 3), "v": _f(2, 4, 3, 3)}
# id: (nodes between two convolutions, from c to t; constants). The two transposes are those of input and output.
BETWEEN = {
    "elementwise": ("t = Sin(c)", {}),
    "channel constants": ("m = Sin(c)  n = Mul(m, k)  t = Cos(n)", {"k": _f(4, 1, 1)}),
    "column constants": ("t = Mul(c, k)", {"k": _f(6)}),
    "full constants": ("t = Add(c, k)", {"k": _f(1, 4, 8, 6)}),
    "softmax over channels": ("t = Softmax<axis=1>(c)", {}),
    "reduce and broadcast": ("m = ReduceMean<keepdims=1>(c, a)  t = Mul(c, m)", {"a": _i(2, 3)}),
    "concat and split": ("a, b = Split<axis=1>(c, s)  t = Concat<axis=1>(b, a)", {"s": _i(1, 3)}),
    "concat of height": ("t = Concat<axis=-2>(c, c)", {}),
    "slice": ("t = Slice(c, s, e, a)", {"s": _i(1, 2), "e": _i(7, 6), "a": _i(2, -1)}),
    "pad": ("t = Pad(c, p)", {"p": _i(0, 0, 1, 2, 0, 0, 0, 1)}),
    "pad of named axes": ('t = Pad<mode="edge">(c, p, , a)', {"p": _i(1, 2), "a": _i(3)}),
    "resize by scales": (
        't = Resize<mode="nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric">(c, , s)',
        {"s": np.float32([1, 1, 2, 3])},
    ),
    "resize to sizes": ('t = Resize<mode="linear">(c, , , s)', {"s": _i(1, 4, 5, 9)}),
    "resize of named axes": ('t = Resize<mode="linear", axes=[3,2]>(c, , s)', {"s": np.float32([2, 3])}),
    "transposes that cancel": ("a = Transpose<perm=[0,2,3,1]>(c)  b = Sin(a)  t = Transpose<perm=[0,3,1,2]>(b)", {}),
    "squeeze and back": ("m = ReduceMean<keepdims=0>(c, a)  n = Unsqueeze(m, a)  t = Mul(c, n)", {"a": _i(2)}),
    "expand": ("m = ReduceMean(c, a)  t = Expand(m, s)", {"a": _i(3), "s": _i(1, 4, 8, 5)}),
    "tile": ("t = Tile(c, r)", {"r": _i(1, 1, 2, 1)}),
    "gather a row": ("m = Gather<axis=2>(c, i)  n = Unsqueeze(m, a)  t = Mul(c, n)", {"i": np.int64(3), "a": _i(2)}),
    "gather rows": ("t = Gather<axis=2>(c, i)", {"i": _i(3, 1, 5)}),
    "cumsum": ("t = CumSum(c, a)", {"a": np.int32(3)}),
    "where": ("z = Greater(c, k)  t = Where(z, c, k)", {"k": np.float32(0.1)}),
    "squeeze-and-excite": (
        "p = GlobalAveragePool(c)  r = Conv(p, w1)  s = Relu(r)  u = Conv(s, w2)  g = HardSigmoid(u)  t = Mul(c, g)",
        {"w1": _f(2, 4, 1, 1), "w2": _f(4, 2, 1, 1)},
    ),
    "pools": ("t = MaxPool<kernel_shape=[3,3], strides=[2,2], ceil_mode=1>(c)", {}),
    "average pool": ("t = AveragePool<kernel_shape=[3,2], pads=[1,0,1,1], count_include_pad=1>(c)", {}),
}


@pytest.mark.parametrize("case", BETWEEN)
def test_only_the_ends_are_transposed(case: str) -> None:
    middle, constants = BETWEEN[case]
    model = parse(f"g (float[1,3,8,6] x) => (float[a,b,c,d] y) {{ {HEAD}  {middle}  {TAIL} }}", {**W, **constants})
    result = check_equal(model, tolerance=2e-4)
    assert operators(result)["Transpose"] == 2, operators(result)
    assert operators(result)["nhwc.Conv"] >= 2


@pytest.mark.parametrize("case", BETWEEN)
def test_with_unknown_sizes_too(case: str) -> None:
    middle, constants = BETWEEN[case]
    model = parse(f"g (float[n,3,h,w] x) => (float[a,b,c,d] y) {{ {HEAD}  {middle}  {TAIL} }}", {**W, **constants})
    result = check_equal(model, feeds=random_feeds(model, {"n": 1, "h": 8, "w": 6}), tolerance=2e-4)
    assert operators(result)["Transpose"] == 2, operators(result)


@pytest.mark.parametrize("sizes", ["1,3,8,6", "n,3,h,w"])
def test_one_channel_needs_no_transpose_at_the_end(sizes: str) -> None:
    model = parse(
        f"g (float[{sizes}] x) => (float[a,b,c,d] y) {{ {HEAD}  y = Conv(c, v) }}", {"w": W["w"], "v": _f(1, 4, 1, 1)}
    )
    result = check_equal(model, feeds=random_feeds(model, {"n": 2, "h": 8, "w": 6}), tolerance=2e-4)
    assert operators(result)["Transpose"] == 1


@pytest.mark.parametrize("sizes", ["2,3,8,6", "n,3,h,w"])
def test_a_classifier_s_head(sizes: str) -> None:
    model = parse(
        f"g (float[{sizes}] x) => (float[a,b] y) {{ {HEAD}  p = GlobalAveragePool(c)  f = Flatten(p)  y = "
        f"Gemm<transB=1>(f, k, b) }}",
        {"w": W["w"], "k": _f(5, 4), "b": _f(5)},
    )
    result = check_equal(model, feeds=random_feeds(model, {"n": 2, "h": 8, "w": 6}), tolerance=2e-4)
    assert operators(result)["Transpose"] == 1


def test_a_row_of_text_becomes_a_sequence_without_transposes() -> None:
    """[N, C, 1, W] → [N, W, C], as recognizers of text do."""
    model = parse(
        """g (float[n,3,4,w] x) => (float[a,b,c] y) { c = Conv(x, k)  s = Squeeze(c, two)  t =
        Transpose<perm=[0,2,1]>(s)  y = MatMul(t, m) }""",
        {"k": _f(4, 3, 4, 1), "two": _i(2), "m": _f(4, 5)},
    )
    result = check_equal(model, feeds=random_feeds(model, {"n": 2, "w": 6}), tolerance=2e-4)
    assert operators(result)["Transpose"] == 1


def test_reshape_to_a_sequence_and_back() -> None:
    model = parse(
        """g (float[n,3,8,6] x) => (float[a,b,c,d] y) {
            c = Conv<pads=[1,1,1,1]>(x, w)  r = Reshape(c, flat)  t = Transpose<perm=[0,2,1]>(r)  m = MatMul(t, k)
            b = Transpose<perm=[0,2,1]>(m)  u = Reshape(b, square)  y = Conv<pads=[1,1,1,1]>(u, v) }""",
        {**W, "flat": _i(0, 4, 48), "square": _i(0, 4, 8, 6), "k": _f(4, 4)},
    )
    result = check_equal(model, feeds=random_feeds(model, {"n": 2}), tolerance=2e-4)
    assert operators(result)["Transpose"] == 2


def test_a_channel_shuffle_is_one_transpose() -> None:
    model = parse(
        f"""g (float[2,3,8,6] x) => (float[a,b,c,d] y) {{ {HEAD}
            r = Reshape(c, split)  s = Transpose<perm=[0,2,1,3,4]>(r)  t = Reshape(s, joined)  {TAIL} }}""",
        {**W, "split": _i(2, 2, 2, 8, 6), "joined": _i(2, 4, 8, 6)},
    )
    result = check_equal(model, tolerance=2e-4)
    assert operators(result)["Transpose"] == 3


@pytest.mark.parametrize(
    "between",
    [
        "b = Sin(a)",
        "b = Slice(a, one, end, three)",
        "u = Transpose<perm=[0,2,3,1]>(z)  b = Concat<axis=3>(a, u)",
        "m = Mul(a, k)  b = Softmax(m)",
    ],
    ids=["elementwise", "slice", "concat", "constants and softmax"],
)
@pytest.mark.parametrize("sizes", ["2,3,4,5", "n,3,h,w"])
def test_transposes_cancel_without_windows(between: str, sizes: str) -> None:
    text = f"""g (float[{sizes}] x, float[{sizes}] z) => (float[a,b,c,d] y)
        {{ a = Transpose<perm=[0,2,3,1]>(x)  {between}  y = Transpose<perm=[0,3,1,2]>(b) }}"""
    model = parse(text, {"one": _i(1), "end": _i(3), "three": _i(3), "k": _f(3)})
    result = compiled(model)
    assert "Transpose" not in operators(result)
    check_equal(model, result, feeds={"x": _f(2, 3, 4, 5), "z": _f(2, 3, 4, 5)}, tolerance=1e-5)


def test_one_spatial_axis_becomes_two() -> None:
    model = parse(
        """g (float[n,3,l] x) => (float[a,b,c] y) {
            c = Conv<pads=[1,1], strides=[2]>(x, w, b)  r = Relu(c)  p = MaxPool<kernel_shape=[2]>(r)  y =
            ConvTranspose<strides=[2]>(p, v) }""",
        {"w": _f(4, 3, 3), "b": _f(4), "v": _f(4, 2, 2)},
    )
    result = check_equal(model, feeds=random_feeds(model, {"n": 2, "l": 11}), tolerance=2e-4)
    found = operators(result)
    assert (found["nhwc.Conv"], found["nhwc.MaxPool"], found["nhwc.ConvTranspose"], found["Transpose"]) == (1, 1, 1, 2)


def test_three_spatial_axes_stay() -> None:
    model = parse("g (float[1,2,4,4,4] x) => (float[a,b,c,d,e] y) { y = Conv(x, w) }", {"w": _f(3, 2, 2, 2, 2)})
    assert operators(check_equal(model)) == {"Conv": 1}


def test_shapes_of_permuted_values_are_those_of_the_model() -> None:
    model = parse(
        f"""g (float[n,3,h,w] x) => (int64[k] y, float[a,b,c,d] z) {{ {HEAD}  y = Shape(c)
            s = Shape<start=1, end=3>(c)  t = Sin(c)  q = Conv<pads=[1,1,1,1]>(t, v)  f = Cast<to=1>(s)  m =
            ReduceSum<keepdims=0>(f)  z = Add(q, m) }}""",
        W,
    )
    check_equal(model, feeds=random_feeds(model, {"n": 2, "h": 8, "w": 6}), tolerance=2e-4)


def test_max_pool_with_indices_stays_in_nchw() -> None:
    model = parse(
        f"g (float[1,3,8,6] x) => (float[a,b,c,d] y, int64[a,b,c,d] i) {{ {HEAD}  y, i = "
        f"MaxPool<kernel_shape=[2,2]>(c) }}",
        W,
    )
    assert operators(check_equal(model, tolerance=2e-4))["MaxPool"] == 1


def test_a_branch_reads_permuted_outer_values() -> None:
    model = parse(
        f"""g (float[1,3,8,6] x, bool p) => (float[a,b,c,d] y) {{ {HEAD}
            y = If (p) <then_branch = yes () => (float[a,b,c,d] o) {{ o = Sin(c) }}, else_branch = no () =>
            (float[a,b,c,d] q) {{ q = Conv<pads=[1,1,1,1]>(c, u) }}> }}""",
        {**W, "u": _f(4, 4, 3, 3)},
    )
    for flag in (True, False):
        feeds = {"x": _f(1, 3, 8, 6), "p": np.array(flag)}
        check_equal(model, feeds=feeds, tolerance=2e-4)


@pytest.mark.parametrize(
    "control",
    [
        """d = Loop (n, p, c) <body = b (int64 i, bool g, float[A,B,C,D] a) => (bool h, float[A,B,C,D] o)
            { h = Identity(g)  o = Mul(a, c) }>""",
        """d = If (p) <then_branch = yes () => (float[A,B,C,D] o) { o = Sin(x) },
            else_branch = no () => (float[A,B,C,D] q) { q = Mul(c, c) }>  t = Add(c, d)""",
    ],
    ids=["a loop without readers", "a branch not taken"],
)
def test_a_subgraph_that_is_gone_reads_nothing(control: str) -> None:
    text = f"g (float[1,3,8,6] x) => (float[a,b,c,d] y) {{ c = Conv(x, w)  {control}  y = Relu(c) }}"
    model = parse(text, {"w": _f(3, 3, 1, 1), "n": np.int64(3), "p": np.bool_(True)})
    assert operators(check_equal(model, tolerance=2e-4)) == {"Transpose": 2, "nhwc.Conv": 1}


def test_nchw_may_be_preferred() -> None:
    model = parse(f"g (float[1,3,8,6] x) => (float[a,b,c,d] y) {{ {HEAD}  t = Relu(c)  {TAIL} }}", W)
    result = check_equal(model, compiled(model, preferred_layout="NCHW"), tolerance=2e-4)
    assert operators(result) == {"Conv": 2}


def test_what_else_the_nhwc_domain_has_goes_there() -> None:
    """A kernel in the manifest is enough: no list in the compiler names it."""
    text = f"g (float[1,3,8,6] x) => (float[a,b,c,d] y) {{ {HEAD}  t = LRN<size=3>(c)  {TAIL} }}"
    model = parse(text, W)
    assert operators(compiled(model))["Transpose"] == 4
    known = provisional.manifests()
    known["webgpu"] = Manifest(
        "webgpu", {**known["webgpu"].kernels, (provisional.NHWC, "LRN"): [frozenset({"float32"})]}
    )
    found = operators(compile_model(model.SerializeToString(), manifests=known))
    assert (found["Transpose"], found["nhwc.LRN"]) == (2, 1)


HEADS = "q, k, u = Split<axis=2, num_outputs=3>(r)  a = Transpose<perm=[0,1,3,2]>(q)"
SPLIT_HEADS = f"c = Conv(x, w)  r = Reshape(c, heads)  {HEADS}"


BY_ROWS = "v = Transpose<perm=[0,1,3,2]>(u)  o = MatMul(s, v)  t = Transpose<perm=[0,1,3,2]>(o)"
BY_COLUMNS = "z = Transpose<perm=[0,1,3,2]>(s)  t = MatMul(u, z)"


@pytest.mark.parametrize("sizes", ["1,3,4,6", "n,3,4,6"])
@pytest.mark.parametrize("values", [BY_ROWS, BY_COLUMNS], ids=["by rows", "by columns"])
def test_heads_of_attention_over_channels(sizes: str, values: str) -> None:
    """Heads are channels of a convolution, and the result goes to the next one: rows throughout."""
    model = parse(
        f"""g (float[{sizes}] x) => (float[a,b,c,d] y) {{ {SPLIT_HEADS}
        m = MatMul(a, k)  s = Softmax<axis=-1>(m)  {values}  p = Reshape(t, channels)  y = Conv(p, w2) }}""",
        {"w": _f(24, 3, 1, 1), "w2": _f(2, 8, 1, 1), "heads": _i(-1, 2, 12, 24), "channels": _i(-1, 8, 4, 6)},
    )
    result = check_equal(model, feeds=random_feeds(model, {"n": 2}), tolerance=2e-4)
    assert operators(result) == {"Transpose": 2, "nhwc.Conv": 2, "Reshape": 5, "Split": 1, "Attention": 1}


def test_heads_that_are_there_by_heads_stay() -> None:
    """Rows would cost as many transposes as they save."""
    model = parse(
        """g (float[1,2,6,4] q, float[1,2,5,4] k, float[1,2,5,4] v) => (float[a,b,c,d] y) {
        t = Transpose<perm=[0,1,3,2]>(k)  m = MatMul(q, t)  s = Softmax<axis=-1>(m)  y = MatMul(s, v) }"""
    )
    assert operators(check_equal(model)) == {"Attention": 1}


def test_rows_of_a_product_lie_in_any_order() -> None:
    """PyTorch's attention has positions first, then batches."""
    model = parse(
        """g (float[n,s,4] x) => (float[a,b,c] y) {
        t = Transpose<perm=[1,0,2]>(x)  m = MatMul(t, w)  p = Relu(m)  y = Transpose<perm=[1,0,2]>(p) }""",
        {"w": _f(4, 5)},
    )
    result = check_equal(model, feeds=random_feeds(model, {"n": 2, "s": 3}))
    assert operators(result) == {"MatMul": 1}


def test_a_transpose_that_moves_nothing_is_a_reshape() -> None:
    model = parse("g (float[1,5,4] x) => (float[a,b,c] y) { t = Sin(x)  y = Transpose<perm=[1,0,2]>(t) }")
    assert operators(check_equal(model)) == {"Sin": 1, "Reshape": 1}


def test_heads_that_lie_in_rows_but_for_sizes_of_one() -> None:
    """nn.MultiheadAttention for a batch of one: positions, batch * heads."""
    heads = "  ".join(f"{n}r = Reshape({n}, flat)  {n}t = Transpose<perm=[1,0,2]>({n}r)" for n in "qkv")
    model = parse(
        f"""g (float[5,1,8] q, float[5,1,8] k, float[5,1,8] v) => (float[a,b,c] y) {{ {heads}
        qh = Reshape(qt, heads)  kh = Reshape(kt, heads)  vh = Reshape(vt, heads)
        kx = Transpose<perm=[0,1,3,2]>(kh)  m = MatMul(qh, kx)  s = Softmax<axis=-1>(m)  o = MatMul(s, vh)
        t = Transpose<perm=[2,0,1,3]>(o)  y = Reshape(t, back) }}""",
        {"flat": _i(5, 2, 4), "heads": _i(1, 2, 5, 4), "back": _i(5, 1, 8)},
    )
    assert operators(check_equal(model)) == {"Attention": 1, "Reshape": 4}


@pytest.mark.parametrize("names", ["o, p", "p, o"])
def test_channels_shuffled_between_convolutions(names: str) -> None:
    """Either part of a Split may go to a convolution; the shuffle is one transpose, in channels last."""
    model = parse(
        f"""g (float[1,3,8,6] x) => (float[a,b,c,d] y) {{ {HEAD}  r = Reshape(c, groups)
        t = Transpose<perm=[0,2,1,3,4]>(r)  f = Reshape(t, flat)  {names} = Split<axis=1, num_outputs=2>(f)
        e = Conv(o, v)  y = Concat<axis=1>(p, e) }}""",
        {"w": _f(4, 3, 3, 3), "v": _f(2, 2, 1, 1), "groups": _i(1, 2, 2, 8, 6), "flat": _i(1, 4, 8, 6)},
    )
    assert operators(check_equal(model, tolerance=2e-4))["Transpose"] == 3


@pytest.mark.parametrize("axis", [None, 1, -1])
def test_what_is_quantized_lies_as_it_did(axis: int | None) -> None:
    """One scale for all, or one for each channel or column."""
    count, given = (1, "") if axis is None else ((4, "<axis=1>") if axis == 1 else (6, "<axis=-1>"))
    scale = np.linspace(0.02, 0.05, count, dtype=np.float32)
    model = parse(
        f"""g (float[1,3,8,6] x) => (float[a,b,c,d] y) {{ {HEAD}  q = QuantizeLinear{given}(c, scale, zero)
        t = DequantizeLinear{given}(q, scale, zero)  {TAIL} }}""",
        {
            **W,
            "scale": scale[0] if axis is None else scale,
            "zero": np.full(count, 3, np.uint8)[slice(None) if axis else 0],
        },
    )
    found = operators(check_equal(model, tolerance=2e-4))
    assert found == {"Transpose": 2, "nhwc.Conv": 2, "QuantizeLinear": 1, "DequantizeLinear": 1}


def test_a_value_of_unknown_rank_that_is_read_twice() -> None:
    """GroupNormalization's output has no shape here, and its channels-last form has none at the end."""
    constants = {"k": np.ones(1, np.float32), "w": _f(1, 1, 1, 1)}
    text = (
        "g (float[2,1,6,4] x) => (float[4,1,6,4] y) "
        "{ c = Conv(x, w)  a = GroupNormalization<num_groups=1>(c, k, k)  y = Concat<axis=0>(a, a) }"
    )
    model = parse(text, constants)
    compile_model(model.SerializeToString(), providers=["wasm"])


def test_three_reshapes_in_a_row_are_one() -> None:
    """Each reshape that is skipped may follow another."""
    constants = {"pads": _i(1, 1, 0, 1, 1, 1, 0, 0), "k": _i(3), "f": _i(4)}
    text = "{ p = Pad(x, pads)  a = Unsqueeze(p, k)  b = Squeeze(a, k)  y = Reshape(b, f) }"
    result = compiled(parse(f"g (float[n,1,h,w] x) => (float[m] y) {text}", constants), providers=["wasm"])
    assert operators(result) == {"Pad": 1, "Reshape": 1}


def test_a_permutation_of_another_rank() -> None:
    """Only folding finds this rank: the kernel reports the error."""
    text = (
        "g (float[1,1,4,4] x) => (y) { c = Conv(x, w)  s = Shape(c)  t = Concat<axis=0>(one, s)  r = Reshape(c, t) "
        " z = Transpose<perm=[0,2,3,1]>(r)  y = Neg(z) }"
    )
    model = parse(text, {"w": _f(1, 1, 1, 1), "one": _i(1)})
    result = compiled(model, providers=["wasm"])
    assert operators(result)["Transpose"] == 1


@pytest.mark.parametrize("level", ["disabled", "basic", "extended", "all"])
@pytest.mark.parametrize("layout", [None, "NHWC", "NCHW"])
def test_a_layout_that_is_named_counts_at_every_level(level: str, layout: str | None) -> None:
    model = parse(f"g (float[1,3,8,6] x) => (float[1,2,8,6] y) {{ {HEAD}  t = Sin(c)  {TAIL} }}", W)
    result = compiled(model, level=level, preferred_layout=layout)
    last = layout == "NHWC" or (layout is None and level == "all")
    assert operators(result).get("nhwc.Conv" if last else "Conv") == 2
    check_equal(model, result)


def test_every_word_has_a_rule() -> None:
    """An unknown rule would leave an operator between transposes without an error."""
    assert {declared.layout for declared in declared_operators().values()} <= {"", *rule, *WINDOWS}
