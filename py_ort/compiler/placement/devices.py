"""Devices of a page, asked which nodes they take: some browsers take fewer calls of a kernel than others."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import onnx_ir as ir

from py_ort.compiler.plan.attributes import pack_attributes
from py_ort.ir.graph import dims
from py_ort.ir.operators import operator
from py_ort.schema.gen.Call import CallT
from py_ort.schema.gen.Location import Location
from py_ort.schema.gen.TensorDesc import TensorDescT
from py_ort.wire import Layout
from py_ort.wire.tensors import on_gpu, pack

#: Given a provider, calls, and the elements of their host inputs; returns for each call why the provider's device does
#: not take it, or "".
Ask = Callable[[str, Sequence[CallT], Layout], Sequence[str]]


@dataclass
class Devices:
    """The devices that a plan is made for.

    Attributes:
        key: Equal for devices that give the same answers.
        ask: See `Ask`.
    """

    key: str
    ask: Ask
    _known: dict[tuple[Any, ...], str] = field(default_factory=dict)

    def refusals(self, provider: str, nodes: Iterable[ir.Node]) -> Mapping[ir.Node, str]:
        """Return the nodes that the provider's device refuses, each with the reason.

        Nodes with sizes or host inputs that are not known before the run are left out: the run tells.
        """
        layout, calls, keys = Layout(), dict[tuple[Any, ...], CallT](), dict[ir.Node, tuple[Any, ...]]()
        for node in nodes:
            if (key := _key(provider, node)) is None:
                continue
            keys[node] = key
            if key not in self._known and key not in calls:
                calls[key] = _call(key, node, layout)
        if calls:
            self._known.update(zip(calls, self.ask(provider, [*calls.values()], layout), strict=True))
        return {node: self._known[key] for node, key in keys.items() if self._known[key]}


def _key(provider: str, node: ir.Node) -> tuple[Any, ...] | None:
    """Return a key that is equal for equal calls; None if the call is not known before the run."""
    inputs: list[Any] = []
    declared = operator(node.domain, node.op_type)
    for index, value in enumerate(node.inputs):
        if value is None:
            inputs.append(None)
            continue
        sizes = dims(value)
        if value.dtype is None or sizes is None or not all(isinstance(size, int) for size in sizes):
            return None
        known = b""
        if declared.use(node, index) == "host":
            if value.const_value is None:
                return None
            known = value.const_value.tobytes()
        inputs.append((value.dtype, tuple(sizes), known))
    attributes = pack_attributes(node.attributes.values())
    return provider, node.domain, node.op_type, attributes, tuple(inputs), len(node.outputs)


def _call(key: tuple[Any, ...], node: ir.Node, layout: Layout) -> CallT:
    call = CallT()
    _, call.domain, call.opType, attributes, _, call.outputs = key
    call.attributes = list(attributes)
    call.inputs = [_input(node, index, value, layout) for index, value in enumerate(node.inputs)]
    return call


def _input(node: ir.Node, index: int, value: ir.Value | None, layout: Layout) -> TensorDescT:
    use = "" if value is None else operator(node.domain, node.op_type).use(node, index)
    if value is None or use == "shape":
        description = TensorDescT()
        description.location = Location.none
        return description
    if use == "host":
        assert value.const_value is not None
        return pack(str(index), value.const_value.numpy(), layout)
    return on_gpu(
        str(index), int(value.dtype or 0), [size for size in dims(value) or () if isinstance(size, int)], index + 1
    )
