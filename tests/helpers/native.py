"""Native onnxruntime, which models are held against."""

from __future__ import annotations

from pathlib import Path

import onnx
import onnxruntime


def native_session(
    model: onnx.ModelProto | bytes | str | Path, options: onnxruntime.SessionOptions | None = None
) -> onnxruntime.InferenceSession:
    """Return a session on the CPU, on one thread: to start others takes five times as long as a small model does.

    Args:
        model: It, serialized or not, or its file.
        options: Others than the usual ones.
    """
    options = options or onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    source = model.SerializeToString() if isinstance(model, onnx.ModelProto) else model
    return onnxruntime.InferenceSession(source, options, providers=["CPUExecutionProvider"])
