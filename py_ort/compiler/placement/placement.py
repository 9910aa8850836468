"""Which provider runs which node, and why.

The first one that has the kernel; but shape arithmetic stays on the CPU, counters and conditions of loops (made of the
turn's number or of constants) too, since the executor reads them there, and so do cheap nodes between nodes on the CPU
(`partitions.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeAlias

import onnx_ir as ir

from py_ort.compiler.compile_options import CompileOptions
from py_ort.compiler.placement.integer_range import IntegerRanges
from py_ort.compiler.placement.lengths import counting_nodes
from py_ort.compiler.placement.partitions import small_partitions
from py_ort.compiler.placement.pieces import small_pieces
from py_ort.compiler.target import Target
from py_ort.exceptions import MissingKernel, NotImplemented
from py_ort.ir.epilogue import Epilogue, has_epilogue
from py_ort.ir.graph import all_graphs, all_nodes, dims, origins, subgraphs
from py_ort.ir.operators import INTERNAL, PERMS, operator
from py_ort.ir.schemas import CANONICAL_OPSET
from py_ort.ops.counted import COUNTED
from py_ort.providers import CPU, PROVIDERS
from py_ort.providers.manifest import Manifest, dtype_name
from py_ort.providers.placement_table import (
    CONTROL,
    COUNTED_THERE,
    FORCED,
    LENGTHS,
    SHAPE_ARITHMETIC,
    SMALL_PARTITION,
    SMALL_PIECE,
    PlacedNode,
)
from py_ort.schema.dialect import ELEMENTWISE_CHAIN, X_PARTS, Y_PARTS

#: By node and provider why the node cannot run there, where kernels alone do not tell.
_Refused: TypeAlias = dict[tuple[ir.Node, str], str]
_SMALL = 1024  # elements: the largest tensor that counts as a computation of shapes


def place(model: ir.Model, target: Target, options: CompileOptions) -> dict[ir.Node, PlacedNode]:
    """Give every node, at every depth, a provider.

    Args:
        model: The optimized model.
        target: The providers and their kernels.
        options: The fields `force_cpu_node_names` (nodes to place on the CPU in any case), `wide_integers`, and
            `disable_cpu_fallback`: what the first provider can run stays there, even where the CPU would be quicker.

    Raises:
        NotImplemented: A node has no kernel on any of the providers.
    """
    providers = target.providers
    arithmetic = shape_arithmetic(model.graph) if target.has_cpu and target.launches else set()
    integers = IntegerRanges(model.graph, options.wide_integers)
    nodes = pending = list(all_nodes(model.graph))
    refused = _refused_in_runs(nodes, options)
    found: dict[ir.Node, PlacedNode | dict[str, str]] = {}
    while pending:
        for node in pending:
            found[node] = _place_node(node, target, node in arithmetic, options, integers, refused)
        asked = _refused_by_devices({node: found[node] for node in pending}, target)
        refused |= asked
        pending = [node for node, _ in asked]
    placed = {node: where for node, where in found.items() if isinstance(where, PlacedNode)}
    nowhere = {node: reasons for node, reasons in found.items() if not isinstance(reasons, PlacedNode)}
    if nowhere:
        raise _no_kernels(nowhere, providers)
    if CPU in providers[1:]:

        def on_cpu_too(node: ir.Node) -> bool:
            return _refusal(node, CPU, target, _dtypes(node), integers, refused) is None

        if not options.disable_cpu_fallback:
            for node in placed:
                if _counts_on_cpu(node, placed) and on_cpu_too(node):
                    placed[node] = replace(placed[node], provider=CPU, reason=COUNTED_THERE)
            for node in counting_nodes(model.graph, placed, on_cpu_too):
                placed[node] = replace(placed[node], provider=CPU, reason=LENGTHS)
        for node in small_partitions(model.graph, placed, on_cpu_too):
            placed[node] = replace(placed[node], provider=CPU, reason=SMALL_PARTITION)
        for provider in () if options.disable_cpu_fallback else providers:
            if (price := options.crossings.get(provider) or PROVIDERS[provider].crossing({})) is None:
                continue
            for node in small_pieces(model.graph, placed, provider, price, on_cpu_too):
                placed[node] = replace(placed[node], provider=CPU, reason=SMALL_PIECE)
    return placed


def _place_node(
    node: ir.Node,
    target: Target,
    arithmetic: bool,
    options: CompileOptions,
    integers: IntegerRanges,
    refused: _Refused,
) -> PlacedNode | dict[str, str]:
    """Return where a node goes; if nowhere, why, by provider."""
    names, providers = origins(node), target.providers

    def placed(provider: str, reason: str) -> PlacedNode:
        kernel = f"{node.domain}::{node.op_type}" if node.domain else node.op_type
        if (node.domain, node.op_type) in target.user_kernels:
            kernel += " (user kernel)"
        return PlacedNode(node.name or "", node.op_type, node.domain, provider, kernel, reason, names)

    if operator(node.domain, node.op_type).walked:
        return placed(CPU, CONTROL if target.launches else "")
    dtypes = _dtypes(node)
    reasons: dict[str, str] = {}
    if target.has_cpu:
        force_cpu = options.force_cpu_node_names
        forced = bool(force_cpu) and not {node.name, *names}.isdisjoint(force_cpu)
        if (arithmetic or forced) and _refusal(node, CPU, target, dtypes, integers, refused) is None:
            return placed(CPU, FORCED if forced else SHAPE_ARITHMETIC)
    for provider in providers:
        refusal = _refusal(node, provider, target, dtypes, integers, refused)
        if refusal is None:
            return placed(provider, _joined(reasons))
        reasons[provider] = refusal
    return reasons


def _refused_in_runs(nodes: Iterable[ir.Node], options: CompileOptions) -> _Refused:
    if not options.refused:
        return {}
    known = {name: node for node in nodes for name in (*origins(node), node.name or "")}
    return {(known[name], provider): why for name, (provider, why) in options.refused.items() if name in known}


def _refused_by_devices(found: Mapping[ir.Node, PlacedNode | dict[str, str]], target: Target) -> _Refused:
    if target.devices is None:
        return {}
    asked: dict[str, list[ir.Node]] = {}
    for node, where in found.items():
        if isinstance(where, PlacedNode) and PROVIDERS[where.provider].asked:
            asked.setdefault(where.provider, []).append(node)
    return {
        (node, provider): why
        for provider, nodes in asked.items()
        for node, why in target.devices.refusals(provider, nodes).items()
    }


def _joined(reasons: Mapping[str, str]) -> str:
    return "; ".join(f"{provider}: {refusal}" for provider, refusal in reasons.items())


def _no_kernels(nowhere: Mapping[ir.Node, dict[str, str]], providers: Sequence[str]) -> NotImplemented:
    def inputs(node: ir.Node) -> tuple[str, ...]:
        return tuple("?" if d is None else d.name for d in _dtypes(node))

    node, reasons = next(iter(nowhere.items()))
    name = origins(node)[0]
    full = f"{node.domain or 'ai.onnx'}::{node.op_type}"
    return NotImplemented.of_nodes(
        f"no provider of {list(providers)} has a kernel for node {name!r}: {full} (opset {CANONICAL_OPSET} form, "
        f"inputs {', '.join(inputs(node))}); {_joined(reasons)}",
        [
            MissingKernel(origins(each)[0], each.op_type, each.domain, why, inputs(each))
            for each, why in nowhere.items()
        ],
        provider=", ".join(providers),
        shapes={
            v.name or f"input {i}": [str(d) for d in dims(v) or []]
            for i, v in enumerate(node.inputs)
            if v is not None and v.shape is not None
        },
    )


def _counts_on_cpu(node: ir.Node, placed: Mapping[ir.Node, PlacedNode]) -> bool:
    """Return True if a node is faster on the CPU because a run would wait on the GPU for the shape of its result."""
    known = COUNTED.get(node.op_type) if node.domain == "" else None
    if known is None or not placed[node].on_device or len(node.inputs) > known.inputs:
        return False
    makers = [v.producer() for v in node.inputs if v is not None]
    return known.serial or all(maker is None or not placed[maker].on_device for maker in makers)


def _dtypes(node: ir.Node) -> list[ir.DataType | None]:
    return [
        None if v is None or v.type is None or not isinstance(v.type, ir.TensorType) else v.dtype for v in node.inputs
    ]


def _refusal(
    node: ir.Node,
    provider: str,
    target: Target,
    dtypes: Sequence[ir.DataType | None],
    integers: IntegerRanges,
    refused: _Refused,
) -> str | None:
    manifest, asked = target.manifests[provider], PROVIDERS[provider]
    if (node, provider) in refused:
        return refused[node, provider]
    if not asked.user_kernels and (node.domain, node.op_type) in target.user_kernels:
        return f"a user kernel runs on {' and '.join(n for n, each in PROVIDERS.items() if each.user_kernels)} only"
    if not manifest.has(node.domain, node.op_type):
        return "no kernel"
    if (feature := _lacking(node, manifest)) is not None:
        return f"the kernel lacks {feature!r}, which passes gave to the node"
    if not asked.on_device:
        return manifest.refusal(node.domain, node.op_type, dtypes, node)
    if asked.whole_graphs and node.graph is not integers.main:
        return "in a body of control flow"
    declared = operator(node.domain, node.op_type)
    on_device = [
        None if v is None or declared.use(node, i) != "device" else dtypes[i] for i, v in enumerate(node.inputs)
    ]
    refusal = manifest.refusal(node.domain, node.op_type, on_device, node)
    if refusal is not None:
        return refusal
    for value in (*node.inputs, *node.outputs):
        if value is None or value.type is None:
            continue
        if not isinstance(value.type, ir.TensorType):
            return "sequences and optionals live on the CPU"
    for value in (*(v for i, v in enumerate(node.inputs) if on_device[i] is not None), *node.outputs):
        if value is None or value.dtype is None:
            continue
        if dtype_name(value.dtype) not in asked.elements:
            return f"{dtype_name(value.dtype)} has no form on {provider}"
        if not asked.empty_tensors and 0 in (dims(value) or ()):
            return "a tensor without elements"
    return integers.refusal(node, provider)


def _lacking(node: ir.Node, manifest: Manifest) -> str | None:
    """The feature that passes have used of a node's kernel, where a provider's has it not."""
    needed = []
    if has_epilogue(node):
        plain = Epilogue.of(node).recognized and manifest.offers("epilogue", node.domain, node.op_type)
        needed += [] if plain else ["steps"]
    chained = {"perm"} if (node.domain, node.op_type) == (INTERNAL, ELEMENTWISE_CHAIN) else set()
    if chained.union(PERMS) & set(node.attributes):
        needed.append("perm")
    if {X_PARTS, Y_PARTS} & set(node.attributes):
        needed.append("parts")
    return next((each for each in needed if not manifest.offers(each, node.domain, node.op_type)), None)


def shape_arithmetic(graph: ir.Graph) -> set[ir.Node]:
    """Return the nodes that compute shapes, axes and other small numbers from such numbers.

    A node belongs to them when all it reads is on the CPU without a download, and either everything that reads its
    outputs wants them on the CPU, or they are small integers.
    """
    wanted_on_host = _host_values(graph)
    refuted: set[ir.Value] = set()
    while True:  # a carried number is taken to stay on the CPU, until its body makes it elsewhere
        arithmetic = _Arithmetic(graph, wanted_on_host, refuted)
        if not arithmetic.wrong:
            return arithmetic.found
        refuted |= arithmetic.wrong


class _Arithmetic:
    """A walk over a graph and its subgraphs, which finds values on the CPU and nodes that compute from them only."""

    def __init__(self, graph: ir.Graph, wanted_on_host: set[ir.Value], refuted: set[ir.Value]) -> None:
        self.found: set[ir.Node] = set()
        self.wrong: set[ir.Value] = set()  # carried values that are not on the CPU after all
        self._wanted, self._refuted = wanted_on_host, refuted
        # A small integer that the user feeds is as well fed to the CPU.
        self._on_cpu = {v for v in graph.inputs if v.dtype in (ir.DataType.INT64, ir.DataType.INT32) and _small(v)}
        self._iterations: set[ir.Value] = set()  # the iteration number, a body's input
        self._visit(graph)

    def _visit(self, graph: ir.Graph) -> None:
        for node in graph:
            if node.op_type == "Loop" and node.domain == "":
                self._visit_loop(node)
                continue
            for subgraph in subgraphs(node):
                self._visit(subgraph)
            if not subgraphs(node) and self._belongs(node):
                self.found.add(node)
                self._on_cpu.update(node.outputs)

    def _visit_loop(self, node: ir.Node) -> None:
        body = subgraphs(node)[0]
        self._iterations.update(body.inputs[:2])
        self._on_cpu.update(body.inputs[:2])
        carried = [
            (inner, made)
            for inner, given, made in zip(body.inputs[2:], node.inputs[2:], body.outputs[1:], strict=False)
            if given is not None and self._is_here(given) and _small_integers(inner) and inner not in self._refuted
        ]
        self._on_cpu.update(inner for inner, _ in carried)
        self._visit(body)
        self.wrong.update(inner for inner, made in carried if not self._is_here(made))

    def _is_here(self, value: ir.Value) -> bool:
        return value in self._on_cpu or _constant(value)

    def _belongs(self, node: ir.Node) -> bool:
        declared = operator(node.domain, node.op_type)
        uses = [(v, declared.use(node, i)) for i, v in enumerate(node.inputs) if v is not None]
        if not uses or not node.outputs or not all(use == "shape" or self._is_here(v) for v, use in uses):
            return False
        if not all(v in self._wanted for v in node.outputs if v.uses()) and not all(map(_small_integers, node.outputs)):
            return False
        return all(use == "shape" for _, use in uses) or all(
            _small(v) or v in self._iterations for v, use in uses if use != "shape"
        )


def _host_values(graph: ir.Graph) -> set[ir.Value]:
    """Return the values that are read on the CPU only, directly or through nodes whose results are."""
    found: set[ir.Value] = set()
    # The body of a Loop gives its condition to the executor.
    conditions = {
        subgraphs(node)[0].outputs[0] for node in all_nodes(graph) if node.domain == "" and node.op_type == "Loop"
    }
    for inner in reversed(list(all_graphs(graph))):
        for node in reversed(list(inner)):
            for output in node.outputs:
                uses = output.uses()
                if output not in conditions and (not uses or output.is_graph_output()):
                    continue
                if all(_read_on_host(user, index, found) for user, index in uses):
                    found.add(output)
    return found


def _read_on_host(user: ir.Node, index: int, found: set[ir.Value]) -> bool:
    use = operator(user.domain, user.op_type).use(user, index)
    if use == "host":
        return True
    return (
        use == "device"
        and not subgraphs(user)
        and bool(user.outputs)
        and all(o in found for o in user.outputs if o.uses())
    )


def _constant(value: ir.Value) -> bool:
    return value.const_value is not None


def _small(value: ir.Value) -> bool:
    found = dims(value)
    if found is None or len(found) > 1:
        return False
    return all(isinstance(d, int) and d <= _SMALL for d in found) or value.const_value is None


def _small_integers(value: ir.Value) -> bool:
    found = dims(value)
    return (
        value.dtype in (ir.DataType.INT64, ir.DataType.INT32)
        and found is not None
        and (not found or (len(found) == 1 and isinstance(found[0], int) and found[0] <= 64))
    )
