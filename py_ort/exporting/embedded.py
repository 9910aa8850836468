"""Small ONNX models inside a script, as arrays of bytes; transformers.js sorts and resizes with such models.

A page passes them to the runtime unchanged; the runtime finds their exports by their SHA-256 (`env.exports`).
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable
from pathlib import Path

from py_ort.boundary import public_function
from py_ort.exceptions import InvalidArgument

#: From the field ir_version on, which is first.
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
    """Export the ONNX models that a script passes to onnxruntime-web, for pages that set `env.exports` to the folder.

    Args:
        script: A JavaScript file, such as `transformers.web.js`.
        folder: Folder to write them to, each as SHA256.pyort; made if necessary.
        progress: As for `export`.

    Returns:
        The files.

    Raises:
        InvalidArgument: The script contains no model.
        NotImplemented: A model has nodes without a kernel.
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
