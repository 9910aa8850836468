"""Run small ONNX models on the core's CPU provider in Node, in a fraction of a second: the loop for kernel authors.

    from one_node import model, run
    y, = run(model("Softmax", ["x"], ["y"], axis=1), {"x": x})

The model's nodes reach the kernels unchanged: write them in the canonical form of docs/internals.md (newest opset).
Needs `PY_ORT_FAST=1 emsdk_scripts/build`; PY_ORT_CORE names another core.mjs.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import onnx
from onnx import ModelProto, ValueInfoProto, helper
from plan_builder import PlanBuilder

from py_ort.schema.gen.TensorDesc import TensorDescT
from py_ort.schema.gen.ValueKind import ValueKind
from py_ort.wire.tensors import Layout, from_description, pack

RUNNER = Path(__file__).with_name("run_node.cjs")


class CoreError(Exception):
    """The core's error: `code`, `node`, `op_type` and `provider`, and the text."""

    def __init__(self, fields: dict[str, Any], taken: int | None = None) -> None:
        super().__init__(fields["message"])
        self.taken = taken
        self.code: int = fields["code"]
        self.node: str = fields.get("node", "")
        self.op_type: str = fields.get("op_type", "")
        self.provider: str = fields.get("provider", "")


def model(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], *, domain: str = "", opset: int = 23, **attributes: Any
) -> ModelProto:
    """Return a model of one node; "" is an omitted input or output. Types are known only in the run."""
    node = helper.make_node(op_type, inputs, outputs, name=op_type.lower(), domain=domain, **attributes)
    graph = helper.make_graph(
        [node],
        "one_node",
        [ValueInfoProto(name=n) for n in dict.fromkeys(inputs) if n],
        [ValueInfoProto(name=n) for n in outputs if n],
    )
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", opset), *([helper.make_opsetid(domain, 1)] if domain else [])]
    )


def run(proto: ModelProto, feeds: Mapping[str, Any] | Sequence[Any], *, repeat: int = 1) -> list[Any]:
    """Run a model; return its outputs: arrays, lists of them for sequences, None for empty optionals.

    Raises:
        CoreError: The core refused the plan, or a kernel failed.
    """
    (result,) = run_many([(proto, feeds)], repeat=repeat)
    if isinstance(result, CoreError):
        raise result
    return result.outputs


class Result:
    """Outputs of one run, and the milliseconds of each repetition."""

    def __init__(self, outputs: list[Any], ms: list[float], taken: int | None = None) -> None:
        self.outputs, self.ms, self.taken = outputs, ms, taken


def run_many(
    cases: Sequence[tuple[ModelProto, Mapping[str, Any] | Sequence[Any]]],
    *,
    repeat: int = 1,
    simd: str = "fixed",
    left: int | None = None,
) -> list[Result | CoreError]:
    """Run many models in one Node process. Errors are returned, not raised.

    Args:
        cases: Models and their feeds.
        repeat: Number of runs of each model.
        simd: Instructions of the micro-kernels: "fixed" or "relaxed".
        left: Bytes of a small memory that each run has; results and errors then have the number of bytes `taken`.
    """
    return run_jobs([_job(proto, feeds, repeat, left) for proto, feeds in cases], simd=simd)


@dataclass
class Job:
    """A plan to run: its weights, by index, offset and size in the blob, and its feeds, by type and value."""

    plan: bytes
    blob: bytes
    weights: list[dict[str, int]]
    feeds: list[tuple[onnx.TypeProto, Any]]
    outputs: int
    repeat: int = 1
    left: int | None = None


def run_jobs(jobs: Sequence[Job], *, simd: str = "fixed") -> list[Result | CoreError]:
    """Run plans in one Node process, as `run_many` runs models."""
    with tempfile.TemporaryDirectory() as tmp:
        folder = Path(tmp)
        with (folder / "jobs.bin").open("wb") as data:
            described = [_written(job, data) for job in jobs]
        (folder / "jobs.json").write_text(json.dumps(described))
        command, env = ["node", str(RUNNER), tmp], {**os.environ, "PY_ORT_SIMD": simd}
        done = subprocess.run(command, capture_output=True, text=True, env=env)
        if done.returncode:
            raise RuntimeError(f"run_node.cjs failed:\n{done.stdout}{done.stderr}")
        payload = memoryview((folder / "outputs.bin").read_bytes())
        return [_result(answer, payload) for answer in json.loads((folder / "outputs.json").read_text())]


def _job(proto: ModelProto, feeds: Mapping[str, Any] | Sequence[Any], repeat: int, left: int | None) -> Job:
    builder = PlanBuilder(proto)
    names = builder.input_names
    if not isinstance(feeds, Mapping):
        feeds = dict(zip(names, feeds, strict=True))
    types = {v.name: v.type for v in proto.graph.input}
    given = [(types[name], feeds[name]) for name in names]
    plan = builder.plan()
    return Job(plan, bytes(builder.blob), builder.cpu_weights(), given, len(proto.graph.output), repeat, left)


def _written(job: Job, data: BinaryIO) -> dict[str, Any]:
    """Write a job's bytes, and return its other fields, as run_node.cjs reads them."""
    layout, entries = Layout(), []
    for i, (type_, value) in enumerate(job.feeds):
        entries += _feed(i, value, type_, layout)
    sizes = {
        name: data.write(part) for name, part in (("plan", job.plan), ("weights", job.blob), ("feeds", _joined(layout)))
    }
    return {
        "sizes": sizes,
        "weights": job.weights,
        "feeds": entries,
        "outputs": job.outputs,
        "repeat": job.repeat,
        **({} if job.left is None else {"left": job.left}),
    }


def _feed(index: int, value: Any, type_: onnx.TypeProto, layout: Layout) -> list[dict[str, Any]]:
    """Return the entries of an input: lists are sequences, and an optional is None or its value."""
    kind = type_.WhichOneof("value")
    if kind == "optional_type":
        inside = [] if value is None else _feed(index, value, type_.optional_type.elem_type, layout)
        return [{"input": index, "kind": ValueKind.optional, "dtype": 0}, *inside]
    if isinstance(value, list) and kind == "sequence_type":
        element = type_.sequence_type.elem_type
        inside = [entry for item in value for entry in _feed(index, item, element, layout)]
        return [{"input": index, "kind": ValueKind.sequence, "dtype": element.tensor_type.elem_type}, *inside]
    tensor = pack("", np.asarray(value), layout)
    return [{"input": index, "dtype": tensor.dtype, "dims": tensor.dims, "offset": tensor.offset, "size": tensor.size}]


def _joined(layout: Layout) -> bytes:
    data = bytearray(layout.size)
    at = 0
    for buffer in layout.buffers:
        data[at : at + len(buffer)] = buffer
        at += -(-len(buffer) // 16) * 16
    return bytes(data)


def _result(answer: dict[str, Any], payload: memoryview) -> Result | CoreError:
    if "error" in answer:
        return CoreError(answer["error"], answer.get("taken"))
    return Result([_value(value, payload) for value in answer["values"]], answer["ms"], answer.get("taken"))


def _value(value: dict[str, Any], payload: memoryview) -> Any:
    if "items" in value:
        items = [_value(item, payload) for item in value["items"]]
        return items if value["kind"] == ValueKind.sequence else (items[0] if items else None)
    description = TensorDescT()
    description.name, description.dtype, description.dims = "output", value["dtype"], value["dims"]
    description.offset, description.size = value["offset"], value["size"]
    return from_description(description, payload)
