"""float16 between nodes on the CPU: the values that become float32, and the places of Casts."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx_ir as ir
import pytest
from graphs import check_equal, compiled, operators, parse

HALF = np.float16
TABLE = np.arange(8, dtype=HALF).reshape(2, 4)
ALL, FIRST = np.array([-1], np.int64), np.array([0], np.int64)
B = "float16[2,4] x"
# id: (inputs, outputs, nodes, constants, expected operators)
CASES: dict[str, tuple[str, str, str, dict[str, Any], dict[str, int]]] = {
    "a node alone": (B, "float16[2,4] y", "y = Relu(x)", {}, {"Relu": 1}),
    "two": (B, "float16[2,4] y", "a = Add(x, k)  y = Exp(a)", {"k": TABLE}, {"Add": 1, "Exp": 1, "Cast": 3}),
    "an output between": (
        B,
        "float16[2,4] a, float16[2,4] y",
        "a = Add(x, x)  y = Exp(a)",
        {},
        {"Add": 1, "Exp": 1, "Cast": 3},
    ),
    "moved between": (
        B,
        "float16[8] y",
        "a = Sin(x)  t = Transpose(a)  r = Reshape(t, all)  y = Exp(r)",
        {"all": ALL},
        {"Sin": 1, "Transpose": 1, "Reshape": 1, "Exp": 1, "Cast": 2},
    ),
    "joined with a narrow one": (
        f"{B}, float16[m,4] past",
        "float16[n,4] y",
        "a = Sin(x)  y = Concat<axis=0>(past, a)",
        {},
        {"Sin": 1, "Concat": 1},
    ),
    "gathered from a table": (
        "int64[3] i",
        "float16[3,4] y",
        "g = Gather(table, i)  a = Sin(g)  y = Exp(a)",
        {"table": TABLE},
        {"Gather": 1, "Sin": 1, "Exp": 1, "Cast": 2},
    ),
    "Casts of the model": (
        "float[2,4] x",
        "float[2,4] y",
        "h = Cast<to=10>(x)  a = Add(h, k)  b = Sin(a)  y = Cast<to=1>(b)",
        {"k": TABLE},
        {"Add": 1, "Sin": 1, "Cast": 1},
    ),
    "Casts between": (
        B,
        "float16[2,4] y",
        "a = Sin(x)  f = Cast<to=1>(a)  e = Exp(f)  h = Cast<to=10>(e)  y = Neg(h)",
        {},
        {"Sin": 1, "Exp": 1, "Neg": 1, "Cast": 2},
    ),
    "rounded on purpose": ("float[2,4] x", "float[2,4] y", "h = Cast<to=10>(x)  y = Cast<to=1>(h)", {}, {"Cast": 2}),
    "rounded on purpose, and read": (
        "float[2,4] x",
        "float[2,4] y, float16[2,4] z",
        "h = Cast<to=10>(x)  y = Cast<to=1>(h)  a = Sin(h)  z = Exp(a)",
        {},
        {"Sin": 1, "Exp": 1, "Cast": 3},
    ),
    "a Cast to the same type": (
        B,
        "bool[2,4] y",
        "a = Sin(x)  c = Cast<to=10>(a)  y = Equal(c, k)",
        {"k": TABLE},
        {"Sin": 1, "Equal": 1, "Cast": 2},
    ),
    "is it infinite": (B, "bool[2,4] y", "a = Add(x, x)  y = IsInf(a)", {}, {"Add": 1, "IsInf": 1}),
    "its shape": (B, "int64[2] y", "a = Sin(x)  e = Exp(a)  y = Shape(e)", {}, {}),
    "a sequence between": (
        B,
        "float16[2,4] y",
        "a = Sin(x)  b = Exp(a)  s = SequenceConstruct(b)  c = SequenceAt(s, zero)  y = Neg(c)",
        {"zero": np.int64(0)},
        {"Sin": 1, "Exp": 1, "SequenceConstruct": 1, "SequenceAt": 1, "Neg": 1, "Cast": 2},
    ),
    "a branch": (
        f"bool c, {B}",
        "float16[2,4] y",
        "a = Sin(x)  b = Exp(a)  y = If (c) <then_branch = t () => (float16[2,4] u) { q = Neg(b)  u = Cos(q) }, "
        "else_branch = e () => (float16[2,4] v) { v = Identity(b) }>",
        {},
        {"If": 1, "Sin": 1, "Exp": 1, "Neg": 1, "Cos": 1, "Identity": 1, "Cast": 3},
    ),
    "a loop": (
        B,
        "float16[2,4] y",
        "y = Loop (three, , x) <body = b (int64 i, bool c, float16[2,4] s) => (bool d, float16[2,4] t) "
        "{ d = Identity(c)  a = Mul(s, k)  t = Sin(a) }>",
        {"three": np.int64(3), "k": TABLE},
        {"Loop": 1, "Mul": 1, "Sin": 1, "Identity": 1, "Cast": 3},
    ),
}


@pytest.mark.parametrize("level", ["disabled", "all"])
@pytest.mark.parametrize(("inputs", "outputs", "nodes", "constants", "expected"), CASES.values(), ids=CASES)
def test_types(
    level: str, inputs: str, outputs: str, nodes: str, constants: dict[str, Any], expected: dict[str, int]
) -> None:
    model = parse(f"g ({inputs}) => ({outputs}) {{ {nodes} }}", constants)
    result = compiled(model, providers=["wasm"], level=level)
    found = operators(check_equal(model, result, tolerance=2e-3))
    if level == "all":
        assert {name: count for name, count in found.items() if expected or name == "Cast"} == expected
    assert [arg.type for arg in result.outputs] == [
        f"tensor({value.split('[')[0].strip()})" for value in outputs.split(", ")
    ]
    weights = {entry.tensor.dtype for entry in result.weights.entries}
    assert (
        not any(array.dtype == HALF for array in map(np.asarray, constants.values())) or ir.DataType.FLOAT16 in weights
    )


def test_packed_weights_stay_narrow() -> None:
    """They are packed as stored; a chain on the CPU is in float32."""
    constants = {"w": np.ones((4, 16), HALF), "b": np.ones(16, HALF)}
    nodes = "m = MatMul(x, w)  a = Add(m, b)  e = Exp(a)  n = Neg(e)  q = Mul(n, e)  r = Sub(q, a)  y = Sin(r)"
    model = parse(f"g ({B}) => (float16[2,16] y) {{ {nodes} }}", constants)
    result = compiled(model, providers=["wasm"], chains=True)
    found = operators(check_equal(model, result, tolerance=5e-3))
    assert found["ElementwiseChain"] == 1 and found["Cast"] == 4
    kinds = {tuple(entry.tensor.shape): entry.tensor.dtype for entry in result.weights.entries}
    assert kinds[2, 4, 8] == ir.DataType.FLOAT16


def test_between_providers() -> None:
    """A single node between nodes of the GPU reads and writes their type; only the CPU's own values are wide."""
    nodes = "a = Relu(x)  b = Exp(a)  c = Neg(b)  y = Tanh(c)"
    model = parse(f"g ({B}) => (float16[2,4] y) {{ {nodes} }}")
    for node, name in zip(model.graph.node, "rent", strict=True):
        node.name = name
    for names, casts in ((["e"], 0), (["e", "n"], 2)):
        result = compiled(model, force_cpu_node_names=names)
        placed = {node.op_type: node.provider for node in result.placement.nodes}
        assert operators(check_equal(model, result, tolerance=2e-3)).get("Cast", 0) == casts
        assert placed["Relu"] == placed["Tanh"] == "webgpu" and placed["Exp"] == placed.get("Cast", "wasm") == "wasm"
