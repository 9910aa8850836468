"""The language of sizes: the same values in Python and in the page, symbols in Python, and errors."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import sympy

from py_ort.exceptions import InvalidArgument
from py_ort.user_kernels.sizes import Env, SizeError, evaluate, parse, scalar_type

WEB = Path(__file__).parents[3] / "web"
SHAPES = {"x": [2, 3, 8], "y": [3, 1], "s": []}
ATTRIBUTES = {"alpha": 0.5, "k": 3, "mode": "linear", "pads": [1, 2]}
VALUES = {"sizes": [7, -1]}
TENSORS = ["x", "y", "s", "gone", "sizes"]

CASES: dict[str, Any] = {
    "x.shape": [2, 3, 8],
    "x.rank": 3,
    "s.rank": 0,
    "x.size": 48,
    "s.size": 1,
    "x.shape[-1]": 8,
    "x.shape[:-1]": [2, 3],
    "x.shape[1:]": [3, 8],
    "x.shape[:-1] + [2 * x.shape[-1] + 1]": [2, 3, 17],
    "[x.shape[0], k, 4]": [2, 3, 4],
    "broadcast(x.shape, y.shape)": [2, 3, 8],
    "broadcast(x.shape[:2] + [1], [8])": [2, 3, 8],
    "-k": -3,
    "-7 // 2": -4,
    "-7 % 3": 2,
    "7 / 2": 3.5,
    "ceil_div(x.size, 5)": 10,
    "min(x.shape[0], k, 5) + max(1, k)": 5,
    "ceil(alpha) + floor(alpha)": 1,
    "abs(-k)": 3,
    "len(pads)": 2,
    "prod(pads)": 2,
    "pads[1] * alpha": 1.0,
    "mode == 'linear'": 1,
    "mode != 'linear' or k >= 3 and not k < 3": 1,
    "k if mode == 'cubic' else 2 * k": 6,
    "present(gone) + present(y)": 1,
    "sizes.values[0] + sizes.values[-1]": 6,
    "f32(k)": 3,
}


def env() -> Env:
    return Env(SHAPES, ATTRIBUTES, VALUES)


def tree(text: str) -> Any:
    return parse(text, TENSORS, ATTRIBUTES, "test")


@pytest.mark.parametrize("text", CASES)
def test_value(text: str) -> None:
    assert evaluate(tree(text), env()) == CASES[text]


def test_shapes_that_do_not_broadcast() -> None:
    with pytest.raises(SizeError, match="do not broadcast"):
        evaluate(tree("broadcast(x.shape, [4, 1])"), env())


def test_the_page_computes_the_same(tmp_path: Path) -> None:
    texts = list(CASES)
    script = tmp_path / "sizes.ts"
    script.write_text(
        f"import {{ evaluate }} from {json.dumps(str(WEB / 'src/providers/webgpu/user_kernels/sizes.ts'))};\n"
        f"const values: any = {json.dumps(VALUES)};\n"
        f"const env: any = {{ shapes: {json.dumps(SHAPES)}, attributes: {json.dumps(ATTRIBUTES)}, "
        "values: (name: string) => values[name] };\n"
        f"const trees: any[] = {json.dumps([tree(text) for text in texts])};\n"
        "console.log(JSON.stringify(trees.map((tree) => evaluate(tree, env))));\n"
    )
    build = [WEB / "node_modules/.bin/esbuild", script, "--bundle", "--format=esm", "--platform=node"]
    bundle = subprocess.run(build, check=True, capture_output=True, cwd=WEB).stdout
    made = subprocess.run(["node", "--input-type=module"], input=bundle, check=True, capture_output=True).stdout
    assert dict(zip(texts, json.loads(made), strict=True)) == CASES


def test_symbols() -> None:
    n, m = sympy.symbols("n m", integer=True, positive=True)
    found = Env({"x": [n, 3, m], "y": [n, None]}, ATTRIBUTES)
    assert evaluate(tree("x.shape[:-1] + [2 * x.shape[-1]]"), found) == [n, 3, 2 * m]
    assert evaluate(tree("[x.shape[0] - x.shape[0]]"), found) == [0]
    assert evaluate(tree("broadcast(x.shape, [3, 1])"), found) == [n, 3, m]
    assert evaluate(tree("broadcast(x.shape, y.shape)"), found)[0] == n
    assert evaluate(tree("[y.shape[1] + 1, 2]"), found) == [None, 2]
    assert evaluate(tree("k if x.shape[0] == y.shape[1] else 2"), found) is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "write x.shape"),
        ("z.shape", "not of the language"),
        ("beta", "there are x.shape"),
        ("x.shape[", "never closed"),
        ("__import__('os')", "no function '__import__'"),
        ("(lambda: 1)()", "not of the language"),
        ("[d for d in x.shape]", "not of the language"),
        ("ceil_div(1)", "takes 2 arguments"),
    ],
)
def test_mistakes(text: str, said: str) -> None:
    with pytest.raises(InvalidArgument, match="test: ") as caught:
        tree(text)
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["x.shape[3]", "1 // (k - 3)", "gone.shape", "x.shape * x.shape"])
def test_no_value(text: str) -> None:
    with pytest.raises(SizeError):
        evaluate(tree(text), env())


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("x.size", "u32"),
        ("k", "i32"),
        ("alpha", "f32"),
        ("1 / x.size", "f32"),
        ("floor(alpha * 2)", "u32"),
        ("i32(x.size)", "i32"),
    ],
)
def test_type_of_a_uniform(text: str, kind: str) -> None:
    assert scalar_type(tree(text), {"alpha": "f", "k": "i", "mode": "s", "pads": "is"}) == kind
