"""The layout pass: channels last for nodes with such kernels, and as few transposes as possible.

One walk backwards collects the layout that readers prefer, one walk forwards makes nodes again on permuted forms.
Preferred layouts go backwards through whatever may have any order: also Reshapes whose groups of axes stay together,
rows of products, quantized values. Transposes are lazy (`forms.py`), in graphs without windows too; fusions ran before,
on NCHW.
"""

from __future__ import annotations

from collections import Counter

import onnx_ir as ir

from py_ort.compiler.layout.attention_rules import ROWS
from py_ort.compiler.layout.forms import Forms, Perm, channels_last, identity
from py_ort.compiler.layout.reshape_rules import source_order
from py_ort.compiler.layout.rules import rule
from py_ort.compiler.layout.windows import JOINING, TRANSPARENT, Supports, is_window, takes_residual, to_nhwc
from py_ort.compiler.passes.contracts import check_channels_first
from py_ort.compiler.passes.pass_base import Pass
from py_ort.ir.graph import all_nodes, attribute, input_at, rank, remove, subgraphs
from py_ort.ir.operators import operator
from py_ort.schema.dialect import PRODUCT_RESIDUAL


class Nhwc(Pass):
    """NCHW → NHWC where it pays, and transposes pushed as far as they go."""

    before = ("elementwise_chains", "columns")
    settles = False  # each node that can be on permuted forms is made again

    def __init__(self, supports: Supports) -> None:
        """`supports` tells for a Conv or pool whether its provider has the NHWC form."""
        self._supports = supports

    def requires(self, model: ir.Model) -> None:
        """The one time that this is done."""
        super().requires(model)
        check_channels_first(model)

    def call(self, model: ir.Model) -> int:
        """Convert the main graph and each subgraph by itself; without windows too, transposes may cancel."""
        if not any(node.op_type == "Transpose" or is_window(node, self._supports) for node in all_nodes(model.graph)):
            return 0
        return self._convert(model.graph)

    def _convert(self, graph: ir.Graph) -> int:
        preferred = self._preferred_layouts(graph)
        forms = Forms(graph)
        replaced: list[ir.Node] = []
        for node in list(graph):
            forms.enter(node)
            declared = operator(node.domain, node.op_type)
            if is_window(node, self._supports):
                to_nhwc(node, forms)
                replaced.append(node)
            elif declared.layout in rule and rule[declared.layout](node, forms, preferred.get):
                replaced.append(node)
            else:
                _make_plain(node, forms)
                for subgraph in subgraphs(node):
                    forms.changed += self._convert(subgraph)
        forms._at = None
        for i, output in enumerate(list(graph.outputs)):
            plain = forms.plain(output)
            if plain is not None and plain is not output:
                _give_out(graph, i, output, plain)
        for node in reversed(replaced):
            remove(node)
        return forms.changed

    def _preferred_layouts(self, graph: ir.Graph) -> dict[ir.Value, Perm]:
        """The permutation that most readers of a value prefer; the plain one is not mentioned where it is alone."""
        votes: dict[ir.Value, Counter[Perm]] = {}

        def vote(value: ir.Value | None, perm: Perm) -> None:
            if value is not None and value.const_value is None and rank(value) == len(perm):
                votes.setdefault(value, Counter())[perm] += 1

        def most_preferred(*values: ir.Value) -> Perm | None:
            counted: Counter[Perm] = Counter()
            for value in values:
                counted.update(votes.get(value, ()))
            if not counted:
                return None
            count = len(next(iter(counted)))
            return max(counted, key=lambda perm: (counted[perm], perm != identity(count)))

        for output in graph.outputs:
            vote(output, identity(rank(output) or 0))
        for node in reversed(list(graph)):
            layout = operator(node.domain, node.op_type).layout
            if is_window(node, self._supports):
                vote(node.inputs[0], channels_last(rank(node.inputs[0]) or 0))
                if takes_residual(node) and (z := input_at(node, PRODUCT_RESIDUAL)) is not None:
                    vote(z, channels_last(rank(node.inputs[0]) or 0))
                continue
            wanted = most_preferred(*node.outputs)
            if layout in TRANSPARENT and wanted is not None:
                for value in node.inputs if layout in JOINING else node.inputs[:1]:
                    vote(value, wanted)
            elif layout == "transpose" and wanted is not None and attribute(node, "perm"):
                perm = attribute(node, "perm")
                vote(node.inputs[0], tuple(perm[a] for a in wanted))
            elif layout == "product":
                rows = wanted and wanted[-1] == len(wanted) - 1 and rank(node.inputs[1]) == 2
                for value in (node.inputs[0], *node.inputs[3:]):
                    vote(value, wanted if rows and wanted else identity(rank(value) or 0))
            elif layout == "reshape":
                vote(node.inputs[0], source_order(node, wanted) or identity(rank(node.inputs[0]) or 0))
            elif layout == "attention":
                for value in node.inputs[:3]:
                    vote(value, ROWS)
            elif layout not in TRANSPARENT and layout not in (
                "transpose",
                "shape",
                "size",
                "squeeze",
                "unsqueeze",
                "reduce",
            ):
                for value in node.inputs:
                    if value is not None and rank(value):
                        vote(value, identity(rank(value) or 0))
        found = {}
        for value in votes:
            wanted = most_preferred(value)
            if wanted is not None:
                found[value] = wanted
        return found


def _make_plain(node: ir.Node, forms: Forms) -> None:
    """Let the node, and its subgraphs, read plain values."""
    for index, value in enumerate(node.inputs):
        plain = forms.plain(value)
        if plain is not value:
            node.replace_input_with(index, plain)
    for subgraph in subgraphs(node):
        for inner in all_nodes(subgraph):
            for index, value in enumerate(inner.inputs):
                plain = forms.plain(value)
                if plain is not value:
                    inner.replace_input_with(index, plain)
        _outer_outputs(subgraph, forms)


def _outer_outputs(graph: ir.Graph, forms: Forms) -> None:
    """A branch may give an outer value out as it is."""
    for i, output in enumerate(list(graph.outputs)):
        plain = forms.plain(output)
        if plain is not None and plain is not output:
            graph.outputs[i] = plain


def _give_out(graph: ir.Graph, index: int, output: ir.Value, plain: ir.Value) -> None:
    """Let graph output `index` be `plain`, under the old name."""
    if plain.is_graph_output() or plain.is_graph_input() or plain.is_initializer():
        copy = ir.Node("", "Identity", [plain], num_outputs=1)
        copy.outputs[0].type, copy.outputs[0].shape = output.type, output.shape
        graph.append(copy)
        plain = copy.outputs[0]
    name = output.name
    graph.outputs[index] = plain
    output.name, plain.name = f"{name}__nchw", name
    if output.shape is not None:
        plain.shape = output.shape
