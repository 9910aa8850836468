"""Exports models in a page, on Pyodide: a model's bytes become the bytes of a `.pyort` file.

web/src/api/page_compiler.ts calls it in a worker. It needs no processes, threads, sockets or mapped files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from py_ort.exporting.export import export


def export_bytes(
    model: bytes | memoryview, providers: Sequence[str], progress: Callable[[str, int, int], None]
) -> bytes:
    """Return the `.pyort` file of a model.

    Args:
        model: An ONNX file.
        providers: Providers to compile for.
        progress: As of `py_ort.export`.

    Raises:
        PyOrtError: The model cannot be compiled.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.pyort"
        export(bytes(model), file, providers=list(providers), progress=progress)
        return file.read_bytes()
