"""The compiler: a loop over `STAGES`, between a model that is read and a plan that is written."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

import onnx_ir as ir

from py_ort.boundary import typed_errors
from py_ort.compiler.compile_options import CompileOptions
from py_ort.compiler.load import LoadedModel, ModelMetadata, check_model, load_model
from py_ort.compiler.passes.pass_base import PassManager, PassReport
from py_ort.compiler.placement.devices import Devices
from py_ort.compiler.plan.fed_indices import with_index_limits
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.compiler.plan.weights import Weights
from py_ort.compiler.plan.writer import PlanWriter
from py_ort.compiler.saved.target import SavedModel
from py_ort.compiler.stages import STAGES, Compilation
from py_ort.compiler.target import Target
from py_ort.exceptions import MissingKernel, NotImplemented
from py_ort.ir.errors import node_at_fault
from py_ort.providers import DEFAULT, PlacedNode, Placement
from py_ort.providers.manifest import Manifest
from py_ort.wire.parts import Part


@dataclass
class CompiledModel:
    """A plan and all that a session must know about it.

    Attributes:
        plan: The FlatBuffer (schema/plan.fbs).
        weights: The constants it refers to.
        inputs: The model's inputs, as the user sees them.
        outputs: The model's outputs.
        overridable: Initializers that the model lists as inputs too. The plan has them as constants.
        metadata: The model's own description: author, version, ….
        placement: Where each node runs, and why.
        model: The optimized graph.
        placed: Where each of its nodes runs.
        scope: See `py_ort.runtime.planning.Planned`.
        passes: Reports on the passes that ran.
        timings: Milliseconds per stage.
    """

    plan: bytes
    weights: Weights
    inputs: list[NodeArg]
    outputs: list[NodeArg]
    overridable: list[NodeArg]
    metadata: ModelMetadata
    placement: Placement
    model: ir.Model
    passes: list[PassReport] = field(default_factory=list)
    timings: dict[str, float] = field(default_factory=dict)
    placed: Mapping[ir.Node, PlacedNode] = field(default_factory=dict)
    scope: str = ""

    def parts(self) -> Sequence[Part]:
        """Return the weights' blob, as parts to serve."""
        return self.weights.parts()


@typed_errors("compiling the model", where=node_at_fault)
def compile_model(
    model: str | os.PathLike[str] | bytes | LoadedModel,
    *,
    providers: Sequence[str] = DEFAULT,
    options: CompileOptions | None = None,
    manifests: Mapping[str, Manifest] | None = None,
    optimized: SavedModel | None = None,
    devices: Devices | None = None,
) -> CompiledModel:
    """Compile a model.

    Args:
        model: Path or bytes of an ONNX file, or one that was loaded (and is changed by this).
        providers: The providers that may run nodes, the preferred one first.
        options: See `CompileOptions`.
        manifests: The providers' kernels; those of the built page and core by default.
        optimized: Where to write the optimized graph to, as ONNX, and in which form.
        devices: The devices of the page that runs the plan, if it is known.

    Raises:
        NoSuchFile, InvalidProtobuf, InvalidGraph: The model cannot be read, or is wrong.
        NotImplemented: A node has no kernel on these providers.
        InvalidArgument: An option is wrong.
    """
    options = options or CompileOptions()
    forced = bool(options.force_cpu_node_names or options.refused)
    target = Target.of(providers, manifests, forced=forced, devices=devices)
    options.nhwc()  # validate before the work starts
    timings: dict[str, float] = {}
    with _timed(timings, "load"):
        loaded = model if isinstance(model, LoadedModel) else load_model(model)
        check_operators(loaded, target)
    overridable = _overridable(loaded.model)
    compilation = Compilation(loaded, target, options, optimized)
    manager = PassManager(loaded.model)
    for stage in (stage for stage in STAGES if stage.level <= options.level()):
        with _timed(timings, stage.name):
            changed = manager.run(stage.passes(compilation), settle=stage.settles)
            stage.end(compilation, changed)
    placement = Placement(list(compilation.placed.values()), target.providers)
    if options.disable_cpu_fallback:
        refuse_fallback(placement)
    with _timed(timings, "plan"):
        ranks = compilation.feed_ranks
        on = placement.on()
        writer = PlanWriter(loaded.model, compilation.placed, on, target.user_kernels, loaded.identified, ranks)
        plan = writer.write()
    inputs = with_index_limits(compilation.inputs, loaded.model.graph, compilation.placed)
    outputs = _completed(compilation.outputs, inputs, loaded)
    return CompiledModel(
        *(plan, writer.weights, inputs, outputs, overridable, loaded.metadata, placement, loaded.model),
        *(manager.reports, timings, compilation.placed),
    )


def check_operators(loaded: LoadedModel, target: Target) -> None:
    """Check a model's operators, once: no browser is needed to miss a kernel.

    Raises:
        InvalidGraph, NotImplemented: See `check_model`.
    """
    if not loaded.checked:
        check_model(loaded.model, [key for manifest in target.manifests.values() for key in manifest.kernels])
        loaded.checked = True


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    timings[stage] = timings.get(stage, 0.0) + (time.perf_counter() - start) * 1e3


def refuse_fallback(placement: Placement) -> None:
    """See that no node but shape arithmetic is left to the CPU by a provider before it.

    Raises:
        NotImplemented: It does not.
    """
    strays = [node for node in placement.fallbacks() if not node.on_device]
    if strays:
        first, places = strays[0], " nor on ".join(placement.providers[:-1])
        error = NotImplemented(
            f"disable_cpu_fallback is set, and {len(strays)} nodes do not run on {places}: "
            + "; ".join(f"{node.name or node.op_type} ({node.op_type}): {node.reason}" for node in strays[:5]),
            node=first.name,
            op_type=first.op_type,
            domain=first.domain,
            provider=placement.providers[0],
        )
        error.missing = [
            MissingKernel(
                ", ".join(node.origin) or node.name,
                node.op_type,
                node.domain,
                {placement.providers[0]: node.reason.removeprefix(f"{placement.providers[0]}: ")},
            )
            for node in strays
        ]
        raise error


#: Before this IR version initializers had to be inputs too, and were constants all the same.
_IR_OF_OVERRIDING = 4


def _overridable(model: ir.Model) -> list[NodeArg]:
    if (model.ir_version or 0) < _IR_OF_OVERRIDING:
        return []
    return [NodeArg.of(value) for value in model.graph.inputs if value.is_initializer()]


def _completed(outputs: Sequence[NodeArg], inputs: Sequence[NodeArg], loaded: LoadedModel) -> list[NodeArg]:
    """Return the outputs with types and sizes that the model left open, as inferred; sparse ones have sparse types."""
    names = {dim for arg in inputs for dim in arg.shape if isinstance(dim, str)}
    values = loaded.model.graph.outputs
    known = [
        arg if arg.type else NodeArg(arg.name, NodeArg.of(value).type, arg.dims)
        for arg, value in zip(outputs, values, strict=True)
    ]
    settled = [arg.settled(value, names) for arg, value in zip(known, values, strict=True)]
    return [replace(arg, type=f"sparse_{arg.type}") if arg.name in loaded.sparse else arg for arg in settled]
