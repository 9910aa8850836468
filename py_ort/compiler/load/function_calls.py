"""Functions of a model that call each other: without end, or so often that there is no room for their nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

import onnx_ir as ir

from py_ort.exceptions import InvalidGraph, NotImplemented
from py_ort.ir.graph import all_nodes

_MOST_NODES = 1 << 18


def check_calls(model: ir.Model) -> None:
    """Count the nodes that calls of functions become.

    Raises:
        InvalidGraph: A function calls itself, or others that call it.
        NotImplemented: There are more nodes than can be compiled.
    """
    if not model.functions:
        return
    sizes: dict[ir.OperatorIdentifier, int] = {}
    own = _calls(all_nodes(model.graph), model.functions)
    for key in own:
        _count(key, model.functions, sizes)
    made = sum(sizes[key] * count for key, count in own.items())
    if made > _MOST_NODES:
        raise NotImplemented(
            f"the model's functions call each other so often that they become more than {_MOST_NODES} nodes: "
            "export the model with fewer layers of functions"
        )


def _calls(
    nodes: Iterable[ir.Node], functions: Mapping[ir.OperatorIdentifier, ir.Function]
) -> Counter[ir.OperatorIdentifier]:
    return Counter(key for node in nodes if (key := node.op_identifier()) in functions)


def _count(
    start: ir.OperatorIdentifier,
    functions: Mapping[ir.OperatorIdentifier, ir.Function],
    sizes: dict[ir.OperatorIdentifier, int],
) -> None:
    """Add to `sizes` the number of nodes that a function, and each that it calls, expands to; without recursion."""
    callers: dict[ir.OperatorIdentifier, Counter[ir.OperatorIdentifier]] = {}
    pending = [start]
    while pending:
        key = pending[-1]
        if key in sizes:
            pending.pop()
            continue
        if key not in callers:
            callers[key] = _calls(all_nodes(functions[key].graph), functions)
        missing = [called for called in callers[key] if called not in sizes]
        if any(called in callers for called in missing):
            raise InvalidGraph(f"the function {key[1]} calls itself, or another function that calls it")
        if missing:
            pending += missing
            continue
        nodes = sum(1 for _ in all_nodes(functions[key].graph))
        made = nodes + sum(sizes[called] * count for called, count in callers[key].items())
        sizes[key] = min(made, _MOST_NODES + 1)
        pending.pop()
