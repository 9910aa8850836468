"""Inputs and outputs as onnxruntime describes them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnx_ir as ir


@dataclass(frozen=True)
class NodeArg:
    """A model's input or output.

    Attributes:
        name: Its name.
        type: In ONNX's words: "tensor(float)", "seq(tensor(int64))", …
        dims: A number, a name or None for each dimension (of an optional tensor, too); None when the rank is not known,
            [] for what is not a tensor.
        keys: For maps, which are tensors in the page: the key of each column; see `load.maps.MapForm`.
        index_limit: For indices on a device, the size of the axis that they index; None: runs do not check them.
    """

    name: str
    type: str
    dims: list[int | str | None] | None
    keys: Sequence[int | str | None] | None = None
    index_limit: int | None = None

    @property
    def shape(self) -> list[int | str | None]:
        """Its dimensions as onnxruntime has them: [] also when the rank is not known."""
        return list(self.dims or [])

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    def settled(self, value: ir.Value, names: Collection[str] = ()) -> NodeArg:
        """Return a copy with the sizes and names of dimensions that are now known of the value."""
        import onnx_ir as ir

        if value.shape is None or not isinstance(value.type, ir.TensorType):
            return self
        found = [d if isinstance(d, int) else str(d) if str(d) in names else None for d in value.shape]
        if self.dims is None:
            return replace(self, dims=found)
        if len(found) != len(self.dims):
            return self
        pairs = zip(self.dims, found, strict=True)
        dims = [new if isinstance(new, int) and not isinstance(old, int) else old for old, new in pairs]
        return replace(self, dims=dims)

    @classmethod
    def of(cls, value: ir.Value) -> NodeArg:
        """Describe a value of the graph."""
        import onnx_ir as ir

        from py_ort.ir.type_names import type_name

        shape: list[int | str | None] | None = None
        kind = value.type.elem_type if isinstance(value.type, ir.OptionalType) else value.type
        if kind is not None and not isinstance(kind, (ir.TensorType, ir.SparseTensorType)):
            shape = []
        elif value.shape is not None:
            shape = [d if isinstance(d, int) else (d.value or None) for d in value.shape]
        return cls(value.name or "", type_name(value.type), shape)
