"""Contracts of operands (`py_ort/schema/operands.py`): their language, and the same results in Python and the core."""

from __future__ import annotations

import json
import sys
from collections import Counter
from contextlib import suppress
from itertools import chain
from pathlib import Path

import numpy as np
import onnx
import pytest

ROOT = Path(__file__).parents[2]
sys.path.append(str(ROOT / "tests/fuzz"))

import wrong_operands  # noqa: E402

from py_ort.compiler.compile import compile_model  # noqa: E402
from py_ort.exceptions import InternalError, InvalidGraph, PyOrtError  # noqa: E402
from py_ort.schema.operand_contracts import CONTRACTS  # noqa: E402
from py_ort.schema.operand_sizes import check, contract  # noqa: E402
from py_ort.schema.operands import compiled  # noqa: E402


def _broken(text: str, *sizes: list[int | None] | None, **attributes: object) -> str | None:
    rules = compiled(text)
    return check(rules, sizes, {**rules.attributes, **attributes})


@pytest.mark.parametrize(
    ("text", "sizes", "attributes", "wrong"),
    [
        ("X[N, C, ...]; B[C]", ([2, 3, 5], [3]), {}, ""),
        ("X[N, C, ...]; B[C]", ([2, 3, 5], [4]), {}, "input 1 has the shape [4], not that of B[C], where N = 2, C = 3"),
        ("X[N, C, ...]; B[C]", ([2, None, 5], [4]), {}, ""),
        ("X[N, C, ...]; B[C]", ([2, 3], [3, 1]), {}, "input 1 has the shape [3, 1]"),
        ("X[N, C, ...]; B[C]", ([2], [3]), {}, "input 0 has the shape [2]"),
        ("X[N, C, ...]; B[C]", ([2, 3], None), {}, ""),
        ("X[..., E]; B[] | [1 or E]", ([2, 3], []), {}, ""),
        ("X[..., E]; B[] | [1 or E]", ([2, 3], [1]), {}, ""),
        ("X[..., E]; B[] | [1 or E]", ([2, 3], [2]), {}, "input 1"),
        ("W[4 * H, I]; R[4 * H, H]", ([8, 3], [8, 2]), {}, ""),
        ("W[4 * H, I]; R[4 * H, H]", ([7, 3], [8, 2]), {}, "input 0 has the shape [7, 3]"),
        ("group = 1; X[_, C]; W[M, C / group]", ([1, 4], [3, 2]), {"group": 2}, ""),
        ("group = 1; X[_, C]; W[M, C / group]", ([1, 5], [3, 2]), {"group": 2}, "input 1"),
        ("layout = 'a'; layout == 'b' ? X[2]; X[_]", ([3],), {"layout": "b"}, "not that of X[2]"),
        ("layout = 'a'; layout == 'b' ? X[2]; X[_]", ([3],), {}, ""),
        ("A[...]; B[...]; same(A, B)", ([2, 3], [2, 1]), {}, "same(A, B) does not hold"),
        ("A[...]; B[...]; broadcasts(A, B)", ([1, 3], [2, 3]), {}, ""),
        ("A[...]; B[...]; broadcasts(A, B)", ([2, 2, 3], [2, 3]), {}, "broadcasts"),
        ("A[...]; B[...]; prefix(A, B, 2)", ([2, 3, 9], [2, 3]), {}, ""),
        ("A[...]; B[...]; suffix(A, B, 1)", ([2, 3], [2]), {}, "suffix"),
        ("A[...]; B[...]; prefix(A, B, rank(B) - 1)", ([], []), {}, "prefix"),
        ("axis = 0; A[...]; B[...]; within(A, B, axis)", ([9, 2], [3, 2]), {}, ""),
        ("axis = 0; A[...]; B[...]; within(A, B, axis)", ([3, 3], [3, 2]), {"axis": -2}, "within"),
        ("A[...]; size(A) == 1 or not given(A)", ([2, 2],), {}, "does not hold"),
    ],
)
def test_language(text: str, sizes: tuple, attributes: dict, wrong: str) -> None:
    found = _broken(text, *sizes, **attributes)
    assert (found is None) if not wrong else (found is not None and wrong in found), found


@pytest.mark.parametrize("text", ["X[", "X[N + ]", "M == 2", "size(X) == 1", "group == 1"])
def test_no_clause(text: str) -> None:
    with pytest.raises(ValueError):
        compiled(text)


def test_contracts_are_of_kernels() -> None:
    lists = (json.loads((ROOT / f"py_ort/assets/kernels.{name}.json").read_text()) for name in ("wasm", "webgpu"))
    kernels = {(kernel["domain"], kernel["op_type"]) for kernel in chain.from_iterable(lists)}
    assert set(CONTRACTS) <= kernels


_Q, _HEADS = [2, 5, 16], {"q_num_heads": 2, "kv_num_heads": 2}
_QUERIES, _GROUPS = [2, 1, 128], {"num_heads": 4, "kv_num_heads": 2}
_CACHE, _ANGLES, _CROSS = [2, 2, 20, 16], [24, 8], [2, 3, 7, 8]


@pytest.mark.parametrize(
    ("op", "attributes", "sizes", "wrong"),
    [
        ("LinearAttention", _HEADS, [_Q, _Q, _Q, None, [2, 5, 2], [2, 5, 2]], {4: [2, 1, 2], 5: [2, 5, 0]}),
        ("CausalConvWithState", {}, [[2, 4, 9], [4, 1, 3], [4]], {2: [1]}),
        ("Attention", {}, [*[[2, 3, 4, 8]] * 3, None, *[[0, 3, 0, 8]] * 2], {2: [2, 3, 5, 8]}),
        ("Attention", {}, [*[[2, 3, 4, 8]] * 3, None, *[[2, 3, 6, 8]] * 2], {4: [1, 3, 6, 8], 5: [2, 3, 5, 8]}),
        (
            "Attention",
            _HEADS,
            [_Q, _Q, _Q, None, *[[2, 2, 6, 8]] * 2],
            {4: [2, 1, 6, 8], 5: [2, 2, 6, 4], 2: [2, 5, 15]},
        ),
        ("RotaryEmbedding", {"num_heads": 2}, [_Q, [2, 5, 4], [2, 5, 4]], {0: [2, 5, 14], 1: [2, 5, 0]}),
        ("RotaryEmbedding", {}, [[2, 3, 5, 16], [9, 8], [9, 8], [2, 5]], {0: [2, 3, 5, 8], 3: [2, 4]}),
        ("Softmax", {"axis": 0}, [[3]], {0: []}),
        ("GlobalMaxPool", {}, [[1, 2, 3]], {0: []}),
        ("STFT", {}, [[1, 30, 1], [], [8], []], {0: [1, 30, 0], 1: [2], 2: [1, 8]}),
        ("DFT", {}, [[1, 30, 1], [], []], {1: [2]}),
        ("Col2Im", {}, [[1, 12, 20], [2], [2]], {1: [2, 1], 2: []}),
        ("Slice", {}, [[5, 6], [1], [1], [1], [1]], {1: [1, 1], 3: [1, 1], 4: [1, 1], 2: [2]}),
        ("DequantizeLinear", {"block_size": 4}, [[3, 8], [3, 2], [3, 2]], {2: [1, 6], 1: [6]}),
        ("Resize", {"coordinate_transformation_mode": "tf_crop_and_resize"}, [[1, 2, 5], [6]], {1: [0]}),
        ("Resize", {"coordinate_transformation_mode": "tf_crop_and_resize", "axes": [2]}, [[1, 2, 5], [2]], {1: [6]}),
        (
            "GroupQueryAttention",
            _GROUPS,
            [_QUERIES, None, None, _CACHE, _CACHE, [2], [], _ANGLES, _ANGLES, [2, 1], [1, 4, 1, 20], [4]],
            {3: [2, 2, 20, 8], 4: [2, 2, 19, 16], 5: [1], 6: [1, 1], 7: [24, 16], 9: [1, 2], 11: [2]},
        ),
        ("GroupQueryAttention", _GROUPS, [[2, 1, 64], *[[2, 1, 32]] * 2], {0: [2, 1, 66], 1: [2, 1, 64]}),
        ("MultiHeadAttention", {"num_heads": 3}, [[2, 5, 24], _CROSS, _CROSS, [72]], {3: [1]}),
        ("MultiHeadAttention", {"num_heads": 3}, [*[[2, 5, 24]] * 3, [72], [2]], {3: [48], 4: [4]}),
        ("MultiHeadAttention", {"num_heads": 3}, [[2, 5, 3, 3, 8], None, None, [72]], {3: [24]}),
    ],
)
def test_no_operand_is_shorter_than_what_is_read(op: str, attributes: dict, sizes: list, wrong: dict) -> None:
    """If these did not fit, kernels would read beyond them, or differ from native onnxruntime."""
    rules = contract("", op) or contract("com.microsoft", op)
    assert rules is not None
    given = {**rules.attributes, **attributes}
    assert check(rules, sizes, given) is None
    for index, size in wrong.items():
        assert check(rules, [*sizes[:index], size, *sizes[index + 1 :]], given) is not None, (index, size)


def test_core_reads_them_alike() -> None:
    """The core refuses the operands that Python refuses, and never for a contract that holds in Python.

    No operand of any operator crashes it.
    """
    sys.path.append(str(ROOT / "wasm_build/test"))
    from one_node import run_many  # type: ignore[import-not-found]

    jobs, expected = [], []
    for seed in range(1500):
        model, feeds = wrong_operands.drawn(seed)
        graph = onnx.load_from_string(model)
        (node,) = graph.graph.node
        rules = contract(node.domain, node.op_type)
        given = {
            **{x.name: list(x.dims) for x in graph.graph.initializer},
            **{k: list(v.shape) for k, v in feeds.items()},
        }
        if any(np.asarray(x).dtype.kind == "O" for x in feeds.values()):
            continue
        attributes = {a.name: onnx.helper.get_attribute_value(a) for a in node.attribute}
        texts = {key: value.decode() if isinstance(value, bytes) else value for key, value in attributes.items()}
        jobs.append((graph, feeds))
        sizes = [given.get(name) for name in node.input]
        expected.append(None if rules is None else check(rules, sizes, {**rules.attributes, **texts}))
    assert sum(text is not None for text in expected) > 50
    for (graph, _), text, result in zip(jobs, expected, run_many(jobs), strict=True):
        said = str(result) if isinstance(result, Exception) else ""
        assert text is None or said, (graph.graph.name, text)
        assert text is not None or "not that of" not in said, (graph.graph.name, said)
        assert "crashed" not in said, (graph.graph.name, said)


def test_queries_with_keys_and_values_in_them() -> None:
    """Columns that are no multiple of the heads, and caches of angles wider than a head, are not read beyond."""
    sys.path.append(str(ROOT / "wasm_build/test"))
    from one_node import CoreError, model, run  # type: ignore[import-not-found]

    names = ["q", "", "", "past_key", "past_value", "last", "total", "cos", "sin"]
    made = model("GroupQueryAttention", names, ["y"], domain="com.microsoft", do_rotary=1, **_GROUPS)
    feeds = {name: np.zeros(_CACHE, np.float32) for name in names[3:5]}
    feeds |= {
        "last": np.zeros(2, np.int32),
        "total": np.int32(1),
        **dict.fromkeys(("cos", "sin"), np.ones(_ANGLES, "f")),
    }
    run(made, {"q": np.ones(_QUERIES, np.float32), **feeds})
    for width in (127, 64):
        with pytest.raises(CoreError, match="do not fit"):
            run(made, {"q": np.ones((2, 1, width), np.float32), **feeds})


def test_further_inputs_spare_no_check() -> None:
    """A plan may have a node with more inputs than its operator has."""
    sys.path.append(str(ROOT / "wasm_build/test"))
    from one_node import CoreError, model, run  # type: ignore[import-not-found]

    made = model("BatchNormalization", ["x", "s", "b", "m", "v", *[""] * 40], ["y"])
    short = np.ones(2, np.float32)
    feeds = {"x": np.ones((1, 3, 4), np.float32), "s": short, "b": short, "m": short, "v": short}
    with pytest.raises(CoreError, match=r"input 1 has the shape \[2\], not that of Scale\[C\]"):
        run(made, feeds)


def test_sizes_known_when_compiling_are_refused_as_such() -> None:
    """No pass fails on an operand of a wrong size."""
    counts: Counter[str] = Counter()
    for seed in range(400):
        proto = onnx.load_from_string(wrong_operands.drawn(seed)[0])
        feeds = wrong_operands.drawn(seed)[1]
        for value in proto.graph.input:
            sizes = onnx.helper.make_tensor_type_proto(1, feeds[value.name].shape).tensor_type.shape
            value.type.tensor_type.shape.CopyFrom(sizes)
        try:
            compile_model(proto.SerializeToString(), providers=["webgpu", "wasm"][seed % 2 :])
            counts["compiled"] += 1
        except InternalError as e:
            raise AssertionError(f"draw {seed}: {proto.graph.name}") from e
        except PyOrtError as e:
            counts[type(e).__name__] += 1
    assert counts["compiled"] > 100
    assert counts["InvalidGraph"] > 50


@pytest.mark.parametrize("op_type", ["Conv", "ConvTranspose"])
def test_images_of_another_rank_than_their_windows(op_type: str) -> None:
    shape = "output_shape = [12], " * (op_type == "ConvTranspose")
    text = f"""<ir_version: 10, opset_import: ["" : 21]> g (float[n,c] x, float[7,2,3] w) => (y)
    {{ y = {op_type}<kernel_shape = [3], strides = [2], {shape}auto_pad = "SAME_LOWER">(x, w) }}"""
    with pytest.raises(InvalidGraph, match=r"at least 3 dimensions|input 0 has the shape"):
        compile_model(onnx.parser.parse_model(text).SerializeToString(), providers=["wasm"])


@pytest.mark.parametrize(
    ("nodes", "inputs"),
    [
        ("ConvTranspose <kernel_shape = [1, 1, 1]> (x, w)", "float[1,1,1,1,1,1] x, float[1,1,1,1,1] w"),
        ("com.microsoft.FusedMatMul (x, w)", "float[1,1,1] x, float w"),
        ("GatherND <batch_dims = 1> (x, w)", "float[2,1,1] x, int64[2] w"),
    ],
)
def test_operands_of_other_ranks(nodes: str, inputs: str) -> None:
    """They are refused, here or by the kernel."""
    header = '<ir_version: 8, opset_import: ["" : 21, "com.microsoft" : 1]>'
    model = onnx.parser.parse_model(f"{header} g ({inputs}) => (float[] y) {{ y = {nodes} }}")
    with suppress(InvalidGraph):
        compile_model(model.SerializeToString(), providers=["wasm"])
