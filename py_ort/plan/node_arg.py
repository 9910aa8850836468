"""Inputs and outputs as onnxruntime describes them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass(frozen=True)
class NodeArg:
    """A model's input or output.

    Attributes:
        name: Its name.
        type: In ONNX's words: "tensor(float)", "seq(tensor(int64))", …
        shape: A number, a name or None for each dimension; None when the rank is not known, [] for what is no tensor.
    """

    name: str
    type: str
    shape: list[int | str | None] | None

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape or []})"

    @classmethod
    def of(cls, value: ir.Value) -> NodeArg:
        """Describe a value of the graph."""
        import onnx_ir as ir

        from py_ort.ops.type_names import type_name

        shape: list[int | str | None] | None = None
        if value.type is not None and not isinstance(value.type, ir.TensorType):
            shape = []
        elif value.shape is not None:
            shape = [d if isinstance(d, int) else (str(d) if d.value is not None else None) for d in value.shape]
        return cls(value.name or "", type_name(value.type), shape)
