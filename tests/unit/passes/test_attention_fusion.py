"""Attention, in exporters' forms: one node, no scores, and the same results."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from graphs import check_equal, compiled, operators, parse, random_feeds
from onnx import TensorProto, helper

B, S, N, H = 2, 5, 3, 4
D = N * H


class _Attention:
    """Writes a block of attention on x [B, S, D]; a form changes one of its parts."""

    def __init__(self, **form: Any) -> None:
        self.form = form
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.rng = np.random.default_rng(3)

    def op(self, op_type: str, *inputs: str, outputs: int = 1, **attributes: Any) -> Any:
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op_type, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def const(self, contents: Any, dtype: Any = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(onnx.numpy_helper.from_array(np.asarray(contents, dtype), name))
        return name

    def linear(self, x: str, columns: int, bias: bool = True) -> str:
        y = self.op("MatMul", x, self.const(self.rng.standard_normal((D, columns)) * 0.3))
        return self.op("Add", self.const(self.rng.standard_normal(columns)), y) if bias else y

    def heads(self, x: str, perm: tuple[int, ...] = (0, 2, 1, 3)) -> str:
        return self.op("Transpose", self.op("Reshape", x, self.const([0, 0, -1, H], np.int64)), perm=perm)

    def inputs(self) -> tuple[str, str, str]:
        """Queries, transposed keys and values, by head."""
        form = self.form.get("heads")
        if form == "split":  # GPT-2
            q, k, v = self.op("Split", self.linear("x", 3 * D), outputs=3, axis=2, num_outputs=3)
            return self.heads(q), self.heads(k, (0, 2, 3, 1)), self.heads(v)
        if form in ("gather", "slice"):  # vision transformers
            packed = self.op("Reshape", self.linear("x", 3 * D), self.const([B, S, 3, N, H], np.int64))
            packed = self.op("Transpose", packed, perm=(2, 0, 3, 1, 4))
            if form == "gather":
                q, k, v = (self.op("Gather", packed, self.const(i, np.int64), axis=0) for i in range(3))
            else:
                zero = self.const([0], np.int64)
                q, k, v = (
                    self.op(
                        "Squeeze", self.op("Slice", packed, *(self.const([n], np.int64) for n in (i, i + 1, 0))), zero
                    )
                    for i in range(3)
                )
            return q, self.op("Transpose", k, perm=(0, 1, 3, 2)), v
        bias = self.form.get("bias", True)
        q, k, v = self.linear("x", D, bias), self.linear(self.form.get("source", "x"), D), self.linear("x", D, bias)
        if form == "q scaled":
            q = self.op("Mul", q, self.const(H**-0.5))
        if form == "rotary":  # a function of each head: they are not in rows any more
            q4, k4 = (self.op("Tanh", self.heads(each)) for each in (q, k))
            return q4, self.op("Transpose", k4, perm=(0, 1, 3, 2)), self.heads(v)
        q4, v4 = self.heads(q), self.heads(v)
        if form == "transposed twice":
            k4 = self.op("Transpose", self.heads(k), perm=(0, 1, 3, 2))
        else:
            k4 = self.heads(k, (0, 2, 3, 1))
        if form == "both scaled":
            q4, k4 = (self.op("Mul", each, self.const(H**-0.25)) for each in (q4, k4))
        return q4, k4, v4

    def masked(self, scores: str) -> str:
        mask = self.form.get("mask")
        least = -3.4028234663852886e38
        if mask == "added":
            wide = self.op("Unsqueeze", "mask", self.const([1, 2], np.int64))
            away = self.op("Sub", self.const(1), self.op("Cast", wide, to=TensorProto.FLOAT))
            return self.op("Add", scores, self.op("Mul", away, self.const(least)))
        if mask in ("where", "where not"):
            wide = self.op("Cast", self.op("Unsqueeze", "mask", self.const([1, 2], np.int64)), to=TensorProto.BOOL)
            if mask == "where":
                return self.op("Where", wide, scores, self.const(least))
            return self.op("Where", self.op("Not", wide), self.const(-1e9), scores)
        if mask == "causal":
            return self.op("Add", scores, self.const(np.triu(np.full((1, 1, S, S), -np.inf), 1)))
        if mask == "two":
            both = self.op("Add", scores, self.const(self.rng.standard_normal((1, N, S, S))))
            return self.op("Add", both, self.const(np.triu(np.full((S, S), -10000), 1)))
        return scores

    def model(self) -> onnx.ModelProto:
        q, k, v = self.inputs()
        scores = self.op("MatMul", q, k)
        if self.form.get("scale", True):
            scores = self.op("Div", scores, self.const(H**0.5))
        weights = self.op("Softmax", self.masked(scores), axis=-1)
        if self.form.get("guard"):
            weights = self.op("Where", self.op("IsNaN", weights), self.const(0), weights)
        mixed = self.op("MatMul", weights, v)
        flat = self.op("Reshape", self.op("Transpose", mixed, perm=(0, 2, 1, 3)), self.const([0, 0, D], np.int64))
        self.nodes.append(helper.make_node("Relu", [flat], ["y"]))
        names = [n for node in self.nodes for n in node.input]
        inputs = [("x", TensorProto.FLOAT, ["b", "s", D] if self.form.get("symbols") else [B, S, D])]
        inputs += [("mask", TensorProto.INT64, [B, S])] if "mask" in names else []
        inputs += [("z", TensorProto.FLOAT, [B, S, D])] if "z" in names else []
        graph = helper.make_graph(
            self.nodes,
            "attention",
            [helper.make_tensor_value_info(*each) for each in inputs],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
            self.constants,
        )
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8)


# id: (form, operators besides Attention and Relu)
ONE = {"MatMul": 1}
FORMS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "plain": ({}, ONE),
    "symbols": ({"symbols": True}, ONE),
    "without bias of some": ({"bias": False}, {"MatMul": 1}),
    "keys transposed twice": ({"heads": "transposed twice"}, ONE),
    "queries scaled": ({"heads": "q scaled", "scale": False}, ONE),
    "queries and keys scaled": ({"heads": "both scaled", "scale": False}, ONE),
    "packed, split": ({"heads": "split"}, ONE),
    "packed, gathered": ({"heads": "gather"}, ONE),
    "packed, sliced": ({"heads": "slice"}, ONE),
    "keys of another tensor": ({"source": "z"}, {"MatMul": 2}),
    "a function of the heads": ({"heads": "rotary"}, {"MatMul": 3, "Reshape": 4, "Tanh": 2}),
    "mask added": ({"mask": "added"}, {**ONE, "Unsqueeze": 1, "Cast": 1, "Sub": 1, "Mul": 1}),
    "mask chosen": ({"mask": "where"}, {**ONE, "Unsqueeze": 1, "Cast": 1, "Where": 1}),
    "mask chosen the other way": ({"mask": "where not"}, {**ONE, "Unsqueeze": 1, "Cast": 1, "Not": 1, "Where": 1}),
    "causal": ({"mask": "causal"}, ONE),
    "two masks": ({"mask": "two"}, ONE),
    "guarded": ({"mask": "where", "guard": True}, {**ONE, "Unsqueeze": 1, "Cast": 1, "Where": 1}),
}


@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
@pytest.mark.parametrize(("form", "others"), FORMS.values(), ids=FORMS)
def test_one_node(form: dict[str, Any], others: dict[str, int], provider: str) -> None:
    model = _Attention(**form).model()
    feeds = {name: np.random.default_rng(5).standard_normal((B, S, D)).astype(np.float32) for name in ("x", "z")}
    feeds["mask"] = np.array([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], np.int64)
    given = {value.name for value in model.graph.input}
    result = compiled(model, providers=[provider, "wasm"])
    check_equal(model, result, feeds={name: each for name, each in feeds.items() if name in given})
    assert operators(result) == {"Attention": 1, "Relu": 1, **others}


def test_a_causal_mask_is_an_attribute() -> None:
    result = compiled(_Attention(mask="causal").model())
    (node,) = (node for node in result.model.graph if node.op_type == "Attention")
    assert node.attributes["is_causal"].value == 1 and len(node.inputs) == 3


def test_weights_that_others_read_stay() -> None:
    block = _Attention()
    model = block.model()
    softmax = next(node for node in model.graph.node if node.op_type == "Softmax")
    model.graph.output.append(helper.make_tensor_value_info(softmax.output[0], TensorProto.FLOAT, None))
    found = operators(check_equal(model, compiled(model)))
    assert found["Softmax"] == 1 and "Attention" not in found


@pytest.mark.parametrize("low", [-1e4, -65504.0, -1e6, -1e9, -1e30, -np.inf])
@pytest.mark.parametrize("shape", [(S, S), (1, S), (S, 1)], ids=str)
def test_a_number_in_the_place_of_scores(shape: tuple[int, int], low: float) -> None:
    """For queries that see no key, too: all their scores are equal."""
    block = _Attention()
    seen = np.random.default_rng(1).random(shape) < 0.6
    seen[-1] = False
    if np.isinf(low):  # a row that sees nothing is NaN, unlike ONNX's operator
        seen[:, 0] = True

    def masked(scores: str) -> str:
        added = block.op("Add", scores, block.const(np.where(np.arange(S)[None] < 3, 0, low)))
        return block.op("Where", block.const(seen, bool), added, block.const(low))

    block.masked = masked  # type: ignore[method-assign]
    assert operators(check_equal(block.model()))["Attention"] == 1


@pytest.mark.parametrize("mask", ["", "a = Add(wide, mask)"], ids=["plain", "masked"])
def test_a_softmax_of_float16_in_float32(mask: str) -> None:
    rng = np.random.default_rng(7)
    weights = {f"w{n}": (rng.standard_normal((D, D)) * 0.3).astype(np.float16) for n in "qkv"}
    sizes = {"heads": np.array([0, 0, N, H]), "flat": np.array([0, 0, D]), "c": np.float16(0.5)}
    split = "  ".join(f"{n}p = MatMul(x, w{n})  {n}h = Reshape({n}p, heads)" for n in "qkv")
    model = parse(
        f"""g (float16[b,s,{D}] x{", float[b,1,s,s] mask" if mask else ""}) => (float16[b,s,d] y) {{ {split}
        q = Transpose<perm=[0,2,1,3]>(qh)  k = Transpose<perm=[0,2,3,1]>(kh)  v = Transpose<perm=[0,2,1,3]>(vh)
        p = MatMul(q, k)  scaled = Mul(p, c)  wide = Cast<to=1>(scaled)  {mask}
        t = Softmax<axis=-1>({"a" if mask else "wide"})  n = Cast<to=10>(t)  o = MatMul(n, v)
        r = Transpose<perm=[0,2,1,3]>(o)  y = Reshape(r, flat) }}""",
        {**weights, **sizes},
    )
    result = compiled(model)
    check_equal(model, result, feeds=random_feeds(model, {"b": B, "s": S}), tolerance=5e-3)
    assert operators(result) == {"MatMul": 1, "Attention": 1}


@pytest.mark.parametrize("keys", [0, 3])
def test_no_queries(keys: int) -> None:
    model = parse(
        f"g (float[2,0,4] q, float[2,{keys},4] k, float[2,{keys},4] v) => (float[2,0,4] y) "
        "{ t = Transpose<perm=[0,2,1]>(k)  s = MatMul(q, t)  p = Softmax<axis=-1>(s)  y = MatMul(p, v) }"
    )
    result = check_equal(model)
    assert list(result.model.graph.outputs[0].shape) == [2, 0, 4]
