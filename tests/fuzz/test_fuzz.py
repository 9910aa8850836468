"""The short form of `make fuzz`: mutated models end in results or typed errors, random graphs in native's results.

A failure is printed as a small model with its seed, and kept in build/fuzz; `make fuzz SEEDS=…` repeats it.
"""

from __future__ import annotations

from collections import Counter
from itertools import islice

import numpy as np
import onnx
import pytest
from campaign import faults
from child import Child
from runs import native
from shrinking import shrink

#: (kind, provider) -> number of seeds.
SHORT = {
    ("models", "wasm"): 300,
    ("models", "webgpu"): 50,
    ("graphs", "wasm"): 40,
    ("graphs", "webgpu"): 8,
    ("operands", "wasm"): 60,
    ("operands", "webgpu"): 30,
}


@pytest.mark.parametrize(("kind", "provider"), SHORT, ids=map("-".join, SHORT))
def test_no_faults(kind: str, provider: str) -> None:
    counts: Counter[str] = Counter()
    found = list(islice(faults(kind, provider, iter(range(SHORT[kind, provider])), set(), counts), 3))
    assert counts["ok"] > 0.1 * counts.total(), f"hardly any model ran: {counts}"
    assert not found, "\n\n".join(found)


def test_what_shows_a_fault_is_made_small() -> None:
    """From a graph with one relevant node, that node remains, with sizes of one."""
    text = """<ir_version: 8, opset_import: ["" : 21]> g (float[n,4] x, float[4] z) => (float[n,4] y, float[n,4] u)
    { a = Relu(x)  b = Add(a, z)  c = Neg(b)  d = Sin(c)  y = Abs(d)  u = Cos(a) }"""
    model = onnx.parser.parse_model(text).SerializeToString()
    feeds = {"x": np.full((3, 4), 0.123, np.float32), "z": np.ones(4, np.float32)}
    child = Child(native, 60)

    def shows(data: bytes, fed: object) -> bool:
        return child.ask(data, fed).status == "ok" and b"Neg" in data

    small, fewer = shrink(model, feeds, shows, child)
    child.close()
    (node,) = [node for node in onnx.ModelProto.FromString(small).graph.node if node.op_type != "Identity"]
    assert node.op_type == "Neg"
    assert [value.size for value in fewer.values()] == [1]
