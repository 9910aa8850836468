"""`py_ort/ops` says what an operator is, and functions say what a part knows of it: tables of names are few."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest

import py_ort
from py_ort.ir.operators import op_types, operator, operators
from py_ort.ir.rules import Rules
from py_ort.providers import placement_table as report

ROOT = Path(py_ort.__file__).parent
#: Module and name of each table, and the reason for it.
ALLOWED = {
    "bench/decode/decoder.py _IN_PLACE": "read of an ONNX file that nobody has compiled",
    "schema/scalar_functions.py FUNCTIONS": "the one table of scalar functions, of which code is made",
    "compiler/passes/fuse/activation.py _HOSTS": "products whose kernels may end in a function",
    "compiler/passes/fuse/activation_forms.py _GELUS": "other names of one function",
    "compiler/passes/fuse/affine.py _STEPS": "functions whose results jump, for the pass that moves roundings",
    "compiler/passes/fuse/clamps.py CLAMPS": "what `clamped` knows, for the pass that asks it",
    "compiler/passes/fuse/gelu.py _ARGUMENTS": "formulas of one pattern, by their inner function",
    "providers/placement_table.py _VIEWS": "read without loading operators",
    "profiling/profile.py _CONTROL_FLOW": "read without loading operators",
    "compiler/passes/placed/wide_halves.py _EXACT": "operators whose types are their meaning, for the pass of types",
    "compiler/passes/placed/wide_halves.py _MOVES": "operators that move elements of several inputs",
    "schema/operand_contracts.py CONTRACTS": "the one table of contracts, of which code is made",
    "schema/operand_contracts.py _TO_FLOATS": "a part of that table",
    "compiler/saved/source_form.py _IN_PATTERNS": "what the patterns of other tools have",
}
MOST = 15


def _names() -> set[str]:
    known = {schema.name for schema in onnx.defs.get_all_schemas_with_history()}
    return known | {name for _, name in operators()}


def _tables(text: str, names: set[str]) -> Iterator[str]:
    """Names to which a module assigns at least two operators' names, in any form."""
    tree = ast.parse(text)
    classes = [item for node in tree.body if isinstance(node, ast.ClassDef) for item in node.body]
    for node in (*tree.body, *classes):
        if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
            continue
        texts = {item.value for item in ast.walk(node.value) if isinstance(item, ast.Constant)}
        if len(texts & names) > 1:
            yield ast.unparse(node.targets[0] if isinstance(node, ast.Assign) else node.target)


def test_tables_of_operators_are_few() -> None:
    names = _names()
    found = {
        f"{path.relative_to(ROOT).as_posix()} {table}"
        for path in ROOT.rglob("*.py")
        if path.relative_to(ROOT).parts[0] != "ops" and "gen" not in path.parts
        for table in _tables(path.read_text(encoding="utf-8"), names)
    }
    assert found == set(ALLOWED)
    assert len(ALLOWED) <= MOST


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('_A = ("Add", "Mul")', ["_A"]),
        ('_A: dict[str, int] = {**dict.fromkeys(("Add", "Mul"), 1)}', ["_A"]),
        ('class A:\n    b = frozenset({"Add", "Mul"})', ["b"]),
        ('_A = ("Add", "nothing", "Add")', []),
    ],
)
def test_a_table_is_seen(text: str, found: list[str]) -> None:
    assert list(_tables(text, _names())) == found


def test_views_of_the_report_are_those_of_the_operators() -> None:
    assert set(op_types("view")) == report._VIEWS


def test_traits_name_operators() -> None:
    for (domain, name), declared in operators().items():
        if declared.skip:
            assert ("com.microsoft", declared.skip) in operators()
        assert (declared.into is not None) == bool(declared.columns), (domain, name)
        assert not declared.walked or declared.bodies, (domain, name)


def test_a_rule_is_found_by_domain_and_said_once() -> None:
    rule = Rules[str](("", "here"))
    rule("Add", "Mul")("both")
    nodes = [onnx.helper.make_node("Mul", ["a", "b"], ["y"], domain=domain) for domain in ("", "here", "there")]
    assert [rule.of(node) for node in nodes] == ["both", "both", None]
    with pytest.raises(AssertionError, match="Mul has a rule already"):
        rule("Mul")("again")
    assert operator("", "Add").commutative
