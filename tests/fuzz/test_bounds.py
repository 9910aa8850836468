"""Wrong operands on a core that checks each access to a tensor (`make bounds`): no access is outside."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from wrong_operands import drawn

from py_ort.compiler.compile import compile_model
from py_ort.exceptions import PyOrtError

pytestmark = pytest.mark.skipif(
    Path(os.environ.get("PY_ORT_CORE", "")).parent.name != "core-bounds", reason="needs the core of make bounds"
)

DRAWS, BATCH = 5000, 250

#: Claims that a plan of 100 bytes has 4000, and reads the 2000th first.
_BEYOND = """
const { Core } = require('./core.cjs');
const plan = Buffer.alloc(100);
plan.writeUint32LE(2000);
plan.write('PORT', 4);
Core.load().then((core) => core.module._ort_session_create(core.copyIn(plan), 4000));
"""


def test_an_access_beyond_is_seen() -> None:
    folder = Path(__file__).parents[2] / "wasm_build/test"
    done = subprocess.run(["node", "-e", _BEYOND], cwd=folder, capture_output=True, text=True)
    assert done.returncode != 0
    assert "heap-buffer-overflow" in done.stderr


@pytest.mark.parametrize("first", range(0, DRAWS, BATCH))
def test_no_access_beyond_a_tensor(first: int) -> None:
    from plans_in_node import CoreError, run_plans

    names, plans, counts = [], [], Counter[str]()
    for seed in range(first, first + BATCH):
        model, feeds = drawn(seed)
        try:
            plans.append((compile_model(model, providers=["wasm"]), feeds))
            names.append(f"{seed}: {plans[-1][0].model.graph.name} { {name: x.shape for name, x in feeds.items()} }")
        except PyOrtError:
            counts["refused by the compiler"] += 1
    crashed = []
    for name, answer in zip(names, run_plans(plans), strict=True):
        refused = isinstance(answer, CoreError)
        counts["refused by the core" if refused else "ran"] += 1
        if refused and "crashed" in str(answer):
            crashed.append(f"{name}: {answer}")
    assert counts["ran"] > 0.2 * BATCH, counts
    assert counts["refused by the core"] > 0.1 * BATCH, counts
    assert not crashed, "\n\n".join(crashed)
