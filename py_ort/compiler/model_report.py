"""Reports, without a browser, whether a model will run: missing kernels and their substitutes, sizes and memory."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import onnx_ir as ir

from py_ort.boundary import typed_errors
from py_ort.compiler.compile import CompiledModel, compile_model
from py_ort.compiler.compile_options import CompileOptions
from py_ort.compiler.load import LoadedModel, load_model
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import MissingKernel, NotImplemented, PyOrtError
from py_ort.ir.errors import node_at_fault
from py_ort.ir.graph import all_nodes, replace_value, subgraphs
from py_ort.ir.operators import lowerings, operator
from py_ort.ir.schemas import CANONICAL_OPSET, schema
from py_ort.providers import AVAILABLE, CPU, PlacedNode, on_device

#: Bytes that a page's core can address, and more than a GPU buffer has anywhere.
_HEAP = 4 << 30
#: Integers that have 32 bits on devices.
_WIDE = (ir.DataType.INT64, ir.DataType.UINT64)


@dataclass(frozen=True)
class OperatorReport:
    """One operator of a model, in one way of running it.

    Attributes:
        op_type: The operator, as the model has it.
        domain: Its domain; "" is ai.onnx.
        nodes: Names of its nodes.
        standing: "kernel" (on the first provider), "other provider", "rewritten" (into other operators), "function"
            (the operators of which its definition consists), "fused" (into another one), "control flow", "gone"
            (computed before, or not needed), or "missing".
        becomes: The kernels that run for it: provider and operator of each.
        reasons: Why these are not on the first provider: operator and reason. Of what is missing: provider and reason.
        inputs: Dtypes of the inputs of its nodes, where a kernel is missing.
    """

    op_type: str
    domain: str
    nodes: tuple[str, ...]
    standing: str
    becomes: tuple[tuple[str, str], ...] = ()
    reasons: tuple[tuple[str, str], ...] = ()
    inputs: tuple[str, ...] = ()


@dataclass(frozen=True)
class LargestTensor:
    """The largest tensor of a run.

    Attributes:
        name, shape: Its own.
        bytes: Its size; where 64-bit integers are on a device, of the 32 bits that they have there.
    """

    name: str
    shape: tuple[int, ...]
    bytes: int

    def __str__(self) -> str:
        return f"{self.name!r} [{', '.join(map(str, self.shape))}]"


@dataclass
class ModelReport:
    """A report on a model that needs no browser.

    Attributes:
        providers: The providers that may run nodes, best first.
        error: Why it does not run, "TYPE: TEXT"; "" if it does.
        opsets: The versions of operators that it imports, by domain.
        newest_opset: The newest version of ai.onnx that py_ort supports.
        inputs, outputs: As the compiler knows them.
        open_dimensions: Open dimensions of inputs, by the input's name: each dimension's name, or its number.
        open_values: How many values have a size that only a run tells.
        operators: The model's operators; of a model that does not run, as many as are known.
        counts: Nodes by provider, after optimization.
        weights: Bytes of constants: "all", and by the provider that reads them.
        tensor_bytes: The least memory for the values of a run; None where sizes are open.
        largest: The largest tensor among those of known size; None: no size is known.
    """

    providers: tuple[str, ...]
    error: str = ""
    opsets: dict[str, int] = field(default_factory=dict)
    newest_opset: int = 0
    inputs: list[NodeArg] = field(default_factory=list)
    outputs: list[NodeArg] = field(default_factory=list)
    open_dimensions: dict[str, list[str | int]] = field(default_factory=dict)
    open_values: int = 0
    operators: list[OperatorReport] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    weights: dict[str, int] = field(default_factory=dict)
    tensor_bytes: int | None = None
    largest: LargestTensor | None = None

    @property
    def runs(self) -> bool:
        """True if a browser with these providers can run the model."""
        return not self.error

    @property
    def on_devices(self) -> bool:
        """True if nodes run on a device."""
        return any(count and on_device(provider) for provider, count in self.counts.items())

    def as_dict(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"runs": self.runs, **asdict(self)}


@typed_errors("checking the model", where=node_at_fault)
def model_report(
    model: str | os.PathLike[str] | bytes, providers: Sequence[str], options: CompileOptions | None = None
) -> ModelReport:
    """Report whether a model will run.

    Args:
        model: Path or bytes of an ONNX file.
        providers: Canonical names of the providers that may run nodes, best first.
        options: Options of the compiler, as for a session.
    """
    found = ModelReport(tuple(providers), newest_opset=CANONICAL_OPSET)
    options = options or CompileOptions()
    try:
        loaded = load_model(model)
        nodes = _named(loaded)
        found.opsets = {domain or "ai.onnx": version for domain, version in loaded.model.opset_imports.items()}
        found.inputs = [NodeArg.of(v) for v in loaded.model.graph.inputs if not v.is_initializer()]
        found.outputs = [NodeArg.of(value) for value in loaded.model.graph.outputs]
        _note_open(found)
        compiled = compile_model(loaded, providers=providers, options=options)
    except NotImplemented as e:
        found.error = f"{type(e).__name__}: {e}"
        missing = [*e.missing, *_further(model, e.missing, providers, options)]
        found.operators = list(_missing(missing))
        return found
    except PyOrtError as e:
        found.error = f"{type(e).__name__}: {e}"
        return found
    found.inputs, found.outputs, found.counts = compiled.inputs, compiled.outputs, compiled.placement.counts()
    _note_open(found)
    found.operators = list(_standing(nodes, compiled))
    found.weights = {
        "all": compiled.weights.size,
        **{provider: compiled.weights.size_on(provider) for provider in AVAILABLE},
    }
    found.open_values = sum(_bytes(o) is None for node in all_nodes(compiled.model.graph) for o in node.outputs)
    found.tensor_bytes = _peak(compiled.model.graph)
    found.largest = _largest(compiled)
    found.error = _lacking_memory(found)
    return found


def _lacking_memory(found: ModelReport) -> str:
    """Return why no page has the memory for a model; "" if some may have."""
    weights, largest = found.weights[CPU], found.largest
    if weights > _HEAP:
        return (
            f"OutOfMemory: {weights:,} bytes of weights are read on the CPU, and a page has {_HEAP:,} for all that is "
            "there"
        )
    if largest and largest.bytes >= _HEAP:
        return f"OutOfMemory: {largest} takes {largest.bytes:,} bytes, and no tensor in a page {_HEAP:,} or more"
    if (taken := weights + (found.tensor_bytes or 0)) > _HEAP and not found.on_devices:
        return f"OutOfMemory: weights and tensors take {taken:,} bytes on the CPU, where a page has {_HEAP:,}"
    return ""


@dataclass(frozen=True)
class _Original:
    """A node as the model has it."""

    op_type: str
    domain: str
    in_functions: bool


def _named(loaded: LoadedModel) -> dict[str, _Original]:
    """Give every node a unique name, by which it is found after compilation; return the nodes by name."""
    found: dict[str, _Original] = {}
    for node in all_nodes(loaded.model.graph):
        name = shown = node.name or (node.outputs[0].name if node.outputs else "") or node.op_type
        number = 1
        while name in found:
            number += 1
            name = f"{shown}#{number}"
        node.name = name
        found[name] = _Original(node.op_type, node.domain, node.op_identifier() in loaded.model.functions)
    return found


def _note_open(found: ModelReport) -> None:
    found.open_dimensions = {
        arg.name: [dim or axis for axis, dim in enumerate(arg.dims or ()) if not isinstance(dim, int)]
        for arg in found.inputs
        if arg.dims is not None and not all(isinstance(dim, int) for dim in arg.dims)
    }


def _standing(nodes: dict[str, _Original], compiled: CompiledModel) -> Iterator[OperatorReport]:
    finals: dict[str, list[PlacedNode]] = {}
    for placed in compiled.placement.nodes:
        for name in placed.origin:
            finals.setdefault(name, []).append(placed)
    first = compiled.placement.providers[0]
    groups: dict[OperatorReport, list[str]] = {}
    for name, node in nodes.items():
        if node.op_type != "Constant" or node.domain:
            groups.setdefault(_one(node, finals.get(name, []), first), []).append(name)
    for each, names in groups.items():
        yield replace(each, nodes=tuple(names))


def _one(node: _Original, finals: Sequence[PlacedNode], first: str) -> OperatorReport:
    becomes = tuple(dict.fromkeys((final.provider, final.kernel) for final in finals))
    reasons = tuple(dict.fromkeys((final.kernel, final.reason) for final in finals if final.reason))
    known = schema(node.domain, node.op_type, CANONICAL_OPSET if not node.domain else 1)
    if operator(node.domain, node.op_type).walked:
        standing = "control flow"
    elif not finals:
        standing = "gone"
    elif any(final.op_type == node.op_type for final in finals):
        standing = "kernel" if all(final.provider == first for final in finals) else "other provider"
    elif all(len(final.origin) > 1 for final in finals):
        standing = "fused"
    elif node.in_functions or (known is not None and known.has_function and not lowerings(node.domain, node.op_type)):
        standing = "function"
    else:
        standing = "rewritten"
    return OperatorReport(node.op_type, node.domain, (), standing, becomes, reasons)


def _missing(missing: Iterable[MissingKernel]) -> Iterator[OperatorReport]:
    groups: dict[OperatorReport, list[str]] = {}
    for each in missing:
        reasons = tuple(each.reasons.items()) or (("", "no provider knows it"),)
        key = OperatorReport(each.op_type, each.domain, (), "missing", (), reasons, each.inputs)
        groups.setdefault(key, []).append(each.node)
    for key, names in groups.items():
        yield replace(key, nodes=tuple(names))


def _further(
    model: str | os.PathLike[str] | bytes,
    missing: Sequence[MissingKernel],
    providers: Sequence[str],
    options: CompileOptions,
) -> Sequence[MissingKernel]:
    """Return missing kernels behind unknown operators: compiles the model again, without the nodes of those."""
    unknown = {(each.domain, each.op_type) for each in missing if not each.reasons}
    if not unknown:
        return ()
    try:
        loaded = load_model(model)
        _named(loaded)
        graph = loaded.model.graph
        for node in [node for node in graph if (node.domain, node.op_type) in unknown]:
            for output in node.outputs:
                given = ir.Value(name=output.name, type=output.type, shape=output.shape)
                replace_value(output, given)
                graph.inputs.append(given)
            graph.remove(node, safe=True)
        compile_model(loaded, providers=providers, options=options)
    except NotImplemented as e:
        return [each for each in e.missing if each.reasons]
    except PyOrtError:  # of inputs without types, perhaps
        pass
    return ()


def _bytes(value: ir.Value) -> int | None:
    """Return the bytes of a tensor; None if its size is open, 0 for texts and for values that are no tensors."""
    if value.dtype == ir.DataType.STRING or (value.type is not None and not isinstance(value.type, ir.TensorType)):
        return 0
    if (
        value.shape is None
        or value.dtype in (None, ir.DataType.UNDEFINED)
        or not all(isinstance(dim, int) for dim in value.shape)
    ):
        return None
    return math.ceil(math.prod(value.shape.numpy()) * value.dtype.itemsize)


def _largest(compiled: CompiledModel) -> LargestTensor | None:
    """Return the largest of the tensors whose sizes are known."""
    graph, wide = compiled.model.graph, compiled.placement.providers == [CPU]
    sizes: dict[ir.Value, int | None] = {value: _bytes(value) for value in graph.inputs}
    sizes |= {output: _bytes(output) for node in all_nodes(graph) for output in node.outputs}
    known = [(size if wide or value.dtype not in _WIDE else size // 2, value) for value, size in sizes.items() if size]
    if not known:
        return None
    # Of equal ones an output, whose name is the model's.
    size, value = max(known, key=lambda each: (each[0], each[1].is_graph_output()))
    return LargestTensor(value.name or "", tuple(value.shape.numpy()) if value.shape else (), size)


def _peak(graph: ir.Graph) -> int | None:
    """How much the values of the main graph take at the fullest moment, None where that depends on sizes."""
    sizes = {value: _bytes(value) for value in graph.inputs if value.const_value is None}
    last: dict[ir.Value, int] = {}
    for number, node in enumerate(graph):
        sizes |= {output: _bytes(output) for output in node.outputs}
        inner = (value for body in subgraphs(node) for each in all_nodes(body) for value in each.inputs)
        last |= {value: number for value in (*node.inputs, *inner) if value is not None}
    if None in sizes.values():
        return None
    known = {value: size for value, size in sizes.items() if size is not None}
    last |= {value: len(graph) for value in graph.outputs}
    now = peak = sum(known[value] for value in graph.inputs if value in known)
    ends: dict[int, list[ir.Value]] = {}
    for value, number in last.items():
        ends.setdefault(number, []).append(value)
    for number, node in enumerate(graph):
        now += sum(known[output] for output in node.outputs)
        peak = max(peak, now)
        now -= sum(known[value] for value in ends.get(number, ()) if value in known)
        now -= sum(known[output] for output in node.outputs if output not in last)
    return peak
