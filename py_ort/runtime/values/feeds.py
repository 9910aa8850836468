"""Feeds converted and checked against a model's inputs.

A plain tensor or sequence may be fed to an optional. An optional input without a feed is empty.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from py_ort.compiler.plan.node_arg import NodeArg
from py_ort.exceptions import InvalidArgument, RuntimeException, WrongType
from py_ort.runtime.values.sparse_tensor import SparseTensor
from py_ort.schema.gen.ValueKind import ValueKind
from py_ort.signal_handlers import from_handler
from py_ort.suggestion import did_you_mean
from py_ort.wire.tensors import NUMPY, TYPE_NAMES, TYPE_NUMBERS, dtype_of
from py_ort.wire.values import element_type

if TYPE_CHECKING:
    from py_ort.browser.page import Page
    from py_ort.runtime.values.device_tensor import DeviceTensor

__all__ = ["SPARSE", "TYPE_NAMES", "Feed", "as_feed", "check_feed", "check_mapping", "check_names", "tensor_of_sparse"]

#: Prefix of sparse types, which only the session knows: the page receives dense tensors.
SPARSE = "sparse_tensor("

_TENSOR_TYPES = {number: f"tensor({name})" for number, name in TYPE_NAMES.items()}

#: A converted feed: an array, a tensor on a device, a list of feeds for a sequence, None for an empty optional.
Feed: TypeAlias = "np.ndarray | DeviceTensor | list[Feed] | None"


def as_feed(name: str, value: Any, type_text: str, page: Page) -> Feed:
    """Return the feed for a caller's value and an input of this type.

    Raises:
        InvalidArgument: A sequence was expected, or no array can be made of the value.
    """
    kind, inner = element_type(type_text)
    if kind == ValueKind.optional:
        empty = value is None or getattr(value, "value", value) is None
        return None if empty else as_feed(name, value, inner, page)
    if kind == ValueKind.sequence:
        value = getattr(value, "value", value)  # an OrtValue's
        if not isinstance(value, (list, tuple)):
            got = "None" if value is None else type(value).__name__
            raise InvalidArgument(f"input {name!r} takes {type_text}: give a list of arrays, not {got}")
        feeds = (as_feed(f"{name}[{i}]", item, inner, page) for i, item in enumerate(value))
        # No GPU kernel reads a sequence: its tensors go through the CPU.
        return [feed if feed is None or isinstance(feed, (np.ndarray, list)) else feed.numpy() for feed in feeds]
    on_device = getattr(value, "on_device", None)
    if on_device is not None:
        # A tensor of this page is fed as it is, one of another page through the CPU.
        on_device.live(f"the value for input {name!r}")
        return on_device if on_device.page is page else value.numpy()
    if hasattr(value, "on_device"):
        return value.numpy()
    if value is None:
        raise InvalidArgument(f"input {name!r} takes {type_text}, not None")
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    try:
        return np.asarray(value) if hasattr(value, "__array__") else _from_python(value, type_text)
    except Exception as e:  # an object's own `__array__` may raise anything
        if from_handler(e):
            raise
        raise InvalidArgument(f"input {name!r} takes {type_text}: no array can be made of what was given: {e}") from e


def tensor_of_sparse(arg: NodeArg, value: Any) -> tuple[NodeArg, Any]:
    """Return the description of a sparse input's dense form, and the dense feed."""
    held = getattr(value, "value", value)  # an OrtValue's
    dense = held.dense() if isinstance(held, SparseTensor) else value
    return replace(arg, type=arg.type.removeprefix("sparse_")), dense


def _from_python(value: Any, type_text: str) -> np.ndarray:
    """Return an array of Python's numbers, texts and lists of them; in the input's type if they can be cast safely."""
    wanted = NUMPY.get(TYPE_NUMBERS.get(type_text.removeprefix("tensor(").removesuffix(")"), 0))
    found = np.asarray(value)
    if wanted is None or wanted.kind == "O" or not np.can_cast(found.dtype, wanted, "same_kind"):
        return found
    return np.asarray(value, wanted)


def check_mapping(feeds: object) -> None:
    """Check that feeds are given by name.

    Raises:
        InvalidArgument: The feeds are not a mapping.
    """
    if not isinstance(feeds, Mapping):
        raise WrongType(f"feeds are a dict of values by input name, not {type(feeds).__name__}")


def is_fit(arg: NodeArg, value: Any, page: Page) -> bool:
    """Return True if a value is known to be a tensor on a device of this page that fits the input.

    This is the fast path for a decoder, which feeds the same tensors of its caches in all steps.
    """
    tensor: DeviceTensor | None = getattr(value, "on_device", None)
    if tensor is None or tensor.page is not page or tensor.id == 0 or element_type(arg.type)[0] != ValueKind.tensor:
        return False
    if tensor.fits is not arg and _misfit(arg, tensor) is None:
        tensor.fits = arg
    return tensor.fits is arg


def check_names(args: Sequence[NodeArg], names: Mapping[str, Any]) -> None:
    """Check that there is a feed for every input that is not optional, and no other feed.

    Args:
        args: The model's inputs.
        names: The feeds by their names.

    Raises:
        InvalidArgument: A feed is missing or unknown; the message names it and the model's inputs.
    """
    known = {arg.name: arg for arg in args}
    if extra := [name for name in names if name not in known]:
        raise InvalidArgument(
            f"the model has no input {extra[0]!r}{did_you_mean(extra[0], known)}: it has {_signature(args)}"
        )
    needed = [arg.name for arg in args if element_type(arg.type)[0] != ValueKind.optional]
    if missing := [name for name in needed if name not in names]:
        raise InvalidArgument(
            f"Required inputs ({missing}) are missing from input feed ({list(names)}): "
            f"the model needs {_signature(args)}"
        )


def check_feed(arg: NodeArg, feed: Feed) -> None:
    """Check that a feed fits its input.

    Raises:
        InvalidArgument: It does not; the message names the input, the expected type and shape, and the feed's.
        RuntimeException: An index is out of range, for a node on a device.
    """
    kind, inner = element_type(arg.type)
    if kind != ValueKind.tensor:
        is_sequence = kind == ValueKind.sequence
        for i, item in enumerate(feed if isinstance(feed, list) else [] if feed is None else [feed]):
            name, dims = (f"{arg.name}[{i}]", None) if is_sequence else (arg.name, arg.dims)
            check_feed(NodeArg(name, inner, dims), item)
        return
    array = feed
    assert array is not None and not isinstance(array, list)
    if (misfit := _misfit(arg, array)) is not None:
        expected = f"input {arg.name!r} is {arg.type} of shape {_shape_text(arg)}"
        raise InvalidArgument(f"{expected}; got {misfit}", shapes={arg.name: array.shape})
    if arg.index_limit is not None and isinstance(array, np.ndarray) and array.size:
        _check_indices(arg.name, array, arg.index_limit)


def _check_indices(name: str, array: np.ndarray, size: int) -> None:
    """Check indices that a device does not check, as the CPU's kernels do."""
    for place in (array.argmax(), array.argmin()):
        if not -size <= (index := array.flat[place]) < size:
            raise RuntimeException(
                f"index {index} (element {place} of input {name!r}) is out of range for an axis of {size}"
            )


def _misfit(arg: NodeArg, array: np.ndarray | DeviceTensor) -> str | None:
    """Return the reason why a tensor does not fit an input, in words; None if it fits."""
    try:
        elem_type = dtype_of(array) if isinstance(array, np.ndarray) else array.dtype
    except TypeError as e:
        return f"{array.dtype}: {e}"
    if (got := _TENSOR_TYPES[elem_type]) != arg.type:
        return f"{got}: convert it, e.g. with .astype()"
    if not arg.dims:
        return None  # the page knows which feeds may stand for a scalar, see `compiler.plan.scalar_feeds`
    if len(array.shape) != len(arg.dims):
        return f"rank {len(array.shape)}, shape {list(array.shape)}"
    wrong = [i for i, (d, n) in enumerate(zip(arg.dims, array.shape, strict=True)) if isinstance(d, int) and d != n]
    if not wrong:
        return None
    at = f"dimension{'s' if len(wrong) > 1 else ''} {', '.join(map(str, wrong))}"
    return f"shape {list(array.shape)}, wrong in {at}"


def _shape_text(arg: NodeArg) -> str:
    return "any" if arg.dims is None else "[" + ", ".join("?" if d is None else str(d) for d in arg.shape) + "]"


def _signature(args: Sequence[NodeArg]) -> str:
    return ", ".join(f"{arg.name!r}: {arg.type} {_shape_text(arg)}" for arg in args) or "none"
