"""The compiler's stages and passes, in their order: the one list of them.

A stage's passes run one after the other; then it ends with what is not a pass (a check, placement, a file).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import onnx_ir as ir

from py_ort.compiler.canonical.size_checks import check_sizes
from py_ort.compiler.compile_options import CompileOptions, Level
from py_ort.compiler.layout import Nhwc, pack_weights
from py_ort.compiler.load import LoadedModel, check_types
from py_ort.compiler.passes.attention.attention import Attention
from py_ort.compiler.passes.attention.cache_writes import cache_writes
from py_ort.compiler.passes.attention.index_grids import index_grids
from py_ort.compiler.passes.attention.interleaved_heads import interleaved_heads
from py_ort.compiler.passes.attention.packed_gates import packed_gates
from py_ort.compiler.passes.attention.packed_projections import packed_projections
from py_ort.compiler.passes.attention.rotary_embedding import RotaryEmbedding
from py_ort.compiler.passes.attention.stacked_heads import stacked_heads
from py_ort.compiler.passes.attention.transposed_attention import transposed_attention
from py_ort.compiler.passes.clean.branches import branches
from py_ort.compiler.passes.clean.canonicalize import Canonicalize
from py_ort.compiler.passes.clean.casts import casts
from py_ort.compiler.passes.clean.concats import concats
from py_ort.compiler.passes.clean.constants import Constants
from py_ort.compiler.passes.clean.dead_code import DeadCode
from py_ort.compiler.passes.clean.expansions import expansions
from py_ort.compiler.passes.clean.folding import Folding
from py_ort.compiler.passes.clean.free_dimensions import FreeDimensions
from py_ort.compiler.passes.clean.functions import Functions
from py_ort.compiler.passes.clean.identity import Identity
from py_ort.compiler.passes.clean.reshapes import reshapes
from py_ort.compiler.passes.clean.sizes import Sizes
from py_ort.compiler.passes.clean.stacked_transposes import stacked_transposes
from py_ort.compiler.passes.clean.subexpressions import Subexpressions
from py_ort.compiler.passes.fuse.activation import activation
from py_ort.compiler.passes.fuse.activation_forms import activation_forms
from py_ort.compiler.passes.fuse.affine import Affine
from py_ort.compiler.passes.fuse.batch_normalization import batch_normalization
from py_ort.compiler.passes.fuse.block_ends import block_ends
from py_ort.compiler.passes.fuse.byte_rows import byte_rows
from py_ort.compiler.passes.fuse.byte_tables import ByteTables
from py_ort.compiler.passes.fuse.conv_affine import conv_affine
from py_ort.compiler.passes.fuse.dequantized_weights import dequantized_weights
from py_ort.compiler.passes.fuse.dynamic_products import dynamic_products
from py_ort.compiler.passes.fuse.flat_products import flat_products
from py_ort.compiler.passes.fuse.gates import gates
from py_ort.compiler.passes.fuse.gelu import gelu
from py_ort.compiler.passes.fuse.hard_swish import hard_swish
from py_ort.compiler.passes.fuse.linear import linear
from py_ort.compiler.passes.fuse.padded_windows import padded_windows
from py_ort.compiler.passes.fuse.quantized import Quantized
from py_ort.compiler.passes.fuse.quantized_operators import QuantizedOperators
from py_ort.compiler.passes.fuse.residual import product_residual, residual
from py_ort.compiler.passes.fuse.round_trips import RoundTrips
from py_ort.compiler.passes.fuse.scale_shift import scale_shift
from py_ort.compiler.passes.fuse.signed_bytes import SignedBytes
from py_ort.compiler.passes.fuse.transposed_products import transposed_products
from py_ort.compiler.passes.norms.group_norm import group_norm
from py_ort.compiler.passes.norms.instance_norm import instance_norm
from py_ort.compiler.passes.norms.layer_norm import layer_norm
from py_ort.compiler.passes.norms.rms_norm import rms_norm
from py_ort.compiler.passes.norms.skip_norm import skip_norm
from py_ort.compiler.passes.norms.transposed_norms import transposed_norms
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.placed.byte_convolutions import ByteConvolutions
from py_ort.compiler.passes.placed.byte_words import ByteWords
from py_ort.compiler.passes.placed.columns import Columns
from py_ort.compiler.passes.placed.counts import Counts
from py_ort.compiler.passes.placed.elementwise_chains import ElementwiseChains
from py_ort.compiler.passes.placed.growing_caches import GrowingCaches
from py_ort.compiler.passes.placed.product_parts import ProductParts
from py_ort.compiler.passes.placed.quantized_ends import QuantizedEnds
from py_ort.compiler.passes.placed.sibling_convolutions import SiblingConvolutions
from py_ort.compiler.passes.placed.transposed_operands import TransposedOperands
from py_ort.compiler.passes.placed.wide_halves import WideHalves, widen_constants
from py_ort.compiler.placement import place
from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.compiler.plan.scalar_feeds import feed_ranks
from py_ort.compiler.saved.onnx_writer import OnnxWriter, save_model
from py_ort.compiler.saved.source_form import source_form
from py_ort.compiler.saved.standard_form import StandardForm
from py_ort.compiler.saved.target import SavedModel
from py_ort.compiler.target import Target
from py_ort.providers import PlacedNode


@dataclass
class Compilation:
    """A model on its way to a plan.

    Attributes:
        loaded: The model; stages change it.
        target: The providers and devices that it is compiled for.
        options: The user's options.
        saved: Where the optimized graph is written to, as ONNX.
        inputs: The model's inputs as users see them.
        outputs: Its outputs, as it declares them.
        source: The model before anything was done to it, where it is saved in that form.
        feed_ranks: See `plan.scalar_feeds`.
        placed: Where each node runs, from the stage "placement" on.
    """

    loaded: LoadedModel
    target: Target
    options: CompileOptions
    saved: SavedModel | None
    inputs: list[NodeArg] = field(default_factory=list)
    outputs: list[NodeArg] = field(default_factory=list)
    source: ir.Model | None = None
    feed_ranks: dict[ir.Value, int] = field(default_factory=dict)
    placed: dict[ir.Node, PlacedNode] = field(default_factory=dict)

    @property
    def model(self) -> ir.Model:
        """The graph."""
        return self.loaded.model

    @property
    def level(self) -> Level:
        """How far to optimize."""
        return self.options.level()

    def provider_of(self, node: ir.Node) -> str:
        """Where a node runs."""
        return self.placed[node].provider

    def on_device(self, node: ir.Node) -> bool:
        """Return True if a node's tensors live outside of the core's heap."""
        return self.placed[node].on_device

    def takes(self, feature: str) -> Callable[[ir.Node], bool]:
        """Return a predicate: does the node's kernel, on its provider, have the feature?"""
        return lambda node: self.target.kernel_offers(feature, self.provider_of(node), node)


Passes = Callable[[Compilation], Sequence[Pass]]
Maker = Callable[[Target], Pass]
"""A class of passes, or a pass: called with a target, either returns the pass for it."""


def _for_target(*makers: Maker) -> Passes:
    return lambda c: [make(c.target) for make in makers]


def _argument(value: ir.Value, loaded: LoadedModel) -> NodeArg:
    """Describe an input or output as the user sees it."""
    form = loaded.maps.get(value.name or "")
    return NodeArg.of(value) if form is None else NodeArg(value.name or "", form.type, [], form.keys)


def _describe(c: Compilation, changed: bool) -> None:
    graph = c.model.graph
    c.inputs, c.outputs = ([_argument(value, c.loaded) for value in each] for each in (graph.inputs, graph.outputs))


def _named(c: Compilation) -> list[Pass]:
    options = c.options
    by_denotation = options.free_dimension_overrides_by_denotation
    return [FreeDimensions(options.free_dimension_overrides, by_denotation, options.input_shapes)]


def _settle_inputs(c: Compilation, changed: bool) -> None:
    c.inputs = [arg.settled(value) for arg, value in zip(c.inputs, c.model.graph.inputs, strict=True)]
    if c.saved is not None and c.saved.as_source:
        c.source = c.model.clone()


def _canonical(c: Compilation) -> list[Pass]:
    return [Canonicalize(check_types, [arg.type if arg.keys is None else "" for arg in c.outputs])]


def _note_feed_ranks(c: Compilation, changed: bool) -> None:
    declared = {arg.name: len(arg.dims) for arg in c.outputs if arg.dims is not None and arg.keys is None}
    c.feed_ranks = feed_ranks(c.model.graph, declared)


def _check(c: Compilation, changed: bool) -> None:
    check_sizes(c.model)


def _save(c: Compilation, changed: bool) -> None:
    if c.saved is None:
        return
    if c.source is None:
        save_model(c.model, c.saved, StandardForm)
    else:
        save_model(source_form(c.source, c.level), c.saved, OnnxWriter)


def _if_nhwc(*passes: Maker) -> Passes:
    return lambda c: _for_target(*passes)(c) if c.options.nhwc() else []


def _place(c: Compilation, changed: bool) -> None:
    c.placed = place(c.model, c.target, c.options)


def _place_again(c: Compilation, changed: bool) -> None:
    if changed:
        on_cpu = {node: where for node, where in c.placed.items() if not where.on_device}
        _place(c, changed)
        c.placed |= {node: where for node, where in on_cpu.items() if node in c.placed}


def _chained(c: Compilation) -> list[Pass]:
    return [
        QuantizedEnds(c.provider_of, c.takes("steps"), c.takes("residual")),
        ByteConvolutions(c.takes("bytes")),
        ProductParts(c.takes("parts")),
        TransposedOperands(c.provider_of, c.takes("perm")),
        ElementwiseChains(c.provider_of, c.target.takes_chain),
    ]


def _in_columns(c: Compilation) -> list[Pass]:
    takes = c.takes("columns")
    return [Columns(takes), SiblingConvolutions(takes), ByteWords(c.provider_of, c.takes("words"))]


def _forget_removed(c: Compilation, changed: bool) -> None:
    c.placed = {node: where for node, where in c.placed.items() if node.graph is not None}


def _pack(c: Compilation, changed: bool) -> None:
    pack_weights(c.model, c.placed)


def _widen(c: Compilation, changed: bool) -> None:
    c.placed = widen_constants(c.model, c.placed)


def _nothing(c: Compilation, changed: bool) -> None:
    pass


class Stage(NamedTuple):
    """A step of the compiler.

    Attributes:
        name: For the times that users see; several steps may share one.
        level: The lowest one that has the step.
        passes: Makes its passes.
        end: Called after the passes, with True if one of them changed anything.
        settles: The passes take turns until none of them changes anything; else each runs once.
    """

    name: str
    level: Level
    passes: Passes
    end: Callable[[Compilation, bool], None] = _nothing
    settles: bool = False


def _optimize(level: Level, *makers: Maker, settles: bool = False) -> Stage:
    return Stage("passes", level, _for_target(*makers), settles=settles)


_no_passes = _for_target()
_CLEAN = _optimize(Level.BASIC, Identity(), DeadCode(), settles=True)

STAGES = (
    Stage("load", Level.DISABLED, _for_target(Constants()), _describe),
    Stage("canonicalize", Level.DISABLED, _named, _settle_inputs),
    Stage("canonicalize", Level.DISABLED, _canonical, _note_feed_ranks),
    _optimize(Level.EXTENDED, QuantizedOperators),
    _optimize(Level.DISABLED, Functions),
    _optimize(Level.EXTENDED, Identity(), SignedBytes, ByteTables),
    _optimize(Level.EXTENDED, Quantized, RoundTrips, dynamic_products, dequantized_weights),
    _optimize(Level.BASIC, Folding(), branches, casts),
    _CLEAN,
    _optimize(Level.BASIC, batch_normalization, Sizes(), Subexpressions(), expansions, index_grids, stacked_transposes),
    _optimize(Level.EXTENDED, RotaryEmbedding),  # before its reshapes merge with others
    _optimize(Level.BASIC, interleaved_heads, reshapes, hard_swish),
    _optimize(Level.BASIC, instance_norm, layer_norm, rms_norm, group_norm, gelu, gates),
    _optimize(Level.BASIC, Affine(), padded_windows, flat_products, conv_affine, concats),
    _CLEAN,
    _optimize(Level.BASIC, Folding()),
    _CLEAN,
    _optimize(Level.EXTENDED, transposed_norms, RotaryEmbedding, cache_writes),
    _optimize(Level.EXTENDED, stacked_heads, transposed_attention, Attention, reshapes),
    _CLEAN,
    _optimize(Level.EXTENDED, transposed_products, activation_forms, linear),
    _optimize(Level.EXTENDED, packed_projections, packed_gates, conv_affine),
    _optimize(Level.LAYOUT, scale_shift),
    _optimize(Level.EXTENDED, residual, skip_norm, block_ends, byte_rows),
    _optimize(Level.EXTENDED, product_residual, activation, residual, settles=True),
    _CLEAN,
    Stage("passes", Level.DISABLED, _for_target(Functions), _check),
    Stage("save", Level.DISABLED, _no_passes, _save),
    Stage("layout", Level.DISABLED, _if_nhwc(lambda target: Nhwc(target.has_channels_last))),
    Stage("layout", Level.BASIC, _if_nhwc(Subexpressions(), Folding(), reshapes)),
    _CLEAN._replace(name="layout"),
    Stage("placement", Level.DISABLED, _no_passes, _place),
    Stage("placement", Level.EXTENDED, lambda c: [GrowingCaches(c.on_device)]),
    Stage("placement", Level.DISABLED, lambda c: [Counts(c.on_device)], _place_again),
    Stage("placement", Level.DISABLED, lambda c: [WideHalves(c.placed, c.target)] if c.target.has_cpu else []),
    Stage("placement", Level.EXTENDED, _chained, _place_again),
    Stage("placement", Level.EXTENDED, _in_columns, _forget_removed),
    Stage("plan", Level.EXTENDED, _no_passes, _pack),
    Stage("plan", Level.DISABLED, _no_passes, _widen),
)
