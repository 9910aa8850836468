"""Chains and trees of elementwise operators → ElementwiseChain: one kernel, and no tensor in between.

A reduction along known axes, or a Transpose, that is the only reader of a chain becomes part of it, and so does a chain
behind it.

Runs after placement, as all of a chain must be on one provider; what it makes is placed again.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.compiler.passes.contracts import check_placed
from py_ort.compiler.passes.match import reduced_axes, same_dims
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.scalar_functions import function_of, numbers_of
from py_ort.ir.builder import Builder
from py_ort.ir.graph import all_graphs, attribute, dims, origins, rank, remove, replace_value, scalar
from py_ort.ir.operators import INTERNAL, NHWC, operator
from py_ort.ir.programs import Instruction, program_text
from py_ort.ir.rules import Rules

_INPUTS = 6  # buffers that every device may bind at once, the result's and one more aside
_INSTRUCTIONS = 24
_CPU_OPERATORS = 4  # of a chain that a CPU gains by
_CPU_REDUCED = 2  # of one that is reduced at once, and so not written at all
_READERS = 2  # of what is computed again for each
_FLOATS = (ir.DataType.FLOAT, ir.DataType.FLOAT16)
_INTEGERS = (ir.DataType.INT32, ir.DataType.INT64)
_PRODUCTS = (2.0, 3.0)  # exponents of which a power is made of products
_TRANSPOSE = "Transpose"

ProviderOf = Callable[[ir.Node], str]
Takes = Callable[..., bool]


class ElementwiseChains(Pass):
    """From its last operator backwards, as far as nothing else reads what is between."""

    after = ("activation",)  # what a product's kernel computes is not a chain
    settles = False  # the new nodes have no place yet

    def __init__(self, provider_of: ProviderOf, takes: Takes) -> None:
        """Say where nodes run.

        Args:
            provider_of: The provider of a node.
            takes: Whether a provider has ElementwiseChain for inputs of these dtypes, with further features.
        """
        self._provider_of = provider_of
        self._takes = takes

    def requires(self, model: ir.Model) -> None:
        """Nodes are placed."""
        super().requires(model)
        check_placed(model, self._provider_of)

    def call(self, model: ir.Model) -> int:
        """Try each elementwise operator and reduction that is not in a chain yet, the last ones first."""
        count = 0
        for graph in all_graphs(model.graph):
            done: set[ir.Node] = set()
            for node in reversed(list(graph)):
                if node in done or node.outputs[0].dtype not in _FLOATS or _on_host(node.outputs[0]):
                    continue
                found = self._found(node)
                if found is not None:
                    done.update(found.fuse())
                    count += 1
        return count

    def _found(self, node: ir.Node) -> _Chain | None:
        """The best chain that ends with a node."""
        if _middle_of(node):
            return self._kept(self._around(node, node, []))
        if not _fits(node):
            return None
        chain = self._grow(node)
        value = _inputs(chain)[0] if len(_inputs(chain)) == 1 else None
        middle = None if value is None else value.producer()
        if value is not None and middle is not None and middle.graph is node.graph:
            whole = same_dims(value, node.outputs[0]) and not value.is_graph_output() and _only_in(chain, value)
            found = self._kept(self._around(middle, node, chain)) if whole else None
            if found is not None:
                return found
        return self._kept(_Chain(node, chain))

    def _around(self, middle: ir.Node, end: ir.Node, finish: list[ir.Node]) -> _Chain | None:
        floats = middle.outputs[0].dtype in _FLOATS
        if not floats or not _middle_of(middle) or self._provider_of(middle) != self._provider_of(end):
            return None
        last = self._before(middle)
        chain = [] if last is None else self._grow(last)
        # A constant has axes that the inputs lack.
        if last is not None and rank(last.outputs[0]) != max(
            (rank(value) or 0 for value in _inputs(chain)), default=-1
        ):
            chain = []
        return _Chain(end, chain, middle, finish)

    def _kept(self, found: _Chain | None) -> _Chain | None:
        """It, if it gains. A GPU saves launches, a CPU the way to memory: worth it for long chains of whole tensors."""
        if found is None:
            return None
        provider, inputs = self._provider_of(found.end), found.inputs
        if provider != "wasm":
            gains = len(found.nodes) > 1
        else:
            fewest = _CPU_OPERATORS if found.middle is None else _CPU_REDUCED
            gains = len(found.chain) >= fewest and all(same_dims(v, found.chain[-1].outputs[0]) for v in inputs)
        dtypes = [value.dtype for value in inputs]
        features = ["perm"] if found.is_transposed else []
        return found if gains and dtypes and self._takes(provider, dtypes, *features) else None

    def _before(self, node: ir.Node) -> ir.Node | None:
        """What makes the tensor that a reduction or Transpose reads, if it can be in a chain, and no other reads it."""
        value = node.inputs[0]
        made = None if value is None else value.producer()
        if value is None or made is None or made.graph is not node.graph or value.is_graph_output():
            return None
        alone = len(value.uses()) == 1 and self._provider_of(made) == self._provider_of(node)
        return made if alone and _fits(made) and value.dtype in _FLOATS else None

    def _repeatable(self, node: ir.Node) -> bool:
        """Whether to compute it in the chains of both of its readers: then nobody needs its result as a tensor."""
        users = [use.node for use in node.outputs[0].uses()]
        provider = self._provider_of(node)
        return (
            _is_plain(node)
            and len(users) <= _READERS
            and all(_fits(user) and self._provider_of(user) == provider for user in users)
            and all(same_dims(user.outputs[0], node.outputs[0]) for user in users)
            and not any(_fits(maker) for v in node.inputs if v is not None and (maker := v.producer()) is not None)
        )

    def _grow(self, last: ir.Node) -> list[ir.Node]:
        """The nodes of the chain, each behind those that it reads."""
        chain = [last]
        provider = self._provider_of(last)
        at = 0
        while at < len(chain):
            for value in chain[at].inputs:
                made = None if value is None else value.producer()
                if value is None or made is None or made in chain or made.graph is not last.graph or not _fits(made):
                    continue
                if value.is_graph_output() or not (_only_in(chain, value) or self._repeatable(made)):
                    continue
                if self._provider_of(made) != provider or not _worth(made, last.outputs[0]):
                    continue
                more = [*chain, made]
                if len(_inputs(more)) <= _INPUTS and len(more) <= _INSTRUCTIONS:
                    chain = more
            at += 1
        return _ordered(chain)


def _only_in(chain: list[ir.Node], value: ir.Value) -> bool:
    return all(use.node in chain for use in value.uses())


def _ordered(chain: list[ir.Node]) -> list[ir.Node]:
    members, found = set(chain), dict[ir.Node, None]()

    def visit(node: ir.Node) -> None:
        for value in node.inputs:
            made = None if value is None else value.producer()
            if made in members and made not in found:
                visit(made)
        found[node] = None

    visit(chain[0])
    return list(found)


def _on_host(value: ir.Value) -> bool:
    return any(operator(use.node.domain, use.node.op_type).use(use.node, use.idx) != "device" for use in value.uses())


def _number(value: ir.Value | None) -> float | None:
    """A finite constant of one element that broadcasts to anything. (Shaders cannot spell infinities and NaNs.)"""
    found = scalar(value) if value is not None and value.dtype in _FLOATS and (rank(value) or 0) <= 1 else None
    return None if found is None or not math.isfinite(found) else float(found)


def _fits(node: ir.Node) -> bool:
    """Whether a node can be an instruction."""
    if node.domain not in ("", INTERNAL) or len(node.outputs) != 1 or not node.inputs:
        return False
    kinds = [None if v is None else v.dtype for v in node.inputs]
    fits = _fit.of(node)
    if fits is not None:
        return fits(node, kinds)
    return (_is_plain(node) or function_of(node) is not None) and kinds[0] in _FLOATS


def _is_plain(node: ir.Node) -> bool:
    """Whether its operator is an instruction as it is."""
    declared = operator(node.domain, node.op_type)
    return declared.in_chains and declared.layout == "elementwise"


def _middle_of(node: ir.Node) -> dict[str, Any]:
    """The attributes of a chain by which it does what a reduction or Transpose does; none for others."""
    declared, count = operator(node.domain, node.op_type), rank(node.inputs[0]) if node.inputs else None
    if node.domain == "" and declared.in_chains and declared.layout == "reduce":
        axes = reduced_axes(node)
        return {} if axes is None else _reduction(node.op_type, axes, attribute(node, "keepdims", 1))
    if count is None or node.domain not in ("", NHWC):
        return {}
    if node.op_type == "GlobalAveragePool":
        return _reduction("ReduceMean", range(1, count - 1) if node.domain == NHWC else range(2, count), 1)
    if node.op_type == _TRANSPOSE:
        return {"perm": attribute(node, "perm", [*range(count)][::-1])}
    return {}


def _reduction(op_type: str, axes: Iterable[int], keepdims: int) -> dict[str, Any]:
    return {"reduction": op_type, "axes": [*axes], "keepdims": keepdims}


_fit = Rules[Callable[[ir.Node, "list[ir.DataType | None]"], bool]]()
"""Whether a node whose inputs are of these types can be an instruction, where floats alone do not say it."""


@_fit("Cast")
def _fits_cast(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return kinds[0] in (*_INTEGERS, ir.DataType.BOOL) and node.outputs[0].dtype == ir.DataType.FLOAT


@_fit("Clip")
def _fits_clip(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return kinds[0] in _FLOATS and all(v is None or _bound(v) is not None for v in node.inputs[1:])


@_fit("And", "Or", "Xor", "Not")
def _fits_truths(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return True


@_fit("Where")
def _fits_where(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return kinds[1] in _FLOATS


@_fit("Pow")
def _fits_power(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return kinds[0] in _FLOATS and _exponent(node) is not None


@_fit("IsNaN", "IsInf")
def _fits_class(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    """What is infinite as float16 need not be so here."""
    return kinds[0] == ir.DataType.FLOAT


@_fit("Mod")
def _fits_remainder(node: ir.Node, kinds: list[ir.DataType | None]) -> bool:
    return bool(attribute(node, "fmod", 0)) and kinds[0] in _FLOATS


def _exponent(node: ir.Node) -> float | None:
    """What all elements are raised to, if that is a finite number."""
    found = scalar(node.inputs[1]) if (rank(node.inputs[1]) or 0) <= (rank(node.inputs[0]) or 0) else None
    return None if found is None or not math.isfinite(found) else float(found)


def _largest(clip: ir.Node) -> float:
    """What bounds a Clip that has no bound of its own: infinities become it."""
    x = clip.inputs[0]
    assert x is not None and x.dtype is not None
    return float(np.finfo(x.dtype.numpy()).max)


def _bound(value: ir.Value | None) -> float | None:
    found = scalar(value)
    return None if found is None else float(found)


def _worth(node: ir.Node, result: ir.Value) -> bool:
    """Whether the operator may be computed for each element of the result: if it is of that shape, or cheap."""
    made = node.outputs[0]
    row = function_of(node)
    cheap = _is_plain(node) or node.op_type in ("Cast", "Clip") or (row is not None and row.cheap)
    cheap = cheap or (node.op_type == "Pow" and _exponent(node) in _PRODUCTS)
    if cheap or same_dims(made, result):
        return True
    small, wide = dims(made), dims(result)
    if small is None or wide is None or len(small) != len(wide):
        return False
    return not any(d == 1 and other != 1 for d, other in zip(small, wide, strict=True))


def _inputs(chain: Sequence[ir.Node]) -> list[ir.Value]:
    """What the chain reads from outside; numbers are part of the program."""
    made = {node.outputs[0] for node in chain}
    found = dict[ir.Value, None]()
    for node in chain:
        for value in node.inputs if node.op_type not in ("Clip", "Pow") else node.inputs[:1]:
            if value is not None and value not in made and _number(value) is None:
                found[value] = None
    return list(found)


@dataclass
class _Chain:
    """What becomes one node: elementwise operators, perhaps a reduction or Transpose, and operators behind that."""

    end: ir.Node
    chain: list[ir.Node]
    middle: ir.Node | None = None
    finish: list[ir.Node] = field(default_factory=list)

    @property
    def nodes(self) -> list[ir.Node]:
        """All of them, in order."""
        return [*self.chain, *([self.middle] if self.middle is not None else []), *self.finish]

    @property
    def is_transposed(self) -> bool:
        """Whether it has a Transpose; its place among the others is all the same."""
        return self.middle is not None and self.middle.op_type == _TRANSPOSE

    @property
    def inputs(self) -> list[ir.Value]:
        """What they read."""
        read = self.middle.inputs[0] if self.middle is not None and not self.chain else None
        return [read] if read is not None else _inputs(self.chain)

    def fuse(self) -> list[ir.Node]:
        """Make the node; return those that are gone for it."""
        inputs, nodes = self.inputs, self.nodes
        build = Builder(self.end, origin=[name for node in nodes for name in origins(node)])
        output = self.end.outputs[0]
        first = nodes if self.is_transposed else self.chain
        attributes: dict[str, Any] = {"program": _program(first, inputs) or "Cast 0"}
        if self.middle is not None:
            attributes |= _middle_of(self.middle)
        if self.finish and not self.is_transposed:
            attributes["finish"] = _program(self.finish, _inputs(self.finish))
        made = build.op("ElementwiseChain", *inputs, domain=INTERNAL, **attributes)
        made.type, made.shape = output.type, output.shape
        replace_value(output, made)
        gone = []
        for node in reversed(nodes):
            if not node.outputs[0].uses():
                remove(node)
                gone.append(node)
        return gone


def _program(chain: Sequence[ir.Node], inputs: Sequence[ir.Value]) -> str:
    registers: dict[ir.Value, int] = {value: i for i, value in enumerate(inputs)}
    instructions: list[Instruction] = []

    def add(op: str, *read: int, numbers: Iterable[float | None] = ()) -> int:
        known = tuple(number for number in numbers if number is not None)
        instructions.append(Instruction(op, read, known))
        return len(inputs) + len(instructions) - 1

    def register(value: ir.Value | None) -> int:
        assert value is not None
        if value not in registers:
            registers[value] = add("Number", numbers=[_number(value)])
        return registers[value]

    for node in chain:
        source = register(node.inputs[0])
        if node.op_type == _TRANSPOSE:
            made = source
        elif node.op_type == "Clip":
            bounds = [_bound(v) if v is not None else None for v in (*node.inputs[1:3], None, None)[:2]]
            largest = _largest(node)
            limits = (-largest if bounds[0] is None else bounds[0], largest if bounds[1] is None else bounds[1])
            made = add("Clip", source, numbers=limits)
        elif node.op_type == "Pow":
            exponent = _exponent(node)
            squares = exponent in _PRODUCTS
            made = add("Mul", source, source) if squares else add("Pow", source, numbers=[exponent])
            if exponent == 3.0:
                made = add("Mul", made, source)
        elif node.op_type in ("Max", "Min"):  # of any number of inputs: one after the other
            made = source
            for value in node.inputs[1:]:
                made = add(node.op_type, made, register(value))
        elif node.op_type == "IsInf":
            kinds = [float(attribute(node, name, 1)) for name in ("detect_positive", "detect_negative")]
            made = add(node.op_type, source, numbers=kinds)
        elif (row := function_of(node)) is not None:
            made = add(row.name, source, numbers=numbers_of(row, node))
        else:
            made = add(node.op_type, source, *(register(v) for v in node.inputs[1:]))
        registers[node.outputs[0]] = made
    return program_text(instructions)
