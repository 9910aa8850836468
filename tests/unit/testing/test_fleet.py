"""The place where the cases of a fleet are compiled."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from py_ort import BrowserOptions
from py_ort.testing.nodes import has_processes, nodes_of

#: Prints the imports for a case after the smallest model was compiled.
LATER = """
    import sys
    from onnx import TensorProto, helper
    import py_ort.testing.fleet as fleet
    from py_ort.compiler import CompileOptions, compile_model
    from py_ort.compiler.load import load_model

    fleet._compile_once()
    before = set(sys.modules)
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", 3]) for name in "xy")
    nodes = [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Softmax", ["r"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "g", [x], [y]), ir_version=10)
    compile_model(load_model(model.SerializeToString()), providers=["wasm"], options=CompileOptions())
    print(*sorted(set(sys.modules) - before))
"""


@pytest.mark.parametrize(
    ("browsers", "cores", "jobs", "port", "wanted"),
    [
        (4, 2, 0, 0, False),
        (4, 4, 0, 0, True),
        (1, 4, 0, 0, False),
        (4, 2, 2, 0, True),
        (2, 4, 1, 0, False),
        (2, 4, 0, 8443, False),
    ],
)
def test_browsers_have_processes_where_there_are_cores(monkeypatch, browsers, cores, jobs, port, wanted) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: cores)
    fleet = nodes_of(["cdp:http://127.0.0.1:9"] * browsers, BrowserOptions(host="127.0.0.1", port=port))
    assert has_processes(fleet, jobs) is wanted


def test_the_first_case_finds_the_compiler_imported() -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LATER)], capture_output=True, text=True, timeout=100, check=True
    )
    assert not done.stdout.split()
