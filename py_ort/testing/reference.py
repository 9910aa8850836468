"""A session's outputs against native onnxruntime's."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from py_ort.compiler.package.format import is_package
from py_ort.exceptions import NotImplemented, PyOrtError
from py_ort.runtime.inference_session import InferenceSession
from py_ort.runtime.values.feeds import check_feed, check_names
from py_ort.testing.closeness import closeness
from py_ort.testing.model_inputs import ModelInputs
from py_ort.testing.native_model import NativeModel
from py_ort.testing.random_feeds import candidates

if TYPE_CHECKING:
    from py_ort.compiler import NodeArg
    from py_ort.testing.compare import InBrowser


def reference(
    model: str | os.PathLike[str] | bytes, feeds: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Run a model in native onnxruntime.

    Args:
        model: An ONNX file, or its bytes.
        feeds: Arrays by input name. Inputs without one get random numbers in the first shapes that onnxruntime takes.

    Returns:
        The feeds of all inputs, and the outputs by name.

    Raises:
        NotImplemented: onnxruntime is not installed, or refuses the model or its inputs; the message has its own.
        PyOrtError: The model cannot be read.
        InvalidArgument: A feed fits no input; or an input without a feed has no known shape, or is no tensor; or the
            `reference` of a user kernel raises an exception, or returns other shapes.
    """
    native = NativeModel(model)
    needed = ModelInputs.of(model)
    given = feeds or {}
    _check(given, {arg.name: arg for arg in (*needed.args, *needed.overridable)})
    tried = candidates(needed.args, given=given, values=needed.accepted)
    if found := native.first_taken({**given, **fed} for fed in tried):
        return found
    raise native.fault or NotImplemented(f"there is no reference to compare with: {native.trouble}")


def _check(given: Mapping[str, Any], args: Mapping[str, NodeArg]) -> None:
    check_names(list(args.values()), {**args, **given})
    for name, value in given.items():
        if isinstance(value, np.ndarray) and args[name].type.startswith("tensor("):
            check_feed(args[name], value)


def differences(
    session: InferenceSession,
    feeds: Mapping[str, Any],
    wanted: Mapping[str, Any],
    tolerance: float | None = None,
    steps: int = 0,
) -> list[str]:
    """Run a session, and return a line for each output that differs from the expected one.

    Args:
        session: Any session of py_ort.
        feeds: Arrays by input name.
        wanted: Outputs by name.
        tolerance: See `closeness`.
        steps: See `closeness`.
    """
    found = zip(wanted, session.run(list(wanted), feeds), strict=True)
    told = {name: closeness(got, wanted[name], tolerance, steps) for name, got in found}
    return [
        f"output {name!r}: {text}" + (f" (worst: {part:.2g} of the largest)" if part else "")  # 0: NaN, or no numbers
        for name, (text, part) in told.items()
        if text
    ]


def first_difference(
    model: Any,
    feeds: Mapping[str, Any],
    side: InBrowser,
    tolerance: float | None = None,
    steps: int = 0,
) -> list[str]:
    """Return the first value of a model that differs, in a line; none where it cannot be looked for.

    Args:
        model: An ONNX file, or its bytes; a `.pyort` file has no values to look at.
        feeds: Arrays by input name.
        side: Where the model runs.
        tolerance: See `closeness`.
        steps: See `closeness`.
    """
    from py_ort.testing.compare import Native, compare

    if is_package(model):
        return []
    try:
        found = compare(model, feeds, side, Native(), tolerance=tolerance, steps=steps)
    except PyOrtError as e:
        return [f"which node is the first was not found: {e}"]
    return [f"the first value that differs is {found.first}"] if found.first else []
