"""Makes nodes for lowerings, passes and the layout; outputs have their types at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from py_ort.ir.graph import add_constant, make_attribute, origins, remove, replace_value, set_origins, tensor_of
from py_ort.ir.infer import infer_node


class Builder:
    """Makes nodes in front of an anchor node.

    New nodes get types and shapes at once, and the anchor's origins. `made` has them, in order.
    """

    def __init__(self, anchor: ir.Node, *, after: bool = False, origin: Sequence[str] | None = None) -> None:
        """`after` puts the nodes behind the anchor instead."""
        assert anchor.graph is not None
        self.anchor = anchor
        self.graph: ir.Graph = anchor.graph
        self._after: ir.Node | None = anchor if after else None
        self.made: list[ir.Node] = []
        #: Brings nodes of the model's own opsets to the newest form, and infers them; where nodes are rewritten.
        self.settle: Callable[[list[ir.Node]], Any] | None = None
        self.origin = tuple(origin) if origin is not None else origins(anchor)

    def op(
        self,
        op_type: str,
        *inputs: ir.Value | np.ndarray | Sequence[int] | None,
        domain: str = "",
        outputs: int = 1,
        **attributes: Any,
    ) -> Any:
        """Add a node; arrays and lists of integers among the inputs become constants.

        Returns:
            Its output, or a tuple of them when `outputs` is not 1.
        """
        values = [
            item if item is None or isinstance(item, ir.Value) else self.constant(_as_array(item)) for item in inputs
        ]
        while values and values[-1] is None:
            values.pop()
        attrs = [make_attribute(name, value) for name, value in attributes.items() if value is not None]
        node = ir.Node(
            domain, op_type, values, attrs, num_outputs=outputs, name=self.origin[-1] if self.origin else None
        )
        set_origins(node, self.origin)
        self.made.append(node)
        if self._after is not None:
            self.graph.insert_after(self._after, node)
            self._after = node
        else:
            self.graph.insert_before(self.anchor, node)
        infer_node(node)
        return node.outputs[0] if outputs == 1 else tuple(node.outputs)

    def constant(self, contents: np.ndarray | ir.TensorProtocol, name: str | None = None) -> ir.Value:
        """Add a constant. Integers of Python's kind become int64."""
        if isinstance(contents, np.ndarray) and not contents.dtype.isnative:
            contents = contents.astype(contents.dtype.newbyteorder("="))
        tensor = tensor_of(contents) if isinstance(contents, np.ndarray) else contents
        return add_constant(
            self.graph, tensor, name or (self.anchor.outputs[0].name if self.anchor.outputs else "constant")
        )

    def finish(self, *values: ir.Value | None) -> None:
        """Replace the anchor's outputs by `values` and remove the anchor."""
        for old, new in zip(self.anchor.outputs, values, strict=False):
            if new is not None:
                replace_value(old, new)
        remove(self.anchor)


def _as_array(item: np.ndarray | Sequence[int]) -> np.ndarray:
    """A list of integers is one of int64, even if it is empty."""
    contents = np.asarray(item)
    return contents if contents.size or isinstance(item, np.ndarray) else contents.astype(np.int64)
