"""A model above 2 GB, and a process that loads it: `python large_model.py FOLDER` prints its times and memory, as JSON.

Consecutive matrix products, whose weights are in a file next to the model.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper

WIDTH, LAYERS = 10240, 6


def write(folder: Path) -> Path:
    """Write the model, with random weights of 2.5 GB; return its path."""
    block = np.random.default_rng(0).standard_normal((1024, WIDTH)).astype(np.float32) / np.float32(np.sqrt(WIDTH))
    nodes, weights, offset = [], [], 0
    with (folder / "weights.bin").open("wb") as file:
        for layer in range(LAYERS):
            for part in range(WIDTH // 1024):
                file.write((np.roll(block, 7 * part + layer, axis=1)).data)
            tensor = TensorProto(name=f"w{layer}", data_type=TensorProto.FLOAT, dims=[WIDTH, WIDTH])
            tensor.data_location = TensorProto.EXTERNAL
            size = 4 * WIDTH * WIDTH
            for key, value in (("location", "weights.bin"), ("offset", offset), ("length", size)):
                tensor.external_data.add(key=key, value=str(value))
            offset += size
            weights.append(tensor)
            nodes.append(
                helper.make_node("MatMul", [f"x{layer}", f"w{layer}"], [f"x{layer + 1}"], name=f"layer{layer}")
            )
    ends = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [1, WIDTH]) for i in (0, LAYERS)]
    graph = helper.make_graph(nodes, "large", ends[:1], ends[1:], weights)
    path = folder / "large.onnx"
    path.write_bytes(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()
    )
    return path


def expected(folder: Path, x: np.ndarray) -> np.ndarray:
    """Compute the output with numpy."""
    weights = np.memmap(folder / "weights.bin", np.float32, "r", shape=(LAYERS, WIDTH, WIDTH))
    for layer in range(LAYERS):
        x = x @ weights[layer]
    return x


def main(folder: Path) -> None:
    """Load the model on the GPU only, run it once, and print the peak of this process's own memory."""
    import py_ort

    most, over = 0, threading.Event()

    def watch() -> None:
        nonlocal most
        while not over.wait(0.02):
            status = Path("/proc/self/status").read_text()
            most = max(most, int(status.split("RssAnon:")[1].split()[0]) * 1024)

    threading.Thread(target=watch, daemon=True).start()
    options = py_ort.SessionOptions()
    options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    began = time.perf_counter()
    with py_ort.InferenceSession(folder / "large.onnx", options, providers=["webgpu"]) as session:
        created = time.perf_counter() - began
        x = np.random.default_rng(1).standard_normal((1, WIDTH)).astype(np.float32)
        (y,) = session.run(None, {"x0": x})
        over.set()
        error = float(np.max(np.abs(y - expected(folder, x))) / np.max(np.abs(y)))
        memory, heap = session.memory(), session.stats()["page"]["heap_bytes"]
    print(json.dumps({"own": most, "memory": memory, "heap": heap, "error": error, "create_s": created}))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
