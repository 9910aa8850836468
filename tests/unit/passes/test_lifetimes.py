"""Estimates of unknown sizes, and the tensors that become one."""

from __future__ import annotations

import numpy as np
import onnx_ir as ir
import pytest
from graphs import compiled, parse
from provisional import manifests
from yolo import yolo

from py_ort.compiler import CompiledModel, CompileOptions, compile_model
from py_ort.compiler.passes.placed.estimates import SYMBOLS, Estimates

RNG = np.random.default_rng(0)
SMALL, LARGE = SYMBOLS
#: id: (dimensions of a tensor of floats, its elements by the two numbers assumed for a symbol)
SIZES = {
    "numbers": ([2, 3, 4], (24, 24)),
    "none": ([], (1, 1)),
    "symbols": (["n", 3, "h", "n"], (3 * SMALL**3, 3 * LARGE**3)),
    "strides": (["floor(h/2 - 1/2) + 1"], (SMALL // 2, LARGE // 2)),
    "thirds": (["floor((h - 1)/3) + 1"], ((SMALL + 2) // 3, (LARGE + 2) // 3)),
    "of strides": (["2*floor(floor(h/2)/2) + 2"], (2 * (SMALL // 4) + 2, 2 * (LARGE // 4) + 2)),
    "the least": (["Min(h, 100)", "Max(w, 100)"], (SMALL * 100, 100 * LARGE)),
    "powers": (["h**2 + Mod(w, 7)"], (SMALL**2 + SMALL % 7, LARGE**2 + LARGE % 7)),
    "nothing left": (["h - 5000", 4], (4, 4)),
    "a quotient of nothing": (["h/(w - 80)"], (SMALL, 2)),
    "a name that is no expression": (["how many?"], (SMALL, LARGE)),
    "one that depends on data": ([None, 4], (4 * SMALL, 4 * LARGE)),
}


@pytest.mark.parametrize(("sizes", "wanted"), SIZES.values(), ids=SIZES)
def test_estimates(sizes: list[int | str | None], wanted: tuple[int, ...]) -> None:
    value = ir.Value(name="x", shape=ir.Shape(sizes), type=ir.TensorType(ir.DataType.FLOAT))
    found, known = Estimates().bytes(value)
    assert tuple(found // 4) == wanted
    assert known == (None not in sizes)


def test_without_a_rank_nothing_is_known() -> None:
    found, known = Estimates().bytes(ir.Value(name="x", type=ir.TensorType(ir.DataType.FLOAT)))
    assert not found.any() and not known


#: A wide tensor that would wait for its second part while larger ones exist: of the two, b is written in place.
_WAITS = (
    "a = Conv(i, w)  t = Conv(a, u)  s = Conv<pads=[1,1,1,1]>(t, z)  b = Conv(s, q)"
    "  j = Concat<axis=1>(a, b)  y = Conv(j, v)"
)
_AT_ONCE = "a = Conv(i, w)  b = Conv(i, w2)  j = Concat<axis=1>(a, b)  t = Conv(j, v2)  y = Conv<pads=[1,1,1,1]>(t, z)"
_TO_I = {
    "known sizes": ("1,16,8,8", "i = Identity(x)"),
    "any sizes": ("n,16,h,w", "i = Identity(x)"),
    "any sizes, and something else depends on data": (
        "n,16,h,w",
        "m = NonZero(x)  f = Cast<to=1>(m)  r = ReduceMax<keepdims=0>(f)  i = Mul(x, r)",
    ),
    "a number that depends on data": ("n,16,h,w", "i = Compress<axis=0>(x, c)"),
    "height and width that depend on data": ("n,16,h,w", "k = Compress<axis=2>(x, c)  i = Compress<axis=3>(k, d)"),
}


@pytest.mark.parametrize(("sizes", "to_i"), _TO_I.values(), ids=_TO_I)
@pytest.mark.parametrize(("nodes", "writers"), [(_WAITS, [4]), (_AT_ONCE, [1, 2])], ids=["waits", "at once"])
def test_what_is_joined(nodes: str, writers: list[int], sizes: str, to_i: str) -> None:
    """The convolutions, by their numbers, that write columns: the same with known and unknown sizes."""
    sides = {"w": (16, 16, 1), "w2": (16, 16, 1), "u": (64, 16, 1), "z": (64, 64, 3), "q": (16, 64, 1)}
    sides |= {"v": (4, 32, 1), "v2": (64, 32, 1)}
    weights = {name: RNG.standard_normal((m, c, size, size)).astype(np.float32) for name, (m, c, size) in sides.items()}
    model = parse(f"g (float[{sizes}] x, bool[p] c, bool[q] d) => (float[e,f,g,h] y) {{ {to_i}  {nodes} }}", weights)
    convolutions = [node for node in compiled(model, columns=True).model.graph if node.op_type == "Conv"]
    assert [i for i, node in enumerate(convolutions, 1) if "y_columns" in node.attributes] == writers


def _joins(model: CompiledModel) -> list[tuple[object, ...]]:
    names = ("x_columns", "y_columns", "residual_columns", "into")
    windows = (node for node in model.model.graph if node.domain == "com.ms.internal.nhwc")
    return [
        (
            node.op_type,
            node.outputs[0].shape[-1],
            *(node.attributes[name].value for name in names if name in node.attributes),
        )
        for node in windows
    ]


def test_a_detector_of_any_size_joins_as_one_of_known_sizes() -> None:
    opened, known = (
        compile_model(
            yolo(None).SerializeToString(),
            options=CompileOptions(input_shapes=shapes),
            manifests=manifests(chains=True, columns=True),
        )
        for shapes in ({}, {"images": (1, 3, 320, 320)})
    )
    assert _joins(opened) == _joins(known)
    for result in (opened, known):
        assert sum("y_columns" in node.attributes for node in result.model.graph) > 20
    made = [value for node in opened.model.graph for value in node.outputs]
    unknown = [v.name for v in made if v.shape is None or any(str(dim) == "None" for dim in v.shape)]
    assert not unknown  # nor are places and steps of boxes
