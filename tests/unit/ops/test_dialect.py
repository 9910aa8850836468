"""Names of `py_ort/schema/dialect.py`, and positions of inputs, are spelled there only; its tables are up to date."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from py_ort.compiler.document import pages
from py_ort.ir.operators import INTERNAL, operators
from py_ort.schema import dialect
from py_ort.schema.dialect_code import constants, cpp, typescript

ROOT = Path(__file__).parents[3]
NAMES = {value: name for name, value in constants() if isinstance(value, str)}
OPERATORS = {row.name for row in dialect.OPERATORS}
#: Names of the dialect with another meaning, by file; "": everywhere.
ELSEWHERE = {
    "": {"reduction"},  # also ONNX's, of scatters and losses
    "py_ort/bench/decode/random_llama.py": {"gate"},  # a layer
    "wasm_build/src/ep/jsep_contract.js": {"com.ms.internal.nhwc"},  # a library of Emscripten: no imports
    "py_ort/ir/epilogue.py": {"_RESIDUAL"},  # a register
    "web/src/providers/webgpu/wgsl/epilogue.ts": {"RESIDUAL"},  # the same
}
#: Functions of Python whose keywords are attributes, and those whose words are features.
WRITING, ASKING = {"set_attributes", "op", "absorb_with", "side_by_side"}, {"offers", "takes"}
#: Attributes are read so in TypeScript and C++.
READ = re.compile(r"(?:\b(?:integers?|numbers?|texts?|tensor|has)\(|readEpilogue\(\w+, )(['\"])([\w.]+)\1")
QUOTED = re.compile(r"(['\"])([\w.]+)\1")
POSITION = re.compile(r"_?(?:PRODUCT_)?(?:RESIDUAL|NORM|WORDS|INTO)|k(?:Residual|Norm|Words|Into)(?:Input)?")
CONSTANT = re.compile(r"^\s*(?:export |inline )*(?:const|constexpr) (?:size_t |int )?\[?([\w, ]+)\]? = \[?\d")


def _of_python(text: str) -> Iterator[tuple[int, str]]:
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    called = {id(call): getattr(call.func, "id", getattr(call.func, "attr", "")) for call in calls}
    features = {id(arg) for call in calls if called[id(call)] in ASKING for arg in call.args}
    for call in calls:
        if called[id(call)] in WRITING:
            yield from ((call.lineno, each.arg) for each in call.keywords if each.arg in NAMES)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in NAMES and id(node) not in features:
            yield node.lineno, node.value
        if isinstance(node, ast.Assign) and re.match(r"\(?\d", ast.unparse(node.value)):
            names = [each.id for each in ast.walk(node.targets[0]) if isinstance(each, ast.Name)]
            yield from ((node.lineno, name) for name in names if POSITION.fullmatch(name))


def _of_others(text: str) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, found[2]) for found in READ.finditer(line) if found[2] in NAMES)
        quoted = (found[2] for found in QUOTED.finditer(line))
        yield from ((number, word) for word in quoted if word in OPERATORS or word.startswith(INTERNAL))
        if found := CONSTANT.match(line):
            yield from ((number, name) for name in found[1].split(", ") if POSITION.fullmatch(name))


def _spelled(path: Path) -> list[str]:
    name = path.relative_to(ROOT).as_posix()
    found = (_of_python if path.suffix == ".py" else _of_others)(path.read_text("utf-8"))
    allowed = ELSEWHERE[""] | ELSEWHERE.get(name, set())
    return [
        f"{name}:{line}: {word} is a name of py_ort/schema/dialect.py" for line, word in found if word not in allowed
    ]


@pytest.mark.parametrize("folder", ["py_ort", "web/src", "wasm_build/src", "wasm_build/include"])
def test_no_name_is_spelled_by_hand(folder: str) -> None:
    code = (path for path in sorted((ROOT / folder).rglob("*.*")) if path.suffix in (".py", ".ts", ".cc", ".h", ".js"))
    written = [path for path in code if not {"gen", "schema", "assets"} & set(path.parts)]
    assert written
    assert [fault for path in written for fault in _spelled(path)] == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ('x = attribute(node, "x_columns")', "x_columns"),
        ("set_attributes(node, into=1)", "into"),
        ('build.op("Conv", x, **{"epilogue": text})', "epilogue"),
        ("_BIAS, _RESIDUAL = 2, 3", "_RESIDUAL"),
    ],
)
def test_python_is_searched(text: str, word: str) -> None:
    assert word in [found for _, found in _of_python(text)]


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("  columns: a.integers('x_columns'),", "x_columns"),
        ("  gate: readEpilogue(a, 'gate'),", "gate"),
        ('PY_ORT_KERNEL(domain, "ByteTable", "int8", ByteTable);', "ByteTable"),
        ("constexpr size_t kResidualInput = 3;", "kResidualInput"),
        ("const [BIAS, RESIDUAL] = [2, 3];", "RESIDUAL"),
    ],
)
def test_other_languages_are_searched(text: str, word: str) -> None:
    assert word in [found for _, found in _of_others(text)]


def test_constants_are_distinct_and_in_all_languages() -> None:
    assert len(NAMES) == sum(isinstance(value, str) for _, value in constants())
    assert '  X_COLUMNS = "x_columns",\n' in typescript()
    assert 'inline constexpr const char* kXColumns = "x_columns";' in cpp()
    assert "inline constexpr size_t kProductResidual = 3;" in cpp()


def test_every_row_is_a_constant_and_every_operator_is_declared() -> None:
    assert {row.name for row in (*dialect.ATTRIBUTES, *dialect.OPERATORS)} <= set(NAMES)
    assert {name for domain, name in operators() if domain == INTERNAL} >= OPERATORS
    assert all((ROOT / "py_ort" / folder / f"{row.maker}.py").is_file() for row in dialect.OPERATORS
               for folder in ("" if row.maker.startswith("ops") else "compiler",))  # fmt: skip


def test_the_pages_are_up_to_date() -> None:
    """Where this fails: `python -m py_ort.compiler.document`."""
    internals = ROOT / "docs/internals.md"
    assert pages()[internals] == internals.read_text("utf-8")
