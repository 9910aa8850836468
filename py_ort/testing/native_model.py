"""What native onnxruntime makes of a model, to compare with."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from py_ort.compiler.load.files import DATA_FOLDER_ENTRY


class NativeModel:
    """A model in native onnxruntime, where that is installed and takes it.

    Args:
        model: A file, or its bytes; None: there is none.
        folder: Of external data of bytes.

    Attributes:
        name: What it is called.
        trouble: Why it does not run, or what it said last; "".
    """

    def __init__(
        self, model: str | os.PathLike[str] | bytes | None, folder: str | os.PathLike[str] | None = None
    ) -> None:
        self.name, self.trouble, self._session = "", "", None
        if model is None:
            self.trouble = "no ONNX model was given"
            return
        try:
            import onnxruntime
        except ImportError:
            self.trouble = "native onnxruntime is not installed (pip install onnxruntime)"
            return
        self.name = f"onnxruntime {onnxruntime.__version__}"
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        if folder is not None:
            options.add_session_config_entry(DATA_FOLDER_ENTRY, os.fsdecode(folder))
        source = model if isinstance(model, bytes) else os.fsdecode(model)
        # On x86 without VNNI sums of uint8 by int8 saturate otherwise; but with it QGemm of columns has no kernel.
        for exact in ("1", "0"):
            options.add_session_config_entry("session.x64quantprecision", exact)
            try:
                self._session = onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
            except Exception as e:  # its own errors have no common class
                self._refuses(e)
            else:
                self.trouble = ""
                break

    def run(self, feeds: Mapping[str, Any]) -> Sequence[Any] | None:
        """Return its outputs, in the model's order; None if there are none."""
        if self._session is None:
            return None
        try:
            outputs: Sequence[Any] = self._session.run(None, dict(feeds))
        except Exception as e:
            self._refuses(e)
            return None
        self.trouble = ""
        return outputs

    def first_taken(self, tried: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the first feeds that it takes, and its outputs by name, in the model's order; None: it takes none."""
        if self._session is None:
            return None
        names = [output.name for output in self._session.get_outputs()]
        for feeds in tried:
            if (outputs := self.run(feeds)) is not None:
                return feeds, dict(zip(names, outputs, strict=True))
        return None

    def _refuses(self, error: Exception) -> None:
        self.trouble = f"{self.name} refuses the model or its inputs: {str(error).splitlines()[0]}"
