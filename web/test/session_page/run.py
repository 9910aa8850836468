"""Run a model on WebGPU in a plain page: times, objects that a run made, a profile, and a comparison with onnxruntime.

    .venv/bin/python web/test/session_page/run.py MODEL.onnx [--dim N=1]... [--runs 5] [--profile] [--shaders]

Unknown dimensions are 1 unless set by `--dim NAME=SIZE` (or `--dim INPUT:AXIS=SIZE`); inputs are random.
"""

from __future__ import annotations

import argparse
import collections
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from browser_page import ADAPTERS
from plain_page import PlainPage

from py_ort.compiler.compile import compile_model


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=Path)
    parser.add_argument("--dim", action="append", default=[], metavar="NAME=SIZE")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--profile", action="store_true", help="the time of each shader, by timestamps")
    parser.add_argument("--shaders", action="store_true", help="the keys of the shaders that were compiled")
    parser.add_argument("--adapter", choices=sorted(ADAPTERS), default="swiftshader")
    options = parser.parse_args()
    sizes = {name: int(size) for name, size in (item.rsplit("=", 1) for item in options.dim)}
    feeds = random_feeds(options.model, sizes)

    compiled = compile_model(options.model)
    places = collections.Counter(node.provider for node in compiled.placement.nodes)
    strays = collections.Counter(node.op_type for node in compiled.placement.nodes if node.provider != "webgpu")
    print(f"nodes: {dict(places)}; not on webgpu: {dict(strays)}")
    page = PlainPage(options.adapter)
    try:
        session = page.load_compiled(compiled)
        print(f"create: {session.info['create_ms']:.0f} ms, weights {session.info['weights_ms']:.0f} ms")
        for _ in range(options.runs):
            ran = session.run(feeds)
            made = {name: count for name, count in ran.info["counters"].items() if count}
            print(
                f"{ran.info['run_ms']:9.1f} ms, compilation {ran.info['compile_ms']:.0f} ms, "
                f"{ran.info['segments']} segments, {made}"
            )
        compare(options.model, feeds, {name: y for name, y in ran.outputs.items() if isinstance(y, np.ndarray)})
        if options.profile:
            print_profile(session.run(feeds, profile="dispatches").info["profile"])
        if options.shaders:
            for shader in sorted(page.call("shaders"), key=lambda shader: shader["key"]):
                print(f"{shader['compile_ms']:9.0f} ms {shader['key']}")
    finally:
        page.close()
    return 0


def random_feeds(model: Path, sizes: dict[str, int]) -> dict[str, np.ndarray]:
    """Random inputs for a model; integers are 0 or 1."""
    import onnxruntime

    rng, feeds = np.random.default_rng(0), {}
    types = {"tensor(float)": np.float32, "tensor(float16)": np.float16, "tensor(double)": np.float64}
    for arg in onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"]).get_inputs():
        shape = [
            dim if isinstance(dim, int) else sizes.get(f"{arg.name}:{axis}", sizes.get(str(dim), 1))
            for axis, dim in enumerate(arg.shape)
        ]
        if arg.type in types:
            feeds[arg.name] = rng.standard_normal(shape).astype(types[arg.type])
        else:
            feeds[arg.name] = rng.integers(0, 2, shape).astype(arg.type.removeprefix("tensor(").removesuffix(")"))
    return feeds


def compare(model: Path, feeds: dict[str, np.ndarray], outputs: dict[str, np.ndarray]) -> None:
    """Print each output's difference from onnxruntime's."""
    import onnxruntime

    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    for name, expected in zip(outputs, session.run(list(outputs), feeds), strict=True):
        actual = outputs[name]
        assert actual.shape == expected.shape, f"{name}: shape {actual.shape}, expected {expected.shape}"
        error = np.abs(actual.astype(np.float64) - expected.astype(np.float64))
        print(f"{name} {list(actual.shape)}: largest difference {error.max(initial=0):.2e}")


def print_profile(rows: list[dict]) -> None:
    """Print the shaders, the slowest first."""
    time: collections.Counter[str] = collections.Counter()
    count = collections.Counter(row["kernel"] for row in rows)
    for row in rows:
        time[row["kernel"]] += row["ms"]
    for kernel, ms in time.most_common():
        print(f"{ms:9.2f} ms {count[kernel]:4d} x {kernel}")
    print(f"{sum(time.values()):9.2f} ms {len(rows):4d} dispatches")


if __name__ == "__main__":
    sys.exit(main())
