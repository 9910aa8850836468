"""The tables of this folder on WebGL, by sessions: one of six of the cases that are nodes of models.

Shaders check that each thread writes the element of its own index: a texel in which it does not is poisoned.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import onnx
import pytest
from case import MICROSOFT, TOLERANCES, Case, check_signs
from onnx import helper
from tables import SHARED

import py_ort
from py_ort.exceptions import NotImplemented

ASSETS = Path(py_ort.__file__).parent / "assets"
KERNELS = {(entry["domain"], entry["op_type"]) for entry in json.loads((ASSETS / "kernels.webgl.json").read_text())}
CHECKED = ("webgl", {"deviceId": "1", "checkWrites": "1"})
STEP = 1 if os.environ.get("PY_ORT_ALL_CASES") == "1" else 6
CASES = {
    f"{table}/{case.id}": case
    for table, cases in SHARED.items()
    for case in [case for case in cases if (case.domain, case.op) in KERNELS and not callable(case.expected)][::STEP]
}


def model(case: Case, arrays: list[np.ndarray | None]) -> tuple[bytes, dict[str, np.ndarray]]:
    """Return the case as a model, and its feeds; inputs that kernels read on the CPU are constants."""
    names = [f"x{case.same.get(k, k)}" if x is not None else "" for k, x in enumerate(arrays)]
    outputs = [f"y{k}" for k in range(case.outputs)]
    node = helper.make_node(case.op, names, outputs, name="node", domain=case.domain, **case.attributes)
    feeds = {name: x for name, x in zip(names, arrays, strict=True) if x is not None}
    infos = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(x.dtype), x.shape) for n, x in feeds.items()
    ]
    graph = helper.make_graph([node], "case", infos, [onnx.ValueInfoProto(name=n) for n in outputs])
    domains = dict.fromkeys(["", MICROSOFT, case.domain])
    opsets = [helper.make_opsetid(domain, 1 if domain else 26 if case.expected == "onnx" else 23) for domain in domains]
    return helper.make_model(graph, opset_imports=opsets, ir_version=10).SerializeToString(), feeds


@pytest.mark.browser
@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_kernel(case: Case) -> None:
    arrays = case.arrays()
    proto, feeds = model(case, arrays)
    options = py_ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    try:
        with py_ort.InferenceSession(proto, options, providers=[CHECKED]) as session:
            found = session.run(None, feeds)
    except NotImplemented as e:
        pytest.skip(e.message)
    absolute, relative = TOLERANCES[case.tolerance]
    for k, (actual, wanted) in enumerate(zip(found, case.expectation(arrays), strict=True)):
        assert (actual.dtype, actual.shape) == (wanted.dtype, wanted.shape), f"output {k}"
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(actual, wanted, rtol=relative, atol=absolute, err_msg=f"output {k}")
        check_signs(case, actual, wanted)
