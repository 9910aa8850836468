"""Sessions in a plain page: the built runtime and core without Python's bridge, websocket or worker."""

from __future__ import annotations

import base64
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from browser_page import BrowserPage

from py_ort.compiler.compile import CompiledModel, compile_model
from py_ort.compiler.compile_options import CompileOptions

ROOT = Path(__file__).resolve().parents[2]


class PageError(Exception):
    """An error of the page; `code` is the schema's ErrorCode."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields["message"])
        self.code: int = fields["code"]
        self.place: Mapping[str, str] = fields.get("place") or {}


@dataclass
class GpuTensor:
    """A tensor that stays on the GPU."""

    dtype: str
    dims: list[int]
    gpu_id: int


Value = np.ndarray | GpuTensor


@dataclass
class Ran:
    """Outputs and RunInfo of one run."""

    outputs: dict[str, Value]
    info: dict[str, Any]

    @property
    def made(self) -> int:
        """Number of pipelines, buffers and bind groups that the run made."""
        return sum(self.info["counters"][name] for name in ("pipelines", "buffers", "bind_groups"))


class PlainPage:
    """A page with `window.session`."""

    def __init__(self, adapter: str = "swiftshader") -> None:
        self._page = BrowserPage(["--page", "session_page"], "session", adapter)
        for name in ("core.mjs", "core.wasm", "rare_kernels.wasm", "relaxed_simd.wasm", "simd128.wasm"):
            shutil.copy(ROOT / "py_ort/assets" / name, self._page.folder / name)
        self._count = 0

    def close(self) -> None:
        self._page.close()

    def call(self, function: str, *args: Any) -> Any:
        answer = self._page.evaluate(f"(args) => session.{function}(...args)", list(args))
        if "error" in answer:
            raise PageError(answer["error"])
        return answer.get("value")

    def load(self, model: onnx.ModelProto, on_cpu: Sequence[str] = ()) -> PlainSession:
        """Compile a model without changes and load it; the nodes named in `on_cpu` run on wasm, all others on WebGPU
        where possible.
        """
        options = CompileOptions(force_cpu_node_names=on_cpu, graph_optimization_level="disabled")
        return self.load_compiled(compile_model(model.SerializeToString(), options=options))

    def load_compiled(self, compiled: CompiledModel) -> PlainSession:
        """Load a plan."""
        self._count += 1
        plan, weights = f"{self._count}.plan", f"{self._count}.weights"
        (self._page.folder / plan).write_bytes(compiled.plan)
        (self._page.folder / weights).write_bytes(compiled.weights.tobytes())
        answer = self.call("load", plan, weights)
        return PlainSession(self, answer["id"], answer["info"])

    def lose_device_meanwhile(
        self, session: PlainSession, feeds: Mapping[str, np.ndarray], runs: int
    ) -> list[str | int]:
        """Start runs and destroy the device; return "done" or the error's code for each."""
        return self.call("loseDeviceMeanwhile", session.id, _encoded(feeds), runs)

    def run_at_once(self, session: PlainSession, feeds: Sequence[Mapping[str, np.ndarray]]) -> list[Ran]:
        """Start several runs without waiting for each other."""
        script = "([id, all]) => Promise.all(all.map((feeds) => session.run(id, feeds)))"
        answers = self._page.evaluate(script, [session.id, [_encoded(feed) for feed in feeds]])
        return [_ran(answer["value"]) for answer in answers]


@dataclass
class PlainSession:
    """A session of a `PlainPage`."""

    page: PlainPage
    id: int
    #: SessionInfo.
    info: dict[str, Any]

    def run(
        self,
        feeds: Mapping[str, Value],
        outputs_on_gpu: Sequence[str] = (),
        cancel_after: float | None = None,
        profile: str | None = None,
    ) -> Ran:
        return _ran(self.page.call("run", self.id, _encoded(feeds), list(outputs_on_gpu), cancel_after, profile))

    def release(self) -> None:
        self.page.call("release", self.id)


def _encoded(feeds: Mapping[str, Value]) -> dict[str, Any]:
    return {name: _encode(value) for name, value in feeds.items()}


def _encode(value: Value) -> dict[str, Any]:
    if isinstance(value, GpuTensor):
        return {"dtype": value.dtype, "dims": value.dims, "gpuId": value.gpu_id}
    data = base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()
    return {"dtype": value.dtype.name, "dims": list(value.shape), "data": data}


def _ran(answer: Mapping[str, Any]) -> Ran:
    return Ran({name: _decode(tensor) for name, tensor in answer["outputs"].items()}, answer["info"])


def _decode(tensor: Mapping[str, Any]) -> Value:
    if "gpuId" in tensor:
        return GpuTensor(tensor["dtype"], tensor["dims"], tensor["gpuId"])
    return np.frombuffer(base64.b64decode(tensor["data"]), tensor["dtype"]).reshape(tensor["dims"])
