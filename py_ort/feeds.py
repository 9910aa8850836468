"""Whether feeds fit a model's inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from py_ort.exceptions import InvalidArgument

if TYPE_CHECKING:
    from py_ort.device_tensor import DeviceTensor
    from py_ort.plan.node_arg import NodeArg

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


def check_feeds(args: Sequence[NodeArg], feeds: Mapping[str, np.ndarray | DeviceTensor]) -> None:
    """See that feeds fit the inputs they are for.

    Args:
        args: The model's inputs.
        feeds: Arrays, or tensors on the GPU, by name.

    Raises:
        InvalidArgument: Names the input, and says what was expected and what came.
    """
    known = {arg.name: arg for arg in args}
    if missing := [name for name in known if name not in feeds]:
        raise InvalidArgument(
            f"no feed for input{'s' if len(missing) > 1 else ''} {', '.join(map(repr, missing))}: "
            f"the model needs {_signature(args)}"
        )
    if extra := [name for name in feeds if name not in known]:
        raise InvalidArgument(f"the model has no input {extra[0]!r}: it has {_signature(args)}")
    for name, array in feeds.items():
        _check_feed(known[name], array)


def _check_feed(arg: NodeArg, array: np.ndarray | DeviceTensor) -> None:
    from py_ort.wire.tensors import dtype_of

    expected = f"input {arg.name!r} is {arg.type} of shape {_shape_text(arg)}"
    try:
        elem_type = dtype_of(array) if isinstance(array, np.ndarray) else array.dtype
    except TypeError as e:
        raise InvalidArgument(f"{expected}; got {array.dtype}: {e}") from None
    if (got := f"tensor({TYPE_NAMES[elem_type]})") != arg.type:
        raise InvalidArgument(f"{expected}; got {got}: convert it, e.g. with .astype()", shapes={arg.name: array.shape})
    if arg.shape is None:
        return
    if len(array.shape) != len(arg.shape):
        raise InvalidArgument(
            f"{expected}; got rank {len(array.shape)}, shape {list(array.shape)}", shapes={arg.name: array.shape}
        )
    wrong = [i for i, (d, n) in enumerate(zip(arg.shape, array.shape, strict=True)) if isinstance(d, int) and d != n]
    if wrong:
        at = f"dimension{'s' if len(wrong) > 1 else ''} {', '.join(map(str, wrong))}"
        raise InvalidArgument(
            f"{expected}; got shape {list(array.shape)}, wrong in {at}", shapes={arg.name: array.shape}
        )


def _shape_text(arg: NodeArg) -> str:
    return "any" if arg.shape is None else "[" + ", ".join("?" if d is None else str(d) for d in arg.shape) + "]"


def _signature(args: Sequence[NodeArg]) -> str:
    return ", ".join(f"{arg.name!r}: {arg.type} {_shape_text(arg)}" for arg in args) or "none"
