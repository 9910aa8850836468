"""Programs without any mention of py_ort: `python -m py_ort SCRIPT`, and PY_ORT_INSTALL."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

onnxruntime = pytest.importorskip("onnxruntime")
PTH = Path(__file__).parents[2] / "py_ort/compat/py_ort_install.pth"
PROGRAM = """
import sys
import numpy as np
import onnxruntime
from onnxruntime.datasets import get_example

session = onnxruntime.InferenceSession(get_example("mul_1.onnx"))
(y,) = session.run(None, {"X": np.ones((3, 2), np.float32)})
print(type(session).__mro__[1].__module__, session.get_providers(), y.ravel().tolist(), sys.argv[1:], __name__)
"""
Y = "[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]"


def _run(*arguments, **variables):
    environment = {**os.environ, "PY_ORT_WEBGPU": "software", **variables}
    done = subprocess.run([sys.executable, *arguments], env=environment, capture_output=True, text=True, timeout=120)
    return done.stdout + done.stderr if done.returncode else done.stdout


OURS = "py_ort.runtime.inference_session"


@pytest.fixture
def script(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path / "program.py"


@pytest.mark.parametrize("as_module", [False, True])
def test_a_script_with_its_arguments(script, as_module):
    program = ("-m", "program") if as_module else (str(script),)
    said = _run("-m", "py_ort", "--providers", "wasm", *program, "--verbose", "-x", PYTHONPATH=_path(script.parent))
    assert said == f"{OURS} ['CPUExecutionProvider'] {Y} ['--verbose', '-x'] __main__\n"


def test_a_script_that_is_not_there(tmp_path):
    assert "there is no file" in _run("-m", "py_ort", str(tmp_path / "no.py"))


@pytest.mark.parametrize(
    ("value", "expected"), [("wasm", OURS), ("1", OURS), ("0", onnxruntime.InferenceSession.__mro__[1].__module__)]
)
def test_the_variable_is_for_a_whole_process(script, tmp_path, value, expected):
    """`site` reads the line from any folder of packages, here one added by PYTHONPATH's sitecustomize."""
    (tmp_path / PTH.name).write_text(PTH.read_text())
    (tmp_path / "sitecustomize.py").write_text(f"import site; site.addsitedir({str(tmp_path)!r})")
    said = _run(str(script), PY_ORT_INSTALL=value, PYTHONPATH=_path(tmp_path))
    assert said.startswith(expected) and Y in said


def test_a_search_for_it_is_no_import(script):
    """Libraries search first, to find out if they can import it."""
    script.write_text("import importlib.util; assert importlib.util.find_spec('onnxruntime')\n" + PROGRAM)
    assert OURS in _run("-m", "py_ort", "--providers", "wasm", str(script))


def _path(folder):
    return os.pathsep.join([str(folder), *filter(None, [os.environ.get("PYTHONPATH")])])
