"""Run WebGPU kernels alone in Chromium and compare with onnxruntime or given arrays: no session, no core.

From a shell, one case or a list of cases in a JSON file:

    .venv/bin/python web/test/kernel_page/run.py case.json [--only softmax] [--repeat 5] [--adapter swiftshader]

A case: {"op": "Softmax", "domain": "", "attributes": {"axis": -1}, "inputs": [INPUT or null, ...], "host": [1],
"outputs": 1}. INPUT: {"dims": [2, 3], "dtype": "float32"} (random, seeded) or {"values": [[...]], "dtype": "int64"}.
The expectation is onnxruntime's, or "expected": [INPUT, ...]. From Python, with arrays and any expectation:

    with KernelPage(only=["softmax"]) as page:
        result = page.run("Softmax", [x], {"axis": -1}, repeat=5)    # result.outputs, result.median_ms, result.shaders
        check(result.outputs[0], expected)
"""

from __future__ import annotations

import argparse
import base64
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser_page import ADAPTERS, BrowserPage

REDUCTIONS = ("Mean", "Sum", "Max", "Min", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")
#: The inputs that the lowering declares as host inputs.
HOST_INPUTS: dict[str, Sequence[int]] = {
    **dict.fromkeys(["Reshape", "Expand", "Tile", "Squeeze", "Unsqueeze", "Split", "TopK", "OneHot", "CumSum"], (1,)),
    **dict.fromkeys([f"Reduce{kind}" for kind in REDUCTIONS], (1,)),
    "Slice": [1, 2, 3, 4],
    "Pad": [1, 3],
    "Resize": [1, 2, 3],
    "ConstantOfShape": [0],
    "Range": [0, 1, 2],
    "Trilu": [1],
    "Clip": [1, 2],
    "GroupQueryAttention": [6],
    "MultiHeadAttention": [8],
}


@dataclass
class KernelResult:
    """A kernel's result. `median_ms`: one run, without transfers; None unless `repeat` was given."""

    outputs: list[np.ndarray | None]
    shaders: list[str]
    compile_ms: float
    median_ms: float | None


class KernelPage:
    """A browser with the kernel page.

    Args:
        only: The stems of the kernel files to build in: faster, but errors in others are not noticed.
        adapter: A key of `ADAPTERS`.
    """

    def __init__(self, only: Sequence[str] | None = None, adapter: str = "swiftshader") -> None:
        chosen = [arg for stem in only or [] for arg in ("--only", stem)]
        self._page = BrowserPage(["--page", "kernel_page", *chosen], "runKernel", adapter)

    def __enter__(self) -> KernelPage:
        return self

    def __exit__(self, *_: object) -> None:
        self._page.close()

    def device(self) -> dict[str, Any]:
        """Vendor, features and limits of the adapter."""
        return self._page.evaluate("describeDevice()")

    def run(
        self,
        op: str,
        inputs: Sequence[np.ndarray | None],
        attributes: Mapping[str, Any] | None = None,
        *,
        domain: str = "",
        host: Sequence[int] | None = None,
        outputs: int | Sequence[bool] = 1,
        hardware: bool = False,
        traits: Mapping[str, Any] | None = None,
        repeat: int = 0,
    ) -> KernelResult:
        """Run one kernel on numpy arrays.

        Args:
            op: The operator.
            inputs: None for an omitted optional input. An array that occurs twice is one tensor.
            attributes: By name.
            domain: "" is ai.onnx.
            host: Indices of the host inputs; by default those that the lowering declares for `op`.
            outputs: Their number, or for each whether it is wanted.
            hardware: Use the variants for hardware, whatever the adapter is.
            traits: Replace the device's traits by these, e.g. {"maxStorageBindingSize": 4096}.
            repeat: Measure the time: the median over this number of batches.
        """
        case = {
            "op": op,
            "domain": domain,
            "attributes": dict(attributes or {}),
            "inputs": _encode_all(inputs),
            "host": list(HOST_INPUTS.get(op, []) if host is None else host),
            "outputs": [True] * outputs if isinstance(outputs, int) else list(outputs),
            "hardware": hardware,
            "traits": dict(traits) if traits else None,
            "repeat": repeat,
        }
        result = self._page.evaluate("(test) => runKernel(test)", case)
        arrays = [_decode(output) for output in result["outputs"]]
        return KernelResult(arrays, result["shaders"], result["compile_ms"], result.get("median_ms"))


def _encode_all(arrays: Sequence[np.ndarray | None]) -> list[dict[str, Any] | int | None]:
    encoded: list[dict[str, Any] | int | None] = []
    for i, array in enumerate(arrays):
        same = next((j for j in range(i) if arrays[j] is array), None) if array is not None else None
        encoded.append(_encode(array) if same is None else same)
    return encoded


def _encode(array: np.ndarray | None) -> dict[str, Any] | None:
    if array is None:
        return None
    array = np.asarray(array)
    data = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode()
    return {"dtype": array.dtype.name, "dims": list(array.shape), "data": data}


def _decode(tensor: dict[str, Any] | None) -> np.ndarray | None:
    if tensor is None:
        return None
    return np.frombuffer(base64.b64decode(tensor["data"]), tensor["dtype"]).reshape(tensor["dims"])


def check(actual: np.ndarray | None, expected: np.ndarray, atol: float = 1e-5, rtol: float = 1e-4) -> None:
    """Raise AssertionError unless `actual` has the dtype, the shape and, within tolerance, the values of `expected`."""
    assert actual is not None, "the output was not made"
    assert actual.dtype == expected.dtype, f"dtype {actual.dtype}, expected {expected.dtype}"
    np.testing.assert_allclose(actual, expected, atol=atol, rtol=rtol, strict=True)


def reference(
    op: str, inputs: Sequence[np.ndarray | None], attributes: Mapping[str, Any], domain: str, outputs: int
) -> list[np.ndarray]:
    """Return onnxruntime's outputs of a one-node model on the CPU."""
    import onnx
    import onnxruntime
    from onnx import helper

    names = [f"x{i}" if x is not None else "" for i, x in enumerate(inputs)]
    results = [f"y{i}" for i in range(outputs)]
    node = helper.make_node(op, names, results, domain=domain, **attributes)
    infos = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape)
        for name, x in zip(names, inputs, strict=True)
        if x is not None
    ]
    graph = helper.make_graph([node], "case", infos, [onnx.ValueInfoProto(name=name) for name in results])
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {name: x for name, x in zip(names, inputs, strict=True) if x is not None})


def _array(spec: dict[str, Any] | None, rng: np.random.Generator) -> np.ndarray | None:
    if spec is None:
        return None
    dtype = np.dtype(spec.get("dtype", "float32"))
    if "values" in spec:
        return np.array(spec["values"], dtype)
    dims = spec["dims"]
    return rng.standard_normal(dims).astype(dtype) if dtype.kind == "f" else rng.integers(0, 10, dims).astype(dtype)


def _run_case(
    page: KernelPage, case: Mapping[str, Any], inputs: Sequence[np.ndarray | None], options: argparse.Namespace
) -> KernelResult:
    op, domain, attributes = case["op"], case.get("domain", ""), case.get("attributes", {})
    outputs, host = case.get("outputs", 1), case.get("host")
    result = page.run(op, inputs, attributes, domain=domain, host=host, outputs=outputs, repeat=options.repeat)
    if "expected" in case:
        expected = [_array(spec, np.random.default_rng(0)) for spec in case["expected"]]
    else:
        expected = list(reference(op, inputs, attributes, domain, outputs))
    for actual, wanted in zip(result.outputs, expected, strict=True):
        assert wanted is not None
        check(actual, wanted, options.atol, options.rtol)
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", type=Path)
    parser.add_argument("--only", action="append", help="stems of the kernel files to build in")
    parser.add_argument("--repeat", type=int, default=0, help="time each case: the median over so many batches")
    parser.add_argument("--adapter", choices=sorted(ADAPTERS), default="swiftshader")
    parser.add_argument("--atol", type=float, default=1e-5)
    parser.add_argument("--rtol", type=float, default=1e-4)
    options = parser.parse_args()
    cases = json.loads(options.cases.read_text())
    failed = 0
    with KernelPage(options.only, options.adapter) as page:
        for i, case in enumerate(cases if isinstance(cases, list) else [cases]):
            inputs = [_array(spec, np.random.default_rng([i, j])) for j, spec in enumerate(case["inputs"])]
            shapes = ",".join("x".join(map(str, x.shape)) for x in inputs if x is not None)
            name = case.get("name", f"{case['op']}:{shapes}")
            try:
                result = _run_case(page, case, inputs, options)
            except Exception as error:
                failed += 1
                print(f"FAIL {name}: {error}")
                continue
            time = f" {result.median_ms:.3f} ms" if result.median_ms is not None else ""
            print(f"ok   {name}{time} ({', '.join(result.shaders)}; compiled in {result.compile_ms:.0f} ms)")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
