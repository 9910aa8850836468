"""Models that test_fusions.py compiles, and the operators that are left of them."""

from __future__ import annotations

import numpy as np

RNG = np.random.default_rng(7)


def _f(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


W, DW, B = _f(4, 3, 3, 3), _f(3, 1, 3, 3), _f(4)
BN = {"s": abs(_f(4)) + 0.5, "b": _f(4), "m": _f(4), "v": abs(_f(4)) + 0.5}
IN, OUT = "float[1,3,8,6] x", "float[a,b,c,d] y"
CONV = "c = Conv<pads=[1,1,1,1]>(x, w, bias)"
ONE_CONV = {"nhwc.Conv": 1, "Transpose": 2}
SCALARS = {"three": np.float32(3), "zero": np.float32(0), "six": np.float32(6), "sixth": np.float32(1 / 6)}
# id: (graph, constants, expected operators)
CASES = {
    "conv+batchnorm": (
        f"g ({IN}) => ({OUT}) {{ {CONV}  y = BatchNormalization(c, s, b, m, v) }}",
        {"w": W, "bias": B, **BN},
        ONE_CONV,
    ),
    "conv+batchnorm+relu": (
        f"g ({IN}) => ({OUT}) {{ {CONV}  n = BatchNormalization(c, s, b, m, v)  y = Relu(n) }}",
        {"w": W, "bias": B, **BN},
        ONE_CONV,
    ),
    "conv+mul+add per channel": (
        f"g ({IN}) => ({OUT}) {{ {CONV}  p = Mul(c, k)  y = Add(p, q) }}",
        {"w": W, "bias": B, "k": _f(4, 1, 1), "q": _f(1, 4, 1, 1)},
        ONE_CONV,
    ),
    "conv+div+sub": (
        f"g ({IN}) => ({OUT}) {{ {CONV}  p = Div(c, six)  y = Sub(p, three) }}",
        {"w": W, "bias": B, **SCALARS},
        ONE_CONV,
    ),
    "mul before conv": (
        f"g ({IN}) => ({OUT}) {{ p = Mul(x, k)  y = Conv<pads=[1,1,1,1]>(p, w, bias) }}",
        {"w": W, "bias": B, "k": _f(1, 3, 1, 1)},
        ONE_CONV,
    ),
    "add before conv without pads": (
        f"g ({IN}) => ({OUT}) {{ p = Add(x, k)  y = Conv(p, w, bias) }}",
        {"w": W, "bias": B, "k": _f(1, 3, 1, 1)},
        ONE_CONV,
    ),
    "add before padded conv stays": (
        f"g ({IN}) => ({OUT}) {{ p = Add(x, k)  y = Conv<pads=[1,1,1,1]>(p, w, bias) }}",
        {"w": W, "bias": B, "k": _f(1, 3, 1, 1)},
        {**ONE_CONV, "Add": 1},
    ),
    "mul+add before padded conv": (
        f"g ({IN}) => ({OUT}) {{ r = Sigmoid(x)  p = Mul(r, k)  q = Add(p, l)  y = Conv<pads=[1,1,1,1]>(q, w, bias) }}",
        {"w": W, "bias": B, "k": np.float32([1.7]), "l": np.float32([0.3])},
        {**ONE_CONV, "Add": 1, "Sigmoid": 1},
    ),
    "mul+add before depthwise conv": (
        f"g ({IN}) => ({OUT}) {{ p = Mul(x, k)  q = Mul(p, l)  y = Conv<group=3, pads=[1,1,1,1]>(q, w) }}",
        {"w": DW, "k": _f(3, 1, 1), "l": np.float32([0.3])},
        ONE_CONV,
    ),
    "pad before conv": (
        f"g ({IN}) => ({OUT}) {{ p = Pad(x, pads)  y = Conv<strides=[2,2]>(p, w, bias) }}",
        {"w": W, "bias": B, "pads": np.array([0, 0, 0, 1, 0, 0, 1, 2], np.int64)},
        ONE_CONV,
    ),
    "pad of named axes before conv": (
        f"g ({IN}) => ({OUT}) {{ p = Pad(x, pads, zero, axes)  y = Conv<pads=[1,0,1,0]>(p, w, bias) }}",
        {"w": W, "bias": B, "pads": np.array([1, 2], np.int64), "axes": np.array([-1], np.int64), **SCALARS},
        ONE_CONV,
    ),
    "pad with another number before conv": (
        f"g ({IN}) => ({OUT}) {{ p = Pad(x, pads, three)  y = Conv(p, w, bias) }}",
        {"w": W, "bias": B, "pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64), **SCALARS},
        {**ONE_CONV, "Pad": 1},
    ),
    "pad before average pool": (
        f"g ({IN}) => ({OUT}) {{ p = Pad(x, pads)  y = AveragePool<kernel_shape=[3,3]>(p) }}",
        {"pads": np.array([0, 0, 1, 1, 0, 0, 1, 1], np.int64)},
        {"nhwc.AveragePool": 1, "Transpose": 2},
    ),
    **{
        f"pad with {name} before max pool": (
            f"g ({IN}) => ({OUT}) {{ r = {before}(x)  p = Pad(r, pads, number)  "
            f"y = MaxPool<kernel_shape=[{size},{size}], strides=[2,2]>(p) }}",
            {"pads": np.array([0, 0, 1, 0, 0, 0, 1, 2], np.int64), "number": np.float32(number)},
            {"nhwc.MaxPool": 1, before: 1, "Transpose": 2, **stays},
        )
        for name, number, before, size, stays in (
            ("-infinity", -np.inf, "Sin", 3, {}),
            ("the least number", np.finfo(np.float32).min, "Sin", 3, {}),
            ("0, behind relu,", 0, "Relu", 3, {}),
            ("0, behind what may be negative,", 0, "Sin", 3, {"Pad": 1}),
            ("-infinity, more than the kernel,", -np.inf, "Sin", 2, {"Pad": 1}),
        )
    },
    **{
        f"an image scaled and shifted {where}": (
            f"g ({IN}) => ({OUT}) {{ {before}  p = Mul({x}, k)  q = Add(p, l)  {after} }}",
            {"w": W, "bias": B, "k": _f(3, 1, 1), "l": _f(3, 1, 1)},
            left,
        )
        for where, before, x, after, left in (
            ("by itself", "", "x", "y = Identity(q)", {"Mul": 1, "Add": 1}),
            ("among elementwise ones", "a = Sin(x)", "a", "y = Tanh(q)", {"Sin": 1, "Mul": 1, "Add": 1, "Tanh": 1}),
            (
                "behind a pool",
                "a = MaxPool<kernel_shape=[2,2]>(x)  b = Sin(a)",
                "b",
                "y = Neg(q)",
                {"nhwc.MaxPool": 1, "Sin": 1, "nhwc.Conv": 1, "Neg": 1, "Transpose": 2},
            ),
            (
                "before a sum and a conv",
                "",
                "x",
                "r = Add(q, x)  y = Conv<pads=[1,1,1,1]>(r, w, bias)",
                {"nhwc.Conv": 2, "Transpose": 2},
            ),
        )
    },
    "batchnorm and relu before a padded conv": (
        f"g ({IN}) => ({OUT}) {{ n = BatchNormalization(x, s, b, m, v)  r = Relu(n) "
        "y = Conv<pads=[1,1,1,1]>(r, w, bias) }",
        {"w": W, "bias": B, "s": abs(_f(3)) + 0.5, "b": _f(3), "m": _f(3), "v": abs(_f(3)) + 0.5},
        {"nhwc.Conv": 2, "Transpose": 2},
    ),
    "convtranspose+batchnorm": (
        f"g ({IN}) => ({OUT}) {{ c = ConvTranspose<strides=[2,2], group=3>(x, w)  n = BatchNormalization(c, s, "
        f"b, m, v)  y = Relu(n) }}",
        {"w": _f(3, 2, 2, 2), "s": abs(_f(6)), "b": _f(6), "m": _f(6), "v": abs(_f(6)) + 0.1},
        {"nhwc.ConvTranspose": 1, "Transpose": 2},
    ),
    "hardswish of its parts": (
        f"g ({IN}) => ({OUT}) {{ {CONV}  a = Add(c, three)  b = Clip(a, zero, six)  m = Mul(c, b)  y = Div(m, six) }}",
        {"w": W, "bias": B, **SCALARS},
        ONE_CONV,
    ),
    "hardswish, divided first": (
        f"g ({IN}) => ({OUT}) {{ {CONV}  a = Add(three, c)  b = Clip(a, zero, six)  d = Mul(b, sixth)  y = "
        f"Mul(d, c) }}",
        {"w": W, "bias": B, **SCALARS},
        ONE_CONV,
    ),
    "silu": (f"g ({IN}) => ({OUT}) {{ {CONV}  s = Sigmoid(c)  y = Mul(c, s) }}", {"w": W, "bias": B}, ONE_CONV),
    **{
        f"conv and {name}": (f"g ({IN}) => ({OUT}) {{ {CONV}  {nodes} }}", {"w": W, "bias": B, **SCALARS}, ONE_CONV)
        for name, nodes in {
            "max": "y = Max(c, zero)",
            "min": "y = Min(sixth, c)",
            "relu6 of max and min": "a = Max(zero, c)  y = Min(a, six)",
            "relu6 of min and max": "a = Min(c, three)  y = Max(a, zero)",
            "relu6 of relu": "a = Relu(c)  y = Clip(a, , three)",
            "bounds that leave one number": "a = Min(c, zero)  y = Max(a, three)",
            "bounds the wrong way round": "a = Clip(c, three, zero)  y = Max(a, sixth)",
            "three clamps": "a = Max(c, sixth)  b = Min(a, three)  y = Max(b, zero)",
        }.items()
    },
    "max of a number for each channel": (
        f"g ({IN}) => ({OUT}) {{ {CONV}  y = Max(c, k) }}",
        {"w": W, "bias": B, "k": _f(4, 1, 1)},
        {**ONE_CONV, "Max": 1},
    ),
    "a clamp behind another function": (
        f"g ({IN}) => ({OUT}) {{ {CONV}  a = Tanh(c)  y = Max(a, zero) }}",
        {"w": W, "bias": B, **SCALARS},
        {**ONE_CONV, "Max": 1},
    ),
    "residual, then relu": (
        f"g ({IN}) => ({OUT}) {{ c = Conv<pads=[1,1,1,1]>(x, w)  d = Conv<pads=[1,1,1,1]>(x, v)  e = Add(c, d)  "
        f"y = Relu(e) }}",
        {"w": W, "v": _f(4, 3, 3, 3)},
        {"nhwc.Conv": 2, "Transpose": 2},
    ),
    "an upsampling with what it joins": (
        "g (float[1,4,5,6] x, float[1,3,10,12] z) => (float[1,3,10,12] y) { c = ConvTranspose<strides=[2,2]>(x, w)  "
        "e = Add(c, z)  y = Relu(e) }",
        {"w": _f(4, 3, 2, 2)},
        {"nhwc.ConvTranspose": 1, "Transpose": 3},
    ),
    "a gate with a shortcut": (
        f"g ({IN}, float[1,3,1,1] g) => ({OUT}) {{ p = Mul(x, g)  y = Add(x, p) }}",
        {},
        {"Add": 1, "Mul": 1},
    ),
    "squeeze-and-excite with a shortcut": (
        f"g ({IN}) => ({OUT}) {{ p = GlobalAveragePool(x)  c = Conv(p, w, bias)  g = HardSigmoid<alpha=0.3>(c) "
        "m = Mul(x, g)  y = Add(x, m) }",
        {"w": _f(3, 3, 1, 1), "bias": _f(3)},
        {"nhwc.Conv": 1, "nhwc.GlobalAveragePool": 1, "Mul": 1, "Transpose": 1, "Reshape": 1},
    ),
    "matmul+bias+gelu": (
        "g (float[2,5,3] x) => (float[2,5,4] y) { m = MatMul(x, w)  a = Add(b, m)  y = Gelu(a) }",
        {"w": _f(3, 4), "b": B},
        {"MatMul": 1},
    ),
    "matmul+bias, residual, relu, residual": (
        "g (float[2,5,3] x, float[2,5,4] r) => (float[2,5,4] y) { m = MatMul(x, w)  a = Add(m, b)  s = Add(r, a)  "
        "t = Relu(s)  n = MatMul(t, v)  k = Relu(n)  y = Add(k, t) }",
        {"w": _f(3, 4), "b": B, "v": _f(4, 4)},
        {"MatMul": 2},
    ),
    "gemm, residual": (
        "g (float[N,3] x, float[N,4] r) => (float[N,4] y) { m = Gemm(x, w, b)  y = Add(m, r) }",
        {"w": _f(3, 4), "b": B},
        {"Gemm": 1},
    ),
    "a gemm whose C has rows, with a sum": (
        "g (float[5,3] x, float[5,4] r) => (float[5,4] y) { m = Gemm(x, w, c)  y = Add(m, r) }",
        {"w": _f(3, 4), "c": _f(5, 4)},
        {"Gemm": 1, "Add": 1},
    ),
    "a product with a sum that broadcasts": (
        "g (float[2,5,3] x, float[5,4] r) => (float[2,5,4] y) { m = MatMul(x, w)  y = Add(m, r) }",
        {"w": _f(3, 4)},
        {"MatMul": 1, "Add": 1},
    ),
    "a product's residual in rows of channels": (
        "g (float[1,3,5,6] x, float[1,4,5,6] r) => (float[1,4,5,6] y) { t = Transpose<perm=[0,2,3,1]>(x) "
        "m = MatMul(t, w)  u = Transpose<perm=[0,2,3,1]>(r)  s = Add(m, u)  y = Transpose<perm=[0,3,1,2]>(s) }",
        {"w": _f(3, 4)},
        {"MatMul": 1, "Transpose": 3},
    ),
    "a residual that a normalization takes": (
        "g (float[2,5,4] x) => (float[2,5,4] y) { m = MatMul(x, w)  s = Add(m, x)  y = LayerNormalization(s, g0, b) }",
        {"w": _f(4, 4), "b": B, "g0": B},
        {"MatMul": 1, "SkipLayerNormalization": 1},
    ),
    "matmul+bias of matrices": (
        "g (float[5,3] x) => (float[5,4] y) { m = MatMul(x, w)  y = Add(m, b) }",
        {"w": _f(3, 4), "b": B},
        {"Gemm": 1},
    ),
    "gemm with transB and alpha": (
        "g (float[5,3] x) => (float[5,4] y) { m = Gemm<transB=1, alpha=0.5>(x, w, b)  y = Tanh(m) }",
        {"w": _f(4, 3), "b": B},
        {"Gemm": 1},
    ),
    "scores of attention": (
        "g (float[2,4,5,3] q, float[2,4,6,3] k) => (float[2,4,5,6] y) "
        "{ t = Transpose<perm=[0,1,3,2]>(k)  s = MatMul(q, t)  d = Div(s, root)  y = Softmax(d) }",
        {"root": np.float32(3**0.5)},
        {"FusedMatMul": 1, "Softmax": 1},
    ),
    "scores of attention, transposed otherwise": (
        "g (float[2,4,5,3] q, float[2,6,4,3] k) => (float[2,4,5,6] y) "
        "{ t = Transpose<perm=[0,2,3,1]>(k)  s = MatMul(q, t)  d = Mul(root, s)  y = Softmax(d) }",
        {"root": np.float32([3**0.5])},
        {"Transpose": 1, "FusedMatMul": 1, "Softmax": 1},
    ),
    "layer normalization": (
        """g (float[2,5,4] x) => (float[2,5,4] y) {
            m = ReduceMean(x, axes)  d = Sub(x, m)  q = Pow(d, two)  v = ReduceMean(q, axes)  e = Add(v, eps)  r =
            Sqrt(e)
            n = Div(d, r)  p = Mul(n, s)  y = Add(p, b) }""",
        {"axes": np.array([-1], np.int64), "two": np.float32(2), "eps": np.float32(1e-5), "s": _f(4), "b": B},
        {"LayerNormalization": 1},
    ),
    "layer normalization without scale": (
        """g (float[2,5,4] x) => (float[2,5,4] y) {
            m = ReduceMean(x, axes)  d = Sub(x, m)  q = Mul(d, d)  v = ReduceMean(q, axes)  e = Add(v, eps)  r = Sqrt(e)
            n = Div(d, r)  y = Tanh(n) }""",
        {"axes": np.array([2], np.int64), "eps": np.float32(1e-5)},
        {"LayerNormalization": 1, "Tanh": 1},
    ),
    "layer normalization of a sum": (
        "g (float[2,5,4] x, float[2,5,4] z) => (float[2,5,4] y) { a = Add(x, z)  y = LayerNormalization(a, s, b) }",
        {"s": _f(4), "b": B},
        {"SkipLayerNormalization": 1},
    ),
    "layer normalization of a sum that is read again": (
        "g (float[2,5,4] x, float[2,5,4] z) => (float[2,5,4] y) "
        "{ a = Add(x, z)  n = LayerNormalization(a, s, b)  t = Tanh(n)  y = Add(t, a) }",
        {"s": _f(4), "b": B},
        {"SkipLayerNormalization": 1, "Tanh": 1, "Add": 1},
    ),
    "layer normalization of a sum with positions, of which there may be too few": (
        "g (float[n,p,4] x) => (float[n,p,4] y) "
        "{ h = Shape<start=1,end=2>(x)  t = Slice(table, zero, h, one)  a = Add(x, t)  "
        "y = LayerNormalization(a, s, b) }",
        {"table": _f(1, 8, 4), "zero": np.array([0], np.int64), "one": np.array([1], np.int64), "s": _f(4), "b": B},
        {"Shape": 1, "Slice": 1, "SkipLayerNormalization": 1},
    ),
    "gelu, erf": (
        "g (float[2,4] x) => (float[2,4] y) { d = Div(x, root)  e = Erf(d)  a = Add(e, one)  m = Mul(x, a)  y = "
        "Mul(m, half) }",
        {"root": np.float32(2**0.5), "one": np.float32(1), "half": np.float32(0.5)},
        {"Gelu": 1},
    ),
    "gelu, halved first": (
        "g (float[2,4] x) => (float[2,4] y) { h = Mul(x, half)  d = Mul(x, root)  e = Erf(d)  a = Add(one, e)  "
        "y = Mul(h, a) }",
        {"root": np.float32(0.5**0.5), "one": np.float32(1), "half": np.float32(0.5)},
        {"Gelu": 1},
    ),
    "gelu, tanh": (
        """g (float[2,4] x) => (float[2,4] y) { c = Pow(x, three)  k = Mul(c, cubic)  i = Add(x, k)  t = Mul(i, root)
            h = Tanh(t)  a = Add(h, one)  m = Mul(x, a)  y = Mul(m, half) }""",
        {
            "three": np.float32(3),
            "cubic": np.float32(0.044715),
            "root": np.float32((2 / np.pi) ** 0.5),
            "one": np.float32(1),
            "half": np.float32(0.5),
        },
        {"Gelu": 1},
    ),
    "constants of a chain": (
        "g (float[2,4] x) => (float[2,4] y) { a = Mul(x, p)  b = Mul(a, q)  c = Add(b, p)  d = Sub(c, q)  y = "
        "Div(d, q) }",
        {"p": np.float32(2), "q": np.float32(4)},
        {"Mul": 1, "Add": 1},
    ),
    "transposes cancel": (
        "g (float[2,3,4] x) => (float[2,3,4] y) { a = Transpose<perm=[2,0,1]>(x)  b = Relu(a)  c = Identity(b)  "
        "d = Transpose<perm=[1,2,0]>(c)  y = Abs(d) }",
        {},
        None,
    ),
    "reshapes merge": (
        "g (float[2,3,4] x) => (float[6,4] y) { a = Reshape(x, s)  b = Unsqueeze(a, one)  y = Reshape(b, t) }",
        {"s": np.array([2, 12], np.int64), "one": np.array([1], np.int64), "t": np.array([6, 4], np.int64)},
        {"Reshape": 1},
    ),
    "common subexpressions": (
        "g (float[2,3] x) => (float[2,3] y) { a = Exp(x)  b = Exp(x)  y = Add(a, b) }",
        {},
        {"Exp": 1, "Add": 1},
    ),
    "casts that do nothing": (
        "g (float[2,3] x) => (float[2,3] y) { a = Cast<to=1>(x)  b = Dropout(a)  c = Identity(b)  y = Relu(c) }",
        {},
        {"Relu": 1},
    ),
    "casts through wider types": (
        """g (float[2,3] x) => (float[2,3] y) { a = Sin(x)  b = Cast<to=11>(a)  c = Cast<to=1>(b)
        d = Cast<to=6>(c)  e = Cast<to=7>(d)  f = Cast<to=6>(e)  h = Cast<to=1>(f)  y = Cos(h) }""",
        {},
        {"Sin": 1, "Cast": 2, "Cos": 1},
    ),
    "casts through narrower types stay": (
        """g (float[2,3] x) => (float[2,3] y) { a = Exp(x)  b = Cast<to=10>(a)  c = Cast<to=1>(b)
        d = Cast<to=6>(c)  e = Cast<to=2>(d)  f = Cast<to=3>(e)  h = Cast<to=1>(f)  y = Cos(h) }""",
        {},
        {"Exp": 1, "Cast": 5, "Cos": 1},
    ),
    "a bool is what it was": (
        "g (bool[2,3] x) => (bool[2,3] y) { a = Not(x)  b = Cast<to=1>(a)  c = Cast<to=9>(b)  y = Not(c) }",
        {},
        {"Not": 2},
    ),
    "slices of everything": (
        "g (float[2,3] x) => (float[a,b] y) { a = Sin(x)  b = Slice(a, zeros, sizes)  y = Cos(b) }",
        {"zeros": np.array([0, -3], np.int64), "sizes": np.array([2, 9], np.int64)},
        {"Sin": 1, "Cos": 1},
    ),
    "a slice that turns around stays": (
        "g (float[2,3] x) => (float[a,b] y) { a = Sin(x)  b = Slice(a, end, least, last, end)  y = Cos(b) }",
        {"end": np.array([-1], np.int64), "last": np.array([1], np.int64), "least": np.array([-9], np.int64)},
        {"Sin": 1, "Slice": 1, "Cos": 1},
    ),
}
