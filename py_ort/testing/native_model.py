"""Native onnxruntime's outputs of a model, to compare with."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from py_ort.compiler.load.model_files import DATA_FOLDER_ENTRY
from py_ort.exceptions import PyOrtError
from py_ort.testing.split_model import split


class NativeModel:
    """A model in native onnxruntime, if onnxruntime is installed and accepts the model.

    User kernels run by their `reference`, a function of Python: see `py_ort.testing.split_model`.

    Args:
        model: A file, or its bytes; None: there is no model.
        folder: Folder of external data, if the model is bytes.

    Attributes:
        name: Name and version of the reference.
        trouble: The reason for no session, or the last error of a run; "".
        fault: The error of a user kernel's reference in the last run, which is not onnxruntime's; None.
    """

    def __init__(
        self, model: str | os.PathLike[str] | bytes | None, folder: str | os.PathLike[str] | None = None
    ) -> None:
        self.name, self.trouble = "", ""
        self.fault: PyOrtError | None = None
        self._outputs: list[str] = []
        self._run: Callable[[Mapping[str, Any]], Sequence[Any]] | None = None
        if model is None:
            self.trouble = "no ONNX model was given"
            return
        try:
            import onnxruntime
        except ImportError:
            self.trouble = "native onnxruntime is not installed (pip install onnxruntime)"
            return
        self.name = f"onnxruntime {onnxruntime.__version__}"
        if folder is None and not isinstance(model, bytes):
            folder = Path(os.fsdecode(model)).resolve().parent
        try:
            if found := split(model, folder, lambda part: _session(part, folder)):
                self._outputs, self._run = found.outputs, found.run
                return
            session = _session(model, folder)
        except PyOrtError as e:
            self.trouble = str(e)
        except Exception as e:  # native onnxruntime's errors have no common class
            self._refuses(e)
        else:
            self._outputs = [output.name for output in session.get_outputs()]
            self._run = lambda feeds: session.run(None, dict(feeds))

    def run(self, feeds: Mapping[str, Any]) -> Sequence[Any] | None:
        """Return its outputs, in the model's order; None if there are none."""
        if self._run is None:
            return None
        self.fault = None
        try:
            outputs = self._run(feeds)
        except PyOrtError as e:
            self.fault, self.trouble = e, str(e)
            return None
        except Exception as e:
            self._refuses(e)
            return None
        self.trouble = ""
        return outputs

    def first_taken(self, tried: Iterable[dict[str, Any]]) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Return the first feeds that it takes, and its outputs by name, in the model's order; None: it takes none."""
        if self._run is None:
            return None
        for feeds in tried:
            if (outputs := self.run(feeds)) is not None:
                return feeds, dict(zip(self._outputs, outputs, strict=True))
        return None

    def _refuses(self, error: Exception) -> None:
        self.trouble = f"{self.name} refuses the model or its inputs: {str(error).splitlines()[0]}"


def _session(model: str | os.PathLike[str] | bytes, folder: str | os.PathLike[str] | None) -> Any:
    """Return a session of native onnxruntime."""
    import onnxruntime

    source = model if isinstance(model, bytes) else os.fsdecode(model)

    def make(entries: Mapping[str, str]) -> Any:
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4
        for name, entry in entries.items():
            options.add_session_config_entry(name, entry)
        return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])

    data = {DATA_FOLDER_ENTRY: os.fsdecode(folder)} if folder is not None and source is model else {}
    # On x86 without VNNI sums of uint8 by int8 saturate otherwise; but with it QGemm of columns has no kernel.
    try:
        return make({**data, "session.x64quantprecision": "1"})
    except Exception:  # native onnxruntime's errors have no common class
        return make(data)
