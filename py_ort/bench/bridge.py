"""How quick the bridge is, as a ratio to what the same browser does at the same moment without py_ort's protocol."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from onnx import TensorProto, helper

from py_ort.bench.bare import Bare, bare
from py_ort.browser.browser_options import BrowserOptions
from py_ort.browser.loop import loop_thread
from py_ort.providers import on_device
from py_ort.runtime.inference_session import InferenceSession

#: Bytes of the large tensors.
SIZE = 64 << 20


@dataclass
class BridgeRow:
    """One comparison: milliseconds of both, and how many times the bare one ours takes."""

    what: str
    provider: str
    ours_ms: float
    bare_ms: float
    bare: str

    @property
    def ratio(self) -> float:
        """Ours by the bare one."""
        return self.ours_ms / self.bare_ms

    def as_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return {**asdict(self), "ratio": self.ratio}


def measure_bridge(
    providers: Sequence[str], browser: BrowserOptions, runs: int = 300, large_runs: int = 8
) -> list[BridgeRow]:
    """Compare small runs with an echo, and large feeds and outputs with bare transfers, in turn.

    Args:
        providers: Their names.
        browser: In which browser.
        runs: Runs of the small model to time, after a quarter as many to warm up.
        large_runs: With 64 MiB.
    """
    rows = []
    for provider in providers:
        with InferenceSession(_small(), providers=[provider], browser=browser) as session:
            assert session._opened is not None
            lease = session._opened.runtime.lease
            with bare(lease) as page:
                commands = ["echo", "gpu"] if on_device(provider) else ["echo"]
                rows.append(
                    _row("small run", provider, runs, _runner(session, x=np.ones(4, np.float32)), page, commands)
                )
                with InferenceSession(_shape_of(), providers=[provider], browser=browser) as large:
                    x = np.ones(SIZE // 4, np.float32)
                    url = lease.http.publish([x.view(np.uint8).data])
                    fetching = [f"fetch {url} {SIZE}"]
                    rows.append(_row("64 MiB in", provider, large_runs, _runner(large, x=x), page, fetching))
                    lease.http.withdraw(url)
                with InferenceSession(_expand(), providers=[provider], browser=browser) as large:
                    run = _runner(large, shape=np.array([SIZE // 4], np.int64))
                    rows.append(_row("64 MiB out", provider, large_runs, run, page, [f"send {SIZE}"], SIZE))
    return rows


def _row(
    what: str, provider: str, runs: int, run: Callable[[], object], page: Bare, commands: Sequence[str], size: int = 0
) -> BridgeRow:
    """Time both in turn, so that whatever else the machine does is shared."""

    def bare_ms() -> float:
        return sum(loop_thread().call(page.ask(command, size)) for command in commands)

    ours, theirs = [], []
    for number in range(runs + runs // 4 + 1):
        began = time.perf_counter()
        run()
        taken = (time.perf_counter() - began) * 1000
        other = bare_ms()
        if number > runs // 4:
            ours.append(taken)
            theirs.append(other)
    names = " + ".join(command.split(" ")[0] for command in commands)
    return BridgeRow(what, provider, statistics.median(ours), statistics.median(theirs), names)


def _runner(session: InferenceSession, **feeds: np.ndarray) -> Callable[[], object]:
    return lambda: session.run(None, feeds)


def _model(nodes: Sequence[Any], inputs: Sequence[Any], outputs: Sequence[Any]) -> bytes:
    graph = helper.make_graph(nodes, "bridge", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    return bytes(model.SerializeToString())


def _floats(name: str) -> Any:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, ["n"])


def _small() -> bytes:
    return _model([helper.make_node("Add", ["x", "x"], ["y"])], [_floats("x")], [_floats("y")])


def _shape_of() -> bytes:
    """Takes much, gives little: the largest of a slice, so that the feed goes where the kernels are."""
    ends = [helper.make_node("Constant", [], [name], value_ints=[value]) for name, value in (("a", 0), ("b", 4))]
    nodes = [*ends, helper.make_node("Slice", ["x", "a", "b"], ["y"])]
    return _model(nodes, [_floats("x")], [_floats("y")])


def _expand() -> bytes:
    """Takes little, gives much."""
    one = helper.make_node("Constant", [], ["one"], value_floats=[1.0])
    shape = helper.make_tensor_value_info("shape", TensorProto.INT64, [1])
    return _model([one, helper.make_node("Expand", ["one", "shape"], ["y"])], [shape], [_floats("y")])
