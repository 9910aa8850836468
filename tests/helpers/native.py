"""Native onnxruntime, the reference for models."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime


def native_session(
    model: onnx.ModelProto | bytes | str | Path, options: onnxruntime.SessionOptions | None = None
) -> onnxruntime.InferenceSession:
    """Return a session on the CPU, on one thread: starting others takes five times as long as a small model.

    Args:
        model: The model, serialized or not, or its file.
        options: Other options than the usual ones.
    """
    options = options or onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
