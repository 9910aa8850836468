"""The tables of this folder: every module with a list `CASES`, by its path ("elementwise/unary").

A family's table has the family's name, like its module in `py_ort/ops` and its folders of kernels; other tables cover a
feature of many operators. Those of wasm/ are for the CPU kernels only, the rest for both providers.
"""

from __future__ import annotations

import importlib
from pathlib import Path

from case import Case

HERE = Path(__file__).parent
#: Modules that are no tables.
APART = ("case", "conftest", "tables")


def _tables(paths: list[Path]) -> dict[str, list[Case]]:
    names = [path.relative_to(HERE).with_suffix("").as_posix() for path in paths]
    return {
        name: importlib.import_module(name.replace("/", ".")).CASES
        for name in sorted(names)
        if name not in APART and not name.startswith("test_")
    }


OWN = _tables(list((HERE / "wasm").rglob("*.py")))
SHARED = _tables([path for path in HERE.rglob("*.py") if HERE / "wasm" not in path.parents])
