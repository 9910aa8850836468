"""A process that may crash: runs ONNX's C++ on the requests of `py_ort.ir.onnx_calls`. Runs as a script, by its path.

It reads pickled requests (function, arguments) from its input, and writes pickled answers (succeeded, result). The
functions take and return bytes only.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import pickle
import sys
from collections.abc import Mapping, Sequence
from typing import Any, BinaryIO

_MEMORY = 8 << 30


def infer_node(
    name: tuple[str, int, str], node: bytes, types: Mapping[str, bytes], data: Mapping[str, bytes], opset: int
) -> dict[str, bytes]:
    """Infer the types of a node's outputs."""
    from onnx import NodeProto, TensorProto, TypeProto, defs, helper, shape_inference

    found = shape_inference.infer_node_outputs(
        defs.get_schema(*name),
        NodeProto.FromString(node),
        {key: TypeProto.FromString(item) for key, item in types.items()},
        {key: TensorProto.FromString(item) for key, item in data.items()},
        opset_imports=[helper.make_opsetid(name[2], opset)],
    )
    return {key: item.SerializeToString() for key, item in found.items()}


def function_body(name: tuple[str, int, str], version: int, node: bytes, types: Sequence[bytes]) -> bytes:
    """Return the function body of an operator for these types of inputs."""
    from onnx import defs

    schema: Any = defs.get_schema(*name)
    body: bytes = schema.get_context_dependent_function_with_opset_version(version, node, list(types))
    return body


def infer_model(model: bytes) -> bytes:
    """Infer the types of all values of a model."""
    from onnx import shape_inference

    inferred: bytes = shape_inference.infer_shapes(model).SerializeToString()
    return inferred


def inline(model: bytes, functions: Sequence[tuple[str, str]]) -> bytes:
    """Put the bodies of functions where they are called."""
    from onnx import ModelProto, inliner

    inlined = inliner.inline_selected_functions(ModelProto.FromString(model), list(functions))
    found: bytes = inlined.SerializeToString()
    return found


def convert(model: bytes, opset: int) -> bytes:
    """Bring a model to another opset."""
    from onnx import ModelProto, version_converter

    converted: bytes = version_converter.convert_version(ModelProto.FromString(model), opset).SerializeToString()
    return converted


_FUNCTIONS = {each.__name__: each for each in (infer_node, function_body, infer_model, inline, convert)}


def _limit() -> None:
    """Bound the memory, and leave no file where the process dies."""
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _write(answers: BinaryIO, message: Any) -> None:
    pickle.dump(message, answers)
    answers.flush()


def answer(function: str, arguments: Sequence[Any]) -> tuple[bool, Any]:
    """Call a function by its name; return whether it succeeded, and its result, or the name and text of its error."""
    try:
        return True, _FUNCTIONS[function](*arguments)
    except Exception as e:  # the C++ side raises several types
        return False, (type(e).__name__, str(e))


def main() -> None:
    """Answer requests until the input ends."""
    requests, answers = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # whatever prints must not come among the answers
    sys.path[:] = pickle.load(requests)
    _limit()
    importlib.import_module("onnx")
    _write(answers, "ready")
    while True:
        try:
            function, arguments = pickle.load(requests)
        except EOFError:
            return
        _write(answers, answer(function, arguments))


if __name__ == "__main__":
    main()
