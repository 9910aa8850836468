"""Chains and trees of elementwise operators → ElementwiseChain: one kernel, and no tensor in between.

A reduction along known axes, or a Transpose, that is the only reader of a chain becomes part of it, and so does a chain
behind it.

Runs after placement, as all of a chain must be on one provider; what it makes is placed again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import onnx_ir as ir

from py_ort.compiler.passes.contracts import check_placed
from py_ort.compiler.passes.match import same_dims, widened
from py_ort.compiler.passes.pass_base import Pass
from py_ort.compiler.passes.placed.chain_nodes import (
    FLOATS,
    TRANSPOSE,
    as_middle,
    fits,
    fits_into,
    is_plain,
    program_of,
    read,
    worth,
)
from py_ort.ir.builder import Builder
from py_ort.ir.graph import all_graphs, origins, remove, replace_value
from py_ort.ir.operators import INTERNAL, operator
from py_ort.providers import on_device
from py_ort.schema.dialect import ELEMENTWISE_CHAIN, FINISH, PROGRAM

_INPUTS = 6  # buffers that every device may bind at once, the result's and one more aside
_INSTRUCTIONS = 24
_CPU_OPERATORS = 4  # least length of a chain that is worth it on a CPU
_CPU_REDUCED = 2  # the same for a chain that a reduction reads, and that is therefore never written
_READERS = 2  # at most, of a value that each reader's chain computes again

ProviderOf = Callable[[ir.Node], str]


class Takes(Protocol):
    """A predicate: does a provider have ElementwiseChain for inputs of these dtypes, with further features?"""

    def __call__(self, provider: str, dtypes: Sequence[ir.DataType | None], *features: str) -> bool:
        """Tell it."""


class ElementwiseChains(Pass):
    """Collects a chain from its last operator backwards, as long as the values between have no other reader."""

    after = ("activation",)  # which moves functions into epilogues of products
    settles = False  # the new nodes have no place yet

    def __init__(self, provider_of: ProviderOf, takes: Takes) -> None:
        """Say where nodes run.

        Args:
            provider_of: The provider of a node.
            takes: A predicate; see `Takes`.
        """
        self._provider_of = provider_of
        self._takes = takes

    def requires(self, model: ir.Model) -> None:
        """Nodes are placed."""
        super().requires(model)
        check_placed(model, self._provider_of)

    def call(self, model: ir.Model) -> int:
        """Try each elementwise operator, reduction and Transpose that is not in a chain yet, the last ones first."""
        count = 0
        for graph in all_graphs(model.graph):
            done: set[ir.Node] = set()
            for node in reversed(list(graph)):
                if node in done or node.outputs[0].dtype not in FLOATS or _on_host(node.outputs[0]):
                    continue
                found = self._found(node)
                if found is not None:
                    done.update(found.fuse())
                    count += 1
        return count

    def _found(self, node: ir.Node) -> _Chain | None:
        """The best chain that ends with a node."""
        if as_middle(node):
            return self._kept(self._around(node, node, []))
        if not fits_into(node, node.outputs[0].dtype):
            return None
        chain = self._grow(node)
        inputs = _inputs(chain)
        value = inputs[0] if len(inputs) == 1 else None
        middle = None if value is None else value.producer()
        if value is not None and middle is not None and middle.graph is node.graph:
            whole = same_dims(value, node.outputs[0]) and not value.is_graph_output() and _only_in(chain, value)
            found = self._kept(self._around(middle, node, chain)) if whole else None
            if found is not None:
                return found
        return None if widened(node.outputs[0], inputs) else self._kept(_Chain(node, chain))

    def _around(self, middle: ir.Node, end: ir.Node, finish: list[ir.Node]) -> _Chain | None:
        floats = middle.outputs[0].dtype in FLOATS
        if not floats or not as_middle(middle) or self._provider_of(middle) != self._provider_of(end):
            return None
        last = self._before(middle)
        chain = [] if last is None else self._grow(last)
        if last is not None and widened(last.outputs[0], _inputs(chain)) is not False:
            chain = []
        return _Chain(end, chain, middle, finish)

    def _kept(self, found: _Chain | None) -> _Chain | None:
        """It, if it gains. A GPU saves launches, a CPU the way to memory: worth it for long chains of whole tensors."""
        if found is None:
            return None
        provider, inputs = self._provider_of(found.end), found.inputs
        if on_device(provider):
            gains = len(found.nodes) > 1
        else:
            fewest = _CPU_OPERATORS if found.middle is None else _CPU_REDUCED
            gains = len(found.chain) >= fewest and all(same_dims(v, found.chain[-1].outputs[0]) for v in inputs)
        dtypes = [value.dtype for value in inputs]
        typed = found.end.outputs[0].dtype in (ir.DataType.FLOAT, *dtypes)  # without floats a chain makes float32
        features = ["perm"] if found.is_transposed else []
        return found if gains and dtypes and typed and self._takes(provider, dtypes, *features) else None

    def _before(self, node: ir.Node) -> ir.Node | None:
        """Return the maker of a reduction's or Transpose's operand, if it fits a chain and has no other reader."""
        value = node.inputs[0]
        made = None if value is None else value.producer()
        if value is None or made is None or made.graph is not node.graph or value.is_graph_output():
            return None
        alone = len(value.uses()) == 1 and self._provider_of(made) == self._provider_of(node)
        return made if alone and value.dtype in FLOATS and fits_into(made, value.dtype) else None

    def _repeatable(self, node: ir.Node) -> bool:
        """Return True if both readers' chains should compute it: then its result need not be a tensor."""
        users = [use.node for use in node.outputs[0].uses()]
        provider = self._provider_of(node)
        return (
            is_plain(node)
            and len(users) <= _READERS
            and all(fits(user) and self._provider_of(user) == provider for user in users)
            and all(same_dims(user.outputs[0], node.outputs[0]) for user in users)
            and not any(fits(maker) for v in node.inputs if v is not None and (maker := v.producer()) is not None)
        )

    def _grow(self, last: ir.Node) -> list[ir.Node]:
        """Return the nodes of the chain, topologically sorted."""
        chain, members, inputs = [last], {last}, set(read(last))
        provider, dtype = self._provider_of(last), last.outputs[0].dtype
        at = 0
        while at < len(chain):
            for value in chain[at].inputs:
                made = None if value is None else value.producer()
                if value is None or made is None or made in members or made.graph is not last.graph:
                    continue
                if len(chain) == _INSTRUCTIONS or not fits_into(made, dtype):
                    continue
                if value.is_graph_output() or not (_only_in(members, value) or self._repeatable(made)):
                    continue
                if self._provider_of(made) != provider or not worth(made, last.outputs[0]):
                    continue
                more = (inputs | {v for v in read(made) if v.producer() not in members}) - {value}
                if len(more) <= _INPUTS:
                    chain.append(made)
                    members.add(made)
                    inputs = more
            at += 1
        return _ordered(chain)


def _only_in(chain: Collection[ir.Node], value: ir.Value) -> bool:
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


def _inputs(chain: Sequence[ir.Node]) -> list[ir.Value]:
    """Return the chain's inputs; numbers are part of the program."""
    made = {node.outputs[0] for node in chain}
    found = dict[ir.Value, None]()
    for node in chain:
        found.update((value, None) for value in read(node) if value not in made)
    return list(found)


@dataclass
class _Chain:
    """Nodes that become one: elementwise operators, maybe a reduction or Transpose, and operators after it."""

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
        """True if the chain has a Transpose, at any place."""
        return self.middle is not None and self.middle.op_type == TRANSPOSE

    @property
    def inputs(self) -> list[ir.Value]:
        """The inputs of the nodes."""
        source = self.middle.inputs[0] if self.middle is not None and not self.chain else None
        return [source] if source is not None else _inputs(self.chain)

    def fuse(self) -> list[ir.Node]:
        """Make the chain's node; return the nodes that it replaces."""
        inputs, nodes = self.inputs, self.nodes
        build = Builder(self.end, origin=[name for node in nodes for name in origins(node)])
        output = self.end.outputs[0]
        first = nodes if self.is_transposed else self.chain
        attributes: dict[str, Any] = {PROGRAM: program_of(first, inputs) or "Cast 0"}
        if self.middle is not None:
            attributes |= as_middle(self.middle)
        if self.finish and not self.is_transposed:
            attributes[FINISH] = program_of(self.finish, _inputs(self.finish))
        made = build.op(ELEMENTWISE_CHAIN, *inputs, domain=INTERNAL, **attributes)
        made.type, made.shape = output.type, output.shape
        replace_value(output, made)
        gone = []
        for node in reversed(nodes):
            if not node.outputs[0].uses():
                remove(node)
                gone.append(node)
        return gone
