"""The compiler on one screen: load, check, rewrite, optimise, lay out, place, pack, write."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import onnx_ir as ir

from py_ort.boundary import typed_errors
from py_ort.compiler.canonical.size_checks import check_sizes
from py_ort.compiler.layout import pack_weights
from py_ort.compiler.load import LoadedModel, ModelMetadata, check_model, check_types, load_model
from py_ort.compiler.options import CompileOptions
from py_ort.compiler.passes.clean.canonicalise import Canonicalise
from py_ort.compiler.passes.clean.free_dimensions import FreeDimensions
from py_ort.compiler.passes.clean.functions import Functions
from py_ort.compiler.passes.pass_base import HasOperator, Pass, PassReport, run_passes
from py_ort.compiler.passes.pipeline import REQUIRED, Level, layout_pipeline, pipeline
from py_ort.compiler.passes.placed.columns import Columns
from py_ort.compiler.passes.placed.counts import Counts
from py_ort.compiler.passes.placed.elementwise_chains import ElementwiseChains
from py_ort.compiler.passes.placed.sibling_convolutions import SiblingConvolutions
from py_ort.compiler.placement import Manifest, PlacedNode, Placement, canonical_provider, load_manifests, place
from py_ort.compiler.placement.placement import CONTROL_FLOW
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.compiler.plan.weights import Weights
from py_ort.compiler.plan.writer import PlanWriter
from py_ort.compiler.saved.onnx_writer import OnnxWriter, save_model
from py_ort.compiler.saved.source_form import source_form
from py_ort.compiler.saved.standard_form import StandardForm
from py_ort.compiler.saved.target import SavedModel
from py_ort.exceptions import InvalidArgument, MissingKernel, NotImplemented
from py_ort.ir.operators import INTERNAL, NHWC
from py_ort.user_kernels import with_user_kernels
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
        metadata: What the model says about itself.
        placement: Where each node runs, and why.
        model: The optimised graph.
        placed: Where each of its nodes runs.
        passes: What each pass did.
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

    def parts(self) -> Sequence[Part]:
        """Return the weights' blob, as parts to serve."""
        return self.weights.parts()


@typed_errors("compiling the model")
def compile_model(
    model: str | os.PathLike[str] | bytes | LoadedModel,
    *,
    providers: Sequence[str] = ("webgpu", "wasm"),
    options: CompileOptions | None = None,
    manifests: Mapping[str, Manifest] | None = None,
    optimised: SavedModel | None = None,
) -> CompiledModel:
    """Compile a model.

    Args:
        model: Path or bytes of an ONNX file, or one that was loaded (and is changed by this).
        providers: The providers that may run nodes, the preferred one first.
        options: See `CompileOptions`.
        manifests: The providers' kernels; those of the built page and core by default.
        optimised: Where to write the optimised graph to, as ONNX, and in which form.

    Raises:
        NoSuchFile, InvalidProtobuf, InvalidGraph: The model cannot be read, or is wrong.
        NotImplemented: A node has no kernel on these providers.
        InvalidArgument: An option is wrong.
    """
    options = options or CompileOptions()
    names = list(dict.fromkeys(canonical_provider(name) for name in providers))
    manifests = with_user_kernels(manifests if manifests is not None else load_manifests())
    missing = [name for name in names if name not in manifests]
    if missing or not names:
        raise InvalidArgument(f"providers {missing or names}: there are {', '.join(manifests)}")
    level = Level(options.level())
    timings: dict[str, float] = {}
    has_operator = _operator_lookup(names, manifests)

    with _timed(timings, "load"):
        loaded = model if isinstance(model, LoadedModel) else load_model(model)
        check_model(loaded.model, [key for manifest in manifests.values() for key in manifest.kernels])
        overridable = _overridable(loaded.model)
        passes = run_passes(loaded.model, REQUIRED)
    inputs = [_argument(value, loaded) for value in loaded.model.graph.inputs]
    outputs = [_argument(value, loaded) for value in loaded.model.graph.outputs]
    with _timed(timings, "canonicalise"):
        free = FreeDimensions(
            options.free_dimension_overrides, options.free_dimension_overrides_by_denotation, options.input_shapes
        )
        passes += run_passes(loaded.model, [free], passes)
        source = loaded.model.clone() if optimised is not None and optimised.as_source else None
        inputs = [arg.settled(value) for arg, value in zip(inputs, loaded.model.graph.inputs, strict=True)]
        forms = Canonicalise(check_types, [arg.type if arg.keys is None else "" for arg in outputs])
        passes += run_passes(loaded.model, [forms], passes)
    with _timed(timings, "passes"):
        columns = manifests[names[0]].columns
        chosen = pipeline(
            level,
            has_operator=has_operator,
            matmul_bias=_matmul_inputs(names, manifests) >= _WITH_BIAS,
            product_residuals=_product_residuals(names, manifests),
            reads_columns=lambda domain, op_type: (domain, op_type) in columns,
        )
        passes += run_passes(loaded.model, [Functions(has_operator), *chosen, Functions(has_operator)], passes)
        check_sizes(loaded.model)
    if optimised is not None:
        with _timed(timings, "save"):
            if source is None:
                save_model(loaded.model, optimised, StandardForm)
            else:
                save_model(source_form(source, level), optimised, OnnxWriter)
    with _timed(timings, "layout"):
        if options.nhwc():
            passes += run_passes(loaded.model, layout_pipeline(_nhwc_support(names, manifests)), passes)
    with _timed(timings, "placement"):
        placed = _place(loaded.model, names, manifests, options)
        for make in (_counts, _chains) if level >= Level.EXTENDED else (_counts,):
            made = run_passes(loaded.model, [make(placed, manifests)], passes)
            passes += made
            if any(report.changes for report in made):
                placed = _place(loaded.model, names, manifests, options)
        if level >= Level.EXTENDED:
            passes += run_passes(loaded.model, _columns(placed, manifests), passes)
            placed = {node: where for node, where in placed.items() if node.graph is not None}
        placement = Placement(list(placed.values()), tuple(names))
        if options.disable_cpu_fallback:
            _refuse_fallback(placement)
    with _timed(timings, "plan"):
        if level >= Level.EXTENDED:
            pack_weights(loaded.model, placed)
        writer = PlanWriter(loaded.model, placed, keys=loaded.identified)
        plan = writer.write()
    _complete(outputs, inputs, loaded)
    return CompiledModel(
        *(plan, writer.weights, inputs, outputs, overridable, loaded.metadata, placement, loaded.model),
        *(passes, timings, placed),
    )


@contextmanager
def _timed(timings: dict[str, float], stage: str) -> Iterator[None]:
    start = time.perf_counter()
    yield
    timings[stage] = (time.perf_counter() - start) * 1e3


def _operator_lookup(names: Sequence[str], manifests: Mapping[str, Manifest]) -> HasOperator:
    """Tell which provider runs an operator: True the first, False another one, None nobody."""

    def has_operator(domain: str, op_type: str) -> bool | None:
        if domain == "" and op_type in CONTROL_FLOW:
            return True
        runs = [manifests[name].has(domain, op_type) for name in names]
        return True if runs[0] else False if any(runs) else None

    return has_operator


def _place(
    model: ir.Model, names: Sequence[str], manifests: Mapping[str, Manifest], options: CompileOptions
) -> dict[ir.Node, PlacedNode]:
    return place(
        model, names, manifests, options.force_cpu_node_names, options.wide_integers, options.disable_cpu_fallback
    )


def _counts(placed: Mapping[ir.Node, PlacedNode], manifests: Mapping[str, Manifest]) -> Pass:
    """Make the pass that splits operators whose results the GPU counts."""
    return Counts(lambda node: placed[node].provider == "webgpu")


def _chains(placed: Mapping[ir.Node, PlacedNode], manifests: Mapping[str, Manifest]) -> Pass:
    """Make the pass that fuses elementwise operators which run on one provider."""

    def provider_of(node: ir.Node) -> str:
        return placed[node].provider

    def takes(provider: str, dtypes: Sequence[ir.DataType | None]) -> bool:
        return manifests[provider].refusal(INTERNAL, "ElementwiseChain", dtypes) is None

    return ElementwiseChains(provider_of, takes)


def _columns(placed: Mapping[ir.Node, PlacedNode], manifests: Mapping[str, Manifest]) -> list[Pass]:
    """Make the passes for kernels that read and write columns of wider tensors."""

    def takes(node: ir.Node) -> bool:
        return (node.domain, node.op_type) in manifests[placed[node].provider].columns

    return [Columns(takes), SiblingConvolutions(takes)]


def _matmul_inputs(names: Sequence[str], manifests: Mapping[str, Manifest]) -> int:
    """Return how many inputs every provider's MatMul lists."""
    return min(len(manifests[name].kernels.get(("", "MatMul"), ())) for name in names)


def _product_residuals(names: Sequence[str], manifests: Mapping[str, Manifest]) -> bool:
    """Whether products take the sums behind them: a launch less on the GPU, while on the CPU an Add is as quick."""
    return names[0] == "webgpu" and _matmul_inputs(names, manifests) >= _WITH_RESIDUAL


def _nhwc_support(names: Sequence[str], manifests: Mapping[str, Manifest]) -> Callable[[ir.Node], bool]:
    """Tell of a node in NCHW whether the first provider that can run it at all has its NHWC form."""

    def supports(node: ir.Node) -> bool:
        dtypes = [None if v is None else v.dtype for v in node.inputs]
        for name in names:
            if manifests[name].refusal(NHWC, node.op_type, dtypes, node) is None:
                return True
            if manifests[name].refusal("", node.op_type, dtypes, node) is None:
                return False
        return False

    return supports


def _refuse_fallback(placement: Placement) -> None:
    strays = placement.fallbacks()
    if strays:
        first = strays[0]
        error = NotImplemented(
            f"disable_cpu_fallback is set, and {len(strays)} nodes do not run on {placement.providers[0]}: "
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
_WITH_BIAS, _WITH_RESIDUAL = 3, 4  # inputs of MatMul


def _overridable(model: ir.Model) -> list[NodeArg]:
    if (model.ir_version or 0) < _IR_OF_OVERRIDING:
        return []
    return [NodeArg.of(value) for value in model.graph.inputs if value.is_initializer()]


def _argument(value: ir.Value, loaded: LoadedModel) -> NodeArg:
    """Describe an input or output as the user sees it."""
    form = loaded.maps.get(value.name or "")
    return NodeArg.of(value) if form is None else NodeArg(value.name or "", form.type, [], form.keys)


def _complete(outputs: list[NodeArg], inputs: Sequence[NodeArg], loaded: LoadedModel) -> None:
    """What the model left open about its outputs is filled in from what was inferred."""
    names = {dim for arg in inputs for dim in arg.shape if isinstance(dim, str)}
    for i, (arg, value) in enumerate(zip(outputs, loaded.model.graph.outputs, strict=True)):
        known = arg if arg.type else NodeArg(arg.name, NodeArg.of(value).type, arg.dims)
        outputs[i] = known.settled(value, names)
