"""What a model says of its inputs and outputs, and whether feeds fit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.exceptions import InvalidArgument

if TYPE_CHECKING:
    import onnx_ir as ir

#: ONNX's elem_type number -> onnxruntime's name in "tensor(NAME)".
TYPE_NAMES: dict[int, str] = {
    1: "float",
    2: "uint8",
    3: "int8",
    4: "uint16",
    5: "int16",
    6: "int32",
    7: "int64",
    8: "string",
    9: "bool",
    10: "float16",
    11: "double",
    12: "uint32",
    13: "uint64",
    14: "complex64",
    15: "complex128",
    16: "bfloat16",
    17: "float8e4m3fn",
    18: "float8e4m3fnuz",
    19: "float8e5m2",
    20: "float8e5m2fnuz",
    21: "uint4",
    22: "int4",
    23: "float4e2m1",
    24: "float8e8m0",
    25: "uint2",
    26: "int2",
}


@dataclass(frozen=True)
class NodeArg:
    """An input or an output of a model.

    Attributes:
        name: Its name.
        type: As onnxruntime writes it: "tensor(float)", "seq(tensor(int64))", "optional(tensor(float))".
        shape: A list with an int for a fixed dimension, a str for a symbolic one, None for one without a name;
            empty for a scalar and also for an unknown rank (see `rank_known`), as in onnxruntime.
        rank_known: Whether the model gives a shape at all.
        elem_type: The element's `DType`.
    """

    name: str
    type: str
    shape: list[int | str | None]
    rank_known: bool = True
    elem_type: int = 0

    def __str__(self) -> str:
        return f"NodeArg(name='{self.name}', type='{self.type}', shape={self.shape})"

    @classmethod
    def of(cls, value: ir.Value) -> NodeArg:
        """Take it from a value of the IR."""
        elem_type = int(value.type.dtype) if value.type is not None else 0
        shape: list[int | str | None] = []
        if value.shape is not None:
            shape = [d if isinstance(d, int) else (d.value or None) for d in value.shape]
        return cls(value.name or "", _type_text(value.type), shape, value.shape is not None, elem_type)


def _type_text(kind: Any) -> str:
    if kind is None:
        return ""
    inner = getattr(kind, "elem_type", None)
    if inner is None or isinstance(inner, int):
        return f"tensor({TYPE_NAMES.get(int(kind.dtype), 'undefined')})"
    return f"{'seq' if type(kind).__name__ == 'SequenceType' else 'optional'}({_type_text(inner)})"


def check_feeds(args: Sequence[NodeArg], optional: frozenset[str], feeds: Mapping[str, np.ndarray]) -> None:
    """See that feeds fit the inputs they are for.

    Args:
        args: The model's inputs.
        optional: Names of those that have a default (an initializer), which need no feed.
        feeds: Arrays by name.

    Raises:
        InvalidArgument: Names the input, and says what was expected and what came.
    """
    known = {arg.name: arg for arg in args}
    if missing := [name for name in known if name not in feeds and name not in optional]:
        raise InvalidArgument(
            f"no feed for input{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}: "
            f"the model needs {_signature(args)}"
        )
    if extra := [name for name in feeds if name not in known and name not in optional]:
        raise InvalidArgument(f"the model has no input {extra[0]!r}: it has {_signature(args)}")
    for name, array in feeds.items():
        if name in known:
            _check_feed(known[name], array)


def _check_feed(arg: NodeArg, array: np.ndarray) -> None:
    from py_ort.wire.tensors import dtype_of

    expected = f"input {arg.name!r} is {arg.type} of shape {_shape_text(arg)}"
    try:
        elem_type = dtype_of(array)
    except TypeError as e:
        raise InvalidArgument(f"{expected}; got {array.dtype}: {e}") from None
    if elem_type != arg.elem_type:
        got = f"tensor({TYPE_NAMES[elem_type]})"
        raise InvalidArgument(f"{expected}; got {got}: convert it, e.g. with .astype()", shapes={arg.name: array.shape})
    if not arg.rank_known:
        return
    if array.ndim != len(arg.shape):
        raise InvalidArgument(
            f"{expected}; got rank {array.ndim}, shape {list(array.shape)}", shapes={arg.name: array.shape}
        )
    wrong = [i for i, (d, n) in enumerate(zip(arg.shape, array.shape, strict=True)) if isinstance(d, int) and d != n]
    if wrong:
        at = f"dimension{'s' if len(wrong) > 1 else ''} {', '.join(map(str, wrong))}"
        raise InvalidArgument(
            f"{expected}; got shape {list(array.shape)}, wrong in {at}", shapes={arg.name: array.shape}
        )


def _shape_text(arg: NodeArg) -> str:
    return "[" + ", ".join("?" if d is None else str(d) for d in arg.shape) + "]" if arg.rank_known else "any"


def _signature(args: Sequence[NodeArg]) -> str:
    return ", ".join(f"{arg.name!r}: {arg.type} {_shape_text(arg)}" for arg in args) or "none"
