"""One stem names an operator everywhere: its family, the module of `py_ort.ops` that declares it.

Both providers have their kernels of it below a folder or a file of that name, and `tests/ops` has their cases in a
table of that name. Each of the four leads to the others.
"""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import re
import subprocess
import sys
from collections import defaultdict
from functools import cache
from pathlib import Path

import pytest

import py_ort.ops
from py_ort.ir.operators import MICROSOFT, NHWC
from py_ort.schema.dialect_code import camel, constants
from py_ort.schema.scalar_functions import FUNCTIONS

ROOT = Path(__file__).parents[3]
CORE, WEB, TABLES = ROOT / "wasm_build/src/kernels", ROOT / "web/src/providers/webgpu/kernels", ROOT / "tests/ops"
ASSETS, HELPERS_OF_TESTS = ROOT / "py_ort/assets", ROOT / "tests/helpers"
#: Folders of kernels that are not families: code for many families.
HELPERS = {"shared"}
#: Families without a table.
UNTABLED = {
    "sequences": "a case's values are tensors: tests/unit/test_node_cases_on_the_core.py has ONNX's cases",
}

Key = tuple[str, str]


@cache
def families() -> dict[Key, str]:
    """The module that declares each operator."""
    modules = [info.name for info in pkgutil.iter_modules(py_ort.ops.__path__)]
    return {
        (declared.domain, declared.op_type): name
        for name in modules
        for declared in getattr(importlib.import_module(f"py_ort.ops.{name}"), "OPERATORS", ())
    }


def _plain(domain: str, op_type: str) -> Key:
    """The NHWC form of an operator is in the family of the operator."""
    return ("" if domain == NHWC else domain), op_type


def _entries(provider: str) -> list[dict[str, str]]:
    return json.loads((ASSETS / f"kernels.{provider}.json").read_text())


@cache
def on_webgpu() -> dict[Key, str]:
    """The file of each WebGPU kernel, as the build found it."""
    return {_plain(entry["domain"], entry["op_type"]): entry["source"] for entry in _entries("webgpu")}


@cache
def on_wasm() -> dict[Key, str]:
    """The file of each CPU kernel, by its registration."""
    words = {"kNhwcDomain": NHWC, "kMicrosoftDomain": MICROSOFT}
    words |= {f"dialect::{camel(name)}": value for name, value in constants() if isinstance(value, str)}
    found: dict[Key, str] = {}
    for file in CORE.rglob("*.cc"):
        text, source = file.read_text(), file.relative_to(CORE).with_suffix("").as_posix()
        for pair in re.findall(r'PY_ORT_(?:KERNEL|STEP)\(\s*("[^"]*"|[\w:]+),\s*("\w+"|dialect::\w+)', text):
            domain, op_type = (words.get(word, word.strip('"')) for word in pair)
            found[_plain(domain, op_type)] = source
        if "PY_ORT_UNARY_OPERATORS(" in text:  # of the table of scalar functions
            found |= {(domain, row.name): source for row in FUNCTIONS.values() for domain in row.domains}
    return found


def named(path: str, family: str) -> bool:
    """Return True if a folder or the file has the family's name."""
    return family in path.split("/")


def test_every_kernel_of_the_core_is_found() -> None:
    """The kernels read in the sources are those that the core registers."""
    assert {_plain(entry["domain"], entry["op_type"]) for entry in _entries("wasm")} - set(on_wasm()) == set()


@pytest.mark.parametrize("kernels", [on_webgpu, on_wasm], ids=["webgpu", "wasm"])
def test_kernels_lie_where_their_family_says(kernels: object) -> None:
    """Each operator with a kernel is declared, and its kernel's path has the family's name."""
    wrong = []
    for key, source in kernels().items():  # type: ignore[operator]
        family = families().get(key)
        if family is None or not named(source, family):
            wrong.append(f"{key}: in {source}, declared in {family}")
    assert wrong == []


@pytest.mark.parametrize("folder", [CORE, WEB], ids=["core", "web"])
def test_folders_of_kernels_are_families(folder: Path) -> None:
    """All kernels are in folders, and all folders have a family's name."""
    assert [path.name for path in folder.iterdir() if path.is_file()] == []
    assert {path.name for path in folder.iterdir()} - HELPERS - set(families().values()) == set()


@cache
def tables() -> dict[str, list[Key]]:
    """The operators of each table of `tests/ops`, which are loaded in a separate process: they import by path."""
    code = (
        "import json; from tables import OWN, SHARED; all = SHARED | OWN; "
        "print(json.dumps({name: [(case.domain, case.op) for case in cases] for name, cases in all.items()}))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=TABLES,
        env=os.environ | {"PYTHONPATH": str(HELPERS_OF_TESTS)},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return {name: [_plain(*key) for key in keys] for name, keys in json.loads(done.stdout).items()}


def test_tables_have_the_names_of_families() -> None:
    """A family with a kernel has a table of its name, with all its operators that are in any table."""
    own: dict[str, set[Key]] = defaultdict(set)
    anywhere: set[Key] = set()
    for name, keys in tables().items():
        anywhere |= set(keys)
        for family in set(families().values()):
            if named(name, family):
                own[family] |= set(keys)
    with_kernels = {key: family for key, family in families().items() if key in on_webgpu() or key in on_wasm()}
    assert set(with_kernels.values()) - set(own) == set(UNTABLED)
    assert {key: family for key, family in with_kernels.items() if key in anywhere and key not in own[family]} == {}
