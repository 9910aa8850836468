"""A product, Softmax or normalization → FakeQuantize: appends the rounding to its epilogue.

Sums with a rounded product are made there, too (→ Add of a bias → FakeQuantize → Add of a residual → FakeQuantize).
Runs after placement: only kernels with the feature "steps" have epilogues of any length, and only those with "residual"
take one.
"""

from __future__ import annotations

from collections.abc import Callable

import onnx_ir as ir

from py_ort.compiler.passes.fuse.absorb import absorb, summands
from py_ort.compiler.passes.match import only_for, same_dims
from py_ort.compiler.passes.placed.chain_nodes import as_middle, number_of
from py_ort.compiler.passes.placed.kernel_pass import KernelPass, Takes
from py_ort.compiler.passes.quantization import is_rounding
from py_ort.compiler.passes.scalar_functions import function_of, numbers_of
from py_ort.ir import block_products
from py_ort.ir.block_products import is_block_product, may_end
from py_ort.ir.epilogue import Epilogue
from py_ort.ir.graph import all_nodes, dims, input_at, rank, replace_value
from py_ort.ir.operators import op_types, roundings
from py_ort.schema.dialect import NBITS_RESIDUAL, PRODUCT_BIAS, PRODUCT_RESIDUAL


class QuantizedEnds(KernelPass):
    """Rounding where the result is stored."""

    after = ("activation",)
    before = ("elementwise_chains",)

    def __init__(self, provider_of: Callable[[ir.Node], str], takes: Takes, takes_residual: Takes) -> None:
        """Say where nodes run.

        Args:
            provider_of: The provider of a node.
            takes: A predicate: does a node's kernel have epilogues of any length?
            takes_residual: A predicate: may the kernel's epilogues read a residual?
        """
        super().__init__(takes)
        self._provider_of = provider_of
        self._takes_residual = takes_residual

    def call(self, model: ir.Model) -> int:
        """Fuse each rounding that is the only reader of its input, in order."""
        nodes = list(all_nodes(model.graph))
        moved = sum(self._before_views(node) for node in nodes if is_rounding(node))
        return moved + sum(self._fuse(node) or self._add(node) for node in nodes)

    def _before_views(self, node: ir.Node) -> bool:
        """Move a rounding before a reshape, to the node that makes the elements, if that saves a dispatch."""
        user, value = node, node.inputs[0]
        while value is not None and only_for(value, user):
            maker = value.producer()
            if maker is None:
                return False
            if maker.domain != "" or maker.op_type not in op_types("view"):
                break
            user, value = maker, maker.inputs[0]
        else:
            return False
        averaged = self._provider_of(maker) == self._provider_of(node) and as_middle(maker)
        if user is node or not (averaged or self._is_host(maker, value, node)):
            return False
        behind, result, graph = node.inputs[0], node.outputs[0], node.graph
        assert behind is not None and graph is not None
        replace_value(result, behind)
        node.replace_input_with(0, value)
        user.replace_input_with(0, result)
        result.shape = None if value.shape is None else value.shape.copy()
        graph.remove(node)
        graph.insert_before(user, node)
        return True

    def _fuse(self, node: ir.Node) -> bool:
        row = function_of(node) if is_rounding(node) else None
        if row is None:
            return False
        x = node.inputs[0]
        host = None if x is None else x.producer()
        if x is None or host is None or not only_for(x, node) or not self._is_host(host, x, node):
            return False
        Epilogue.of(host).then(row.name, numbers_of(row, node)).write(host)
        absorb(host, node)
        return True

    def _is_host(self, host: ir.Node, x: ir.Value, node: ir.Node) -> bool:
        """Return True if the kernel that makes `x`, on the provider of `node`, may have an epilogue of any length."""
        return (
            x is host.outputs[0]
            and x.dtype == ir.DataType.FLOAT
            and self._provider_of(host) == self._provider_of(node)
            and self._takes(host)
            and may_end(host)
        )

    def _add(self, node: ir.Node) -> bool:
        """Append to an epilogue with a rounding an addition: of a number, a bias or a residual."""
        if (node.domain, node.op_type) != ("", "Add"):
            return False
        for host, x, z in summands(node):
            if not self._is_host(host, x, node) or not _is_rounded(host) or not self._append(host, x, z):
                continue
            if z.const_value is None:  # it may be made after the product was
                assert node.graph is not None
                node.graph.remove(host)
                node.graph.insert_before(node, host)
            absorb(host, node)
            return True
        return False

    def _append(self, host: ir.Node, x: ir.Value, z: ir.Value) -> bool:
        """Let the epilogue of the host, which makes `x`, add `z`."""
        epilogue = Epilogue.of(host)
        number, made = number_of(z), dims(x)
        if number is not None and (rank(z) or 0) <= (rank(x) or 0):
            epilogue.plus(number).write(host)
        elif z.const_value is not None and made and dims(z) == made[-1:] and _add_input(host, _bias_of(host), z):
            epilogue.plus_bias().write(host)
        elif (
            z.const_value is None
            and same_dims(x, z)
            and self._takes_residual(host)
            and _add_input(host, NBITS_RESIDUAL if is_block_product(host) else PRODUCT_RESIDUAL, z)
        ):
            epilogue.plus_residual().write(host)
        else:
            return False
        return True


def _bias_of(host: ir.Node) -> int | None:
    """Where a product may have a bias that its epilogue adds; a vector on the right leaves no columns for one."""
    if is_block_product(host):
        return block_products.BIAS
    return PRODUCT_BIAS if host.op_type == "MatMul" and rank(host.inputs[1]) != 1 else None


def _add_input(host: ir.Node, place: int | None, value: ir.Value) -> bool:
    """Give a node one more input, if it has none there yet."""
    if place is None or input_at(host, place) is not None:
        return False
    if len(host.inputs) <= place:
        host.resize_inputs(place + 1)
    host.replace_input_with(place, value)
    return True


def _is_rounded(host: ir.Node) -> bool:
    epilogue = Epilogue.of(host)
    return any(epilogue.has("function", name) for name in roundings().values())
