"""ONNX's official test runner on `py_ort.backend`: a part of its cases, run like any user would.

Each of them on wasm (…_cpu), and on WebGPU with wasm after it (…_cuda: the runner knows no other GPU).
"""

from __future__ import annotations

import importlib
import re
import sys
import warnings
from types import ModuleType

import onnx.backend.test
import pytest
import small_models
from onnx import helper
from onnx.backend.test import loader
from onnx.backend.test.case import node
from shared_browser import BROWSER

from py_ort import BrowserOptions
from py_ort.backend import PyOrtBackend
from py_ort.exceptions import InvalidArgument, NoAdapter

#: test_loop16_seq_none is skipped: the runner cannot compare tensors of rank 0 in a sequence.
CHOSEN = re.compile(
    r"test_(relu|add|loop(?!16)|if_seq|sequence_(insert|map_add)|identity_opt|optional_get_element|top_k_smallest|"
    r"cast_FLOAT_to_(BFLOAT16|FLOAT8E4M3FN|INT4)|operator_(conv|lstm))\w*_(cpu|cuda)"
)
#: Modules that generate the cases: all others take ten seconds, in each process that collects tests.
MODULES = (
    "add",
    "cast",
    "identity",
    "if_",
    "loop",
    "optionalgetelement",
    "relu",
    "sequenceinsert",
    "sequence_map",
    "topk",
)


class Here(PyOrtBackend):
    """In the browser that all tests share."""

    browser = BROWSER


class WithoutWebGpu(PyOrtBackend):
    """In a browser without WebGPU."""

    browser = BrowserOptions(webgpu="off")


def chosen_cases() -> dict[str, type]:
    """The runner's test classes, with the chosen tests only."""

    def import_some(package: ModuleType) -> None:
        for name in MODULES:
            importlib.import_module(f"{package.__name__}.{name}")

    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as patch:
        for importer in (loader, node):
            patch.setattr(importer, "import_recursive", import_some)
        patch.setattr(Here, "supports_device", lambda device: True)  # otherwise each process would start a browser
        warnings.simplefilter("ignore")  # its generators divide by zero on purpose
        cases = onnx.backend.test.BackendTest(Here, __name__).test_cases
    for case in cases.values():
        for name in [name for name in vars(case) if name.startswith("test_") and not CHOSEN.fullmatch(name)]:
            delattr(case, name)
    return cases


_BEFORE = set(sys.modules)
globals().update(chosen_cases())
GENERATED = {name.removeprefix(f"{node.__name__}.") for name in sys.modules.keys() - _BEFORE if node.__name__ in name}


def test_no_other_cases_are_generated():
    assert set(MODULES) >= GENERATED


@pytest.mark.parametrize("device, counts", [("CPU", {"wasm": 1}), ("CUDA:0", {"webgpu": 1, "wasm": 0})])
def test_devices_are_providers(device, counts):
    assert Here.supports_device(device)
    model = onnx.load_from_string(small_models.add())
    with Here.prepare(model, device).session as session:
        assert session.placement().counts() == counts


def test_a_device_that_is_not_here(page_errors):
    assert WithoutWebGpu.supports_device("CPU") and not WithoutWebGpu.supports_device("CUDA")
    assert not Here.supports_device("TPU") and not WithoutWebGpu.supports_device("TPU")
    model = onnx.load_from_string(small_models.add())
    with pytest.raises(NoAdapter, match="What helps"):
        WithoutWebGpu.prepare(model, "CUDA")
    with pytest.raises(InvalidArgument, match="TPU"):
        Here.run_node(helper.make_node("Relu", ["x"], ["y"]), [[1.0]], "TPU")


def test_a_browser_that_is_not_here(caplog):
    class Nowhere(PyOrtBackend):
        browser = "/no/such/browser"

    assert not Nowhere.supports_device("CUDA") and "/no/such/browser" in caplog.text
