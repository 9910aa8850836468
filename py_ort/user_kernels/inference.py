"""Shape inference of user kernels: their size expressions on symbols."""

from __future__ import annotations

from typing import Any

import onnx_ir as ir
import sympy  # type: ignore[import-untyped]

from py_ort.exceptions import InvalidGraph
from py_ort.ir.graph import attribute, dims, origins
from py_ort.ir.operators import Operator
from py_ort.ir.shape_data import known, shape_data
from py_ort.user_kernels.kernel import RequiredAttribute, UserKernel
from py_ort.user_kernels.sizes import Env, SizeError, evaluate


def declaration(kernel: UserKernel) -> Operator:
    """Return the operator's declaration for the compiler."""
    names = kernel.input_names
    return Operator(
        kernel.op_type,
        kernel.domain,
        host=tuple(i for i, name in enumerate(names) if name in kernel.host),
        # A formula is independent of the order of axes.
        layout="elementwise" if kernel.expression and kernel.shape is None and not kernel.uniforms else "",
        infer=lambda node: infer(kernel, node),
        kernel=kernel,
    )


def infer(kernel: UserKernel, node: ir.Node) -> None:
    """Set the types and shapes of a node's outputs, as far as they are known.

    Raises:
        InvalidGraph: The kernel's shape has no value for these inputs.
    """
    by_name = dict(zip(kernel.input_names, node.inputs, strict=False))
    env = Env(
        {name: _sizes(dims(value)) for name, value in by_name.items() if value is not None},
        {name: _attribute(kernel, node, name) for name in kernel.attributes},
        {name: _sizes(shape_data(by_name.get(name))) for name in kernel.host},
    )
    for output, name, dtype, tree in zip(
        node.outputs, kernel.outputs, kernel.output_dtypes, kernel.shapes, strict=False
    ):
        same = by_name.get(dtype)
        if same is not None and same.type is not None:
            output.type = same.type
        elif dtype not in by_name:
            output.type = ir.TensorType(_DTYPES[dtype])
        try:
            found = evaluate(tree, env)
        except SizeError as e:
            node_name = origins(node)[0]
            raise InvalidGraph(
                f"node {node_name} ({kernel.name}): the shape of its output {name!r} has no value: {e}",
                node=node_name,
                op_type=node.op_type,
                domain=node.domain,
                shapes={n: [str(d) for d in shape] for n, shape in env.shapes.items() if shape is not None},
            ) from None
        if isinstance(found, list):
            output.shape = ir.Shape([_dimension(size) for size in found])


_DTYPES = {
    "float32": ir.DataType.FLOAT,
    **{name: ir.DataType[name.upper()] for name in ("float16", "int64", "int32", "int16", "int8", "bool")},
    **{name: ir.DataType[name.upper()] for name in ("uint64", "uint32", "uint16", "uint8")},
}


def _attribute(kernel: UserKernel, node: ir.Node, name: str) -> Any:
    default = kernel.attributes[name]
    found = attribute(node, name, None if isinstance(default, RequiredAttribute) else default)
    return list(found) if isinstance(found, (list, tuple)) else found


def _sizes(elements: Any) -> list[Any] | None:
    """Return dimensions in the form for the language of sizes: numbers, sympy's expressions, or None."""
    if elements is None:
        return None
    return [d if isinstance(d, int) else d._expr if known(d) else None for d in elements]


def _dimension(size: Any) -> Any:
    if isinstance(size, sympy.Basic):
        return ir.SymbolicDim(size)
    return None if size is None else int(size)
