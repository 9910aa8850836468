"""Weighs pieces of a graph on a device between nodes on the CPU: time saved against transfers there and back.

A piece is what runs on the device in one go: connected nodes with as many visits of the CPU before them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping

import onnx_ir as ir

from py_ort.compiler.passes.placed.estimates import SYMBOLS, Estimates
from py_ort.ir.graph import dims, element_bytes
from py_ort.ir.operators import operator, reads
from py_ort.providers import PlacedNode
from py_ort.providers.placement_table import SHAPE_ARITHMETIC
from py_ort.providers.provider import Crossing

#: Operations that the core does in a millisecond, with two threads.
_OPERATIONS_PER_MS = 40e6
#: Operations that take as long as a value that is read and written once.
_OPERATIONS_OF_A_VALUE = 40


def small_pieces(
    graph: ir.Graph,
    placed: Mapping[ir.Node, PlacedNode],
    provider: str,
    price: Crossing,
    on_cpu_too: Callable[[ir.Node], bool],
) -> set[ir.Node]:
    """Return the nodes of a provider whose pieces had better run on the CPU.

    Args:
        graph: The main graph.
        placed: Where each node is so far.
        provider: The provider that has the pieces.
        price: See `Crossing`.
        on_cpu_too: A predicate: does the CPU have a kernel for the node?
    """
    found: set[ir.Node] = set()
    sizes = Estimates()
    own = {node for node in graph if placed[node].provider == provider}
    on_cpu = {node for node in graph if not placed[node].on_device and placed[node].reason != SHAPE_ARITHMETIC}

    def milliseconds(values: Iterable[ir.Value]) -> float:
        return price.ms_per_mb * sum(_bytes(value, sizes) for value in values) / 1e6

    for piece in _pieces(graph, own, on_cpu):
        read = {value for node in piece for value in _read(node) if value.producer() not in piece}
        made = {value for node in piece for value in node.outputs}
        given = {value for value in read if value.producer() in on_cpu}
        taken = {value for value in made if on_cpu.intersection(_readers(value))}
        if not given or not taken or not all(map(on_cpu_too, piece)):
            continue
        others = own - piece
        beside = {v for v in read if v.producer() in others} | {v for v in made if others.intersection(_readers(v))}
        saved = price.gain * sum(_operations(node, sizes) for node in piece) / _OPERATIONS_PER_MS
        if saved + milliseconds(beside) < price.ms + milliseconds(given | taken):
            found |= piece
    return found


def _pieces(graph: ir.Graph, own: set[ir.Node], on_cpu: set[ir.Node]) -> Iterator[set[ir.Node]]:
    if not on_cpu:
        return
    visits: dict[ir.Node | None, int] = {}
    beside: dict[ir.Node, list[ir.Node]] = {node: [] for node in graph if node in own}
    for node in graph:
        makers = {value.producer() for value in _read(node)}
        visits[node] = max((visits.get(maker, 0) + (maker in on_cpu and node in own) for maker in makers), default=0)
        for maker in makers if node in own else ():
            if maker is not None and maker in own and visits[maker] == visits[node]:
                beside[node].append(maker)
                beside[maker].append(node)
    while beside:
        piece: set[ir.Node] = set()
        waiting = [next(iter(beside))]
        while waiting:
            node = waiting.pop()
            piece.add(node)
            waiting += beside.pop(node, ())
        yield piece


def _read(node: ir.Node) -> Iterator[ir.Value]:
    """Yield the values whose elements a node reads."""
    for index, value in enumerate(node.inputs):
        if value is not None and reads(node, index):
            yield value


def _readers(value: ir.Value) -> Iterator[ir.Node]:
    return (user for user, i in value.uses() if reads(user, i))


def _bytes(value: ir.Value | None, sizes: Estimates) -> float:
    return 0.0 if value is None else float(sizes.bytes(value)[0][-1])


def _operations(node: ir.Node, sizes: Estimates) -> float:
    """Return the operations of a node, about: of products, and else by the values that it makes."""

    def count(value: ir.Value | None) -> float:
        return 0.0 if value is None else _bytes(value, sizes) / element_bytes(value.dtype)

    def known(value: ir.Value | None) -> list[int]:
        return [size if isinstance(size, int) else SYMBOLS[-1] for size in dims(value) or ()]

    made = count(node.outputs[0])
    if node.op_type.startswith("Conv") and len(node.inputs) > 1:
        return 2 * math.prod(known(node.inputs[1])[1:]) * (made if node.op_type == "Conv" else count(node.inputs[0]))
    if node.op_type.endswith("MatMul") or node.op_type == "Gemm":
        return 2 * made * (known(node.inputs[0]) or [1])[-1]
    heavy = any(operator(domain, node.op_type).heavy for domain in {"", node.domain})
    return made * _OPERATIONS_OF_A_VALUE * (10 if heavy else 1)
