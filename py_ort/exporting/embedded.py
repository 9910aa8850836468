"""Small ONNX models that a script has in it, as arrays of bytes: those by which transformers.js sorts and resizes.

A page hands them to the runtime as they are; it finds what stands for them by their SHA-256 (`env.exports`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

from py_ort.boundary import public_function
from py_ort.exceptions import InvalidArgument

#: From the field ir_version on, which comes first.
_BYTES = re.compile(r"\[\s*8\s*,\s*\d{1,2}\s*(?:,\s*\d{1,3}\s*){8,},?\s*\]")


def models_in(script: str) -> list[bytes]:
    """Return the ONNX models among the arrays of bytes in a script's text."""
    import onnx
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    found = []
    for array in _BYTES.findall(script):
        numbers = [int(number) for number in re.findall(r"\d+", array)]
        if max(numbers) > 255:
            continue
        try:
            model = onnx.load_model_from_string(bytes(numbers))
        except DecodeError:
            continue
        if model.graph.node and model.opset_import:
            found.append(bytes(numbers))
    return found


@public_function
def export_embedded(
    script: str | os.PathLike[str],
    folder: str | os.PathLike[str],
    *,
    progress: Callable[[str, int, int], None] | None = None,
) -> list[Path]:
    """Export the ONNX models that a script hands to onnxruntime-web, for pages that set `env.exports` to the folder.

    Args:
        script: A JavaScript file, such as `transformers.web.js`.
        folder: Where to write them, each as SHA256.pyort; made if need be.
        progress: As of `export`.

    Returns:
        The files.

    Raises:
        InvalidArgument: There is none in it.
        NotImplemented: One has nodes without a kernel.
        OSError: A file cannot be read or written.
    """
    from py_ort.exporting.export import export

    models = models_in(Path(script).read_text(errors="replace"))
    if not models:
        raise InvalidArgument(f"{script} has no ONNX model in it, as an array of bytes")
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    files = {target / f"{hashlib.sha256(model).hexdigest()}.pyort": model for model in models}
    for file, model in files.items():
        export(model, file, progress=progress)
    return list(files)
