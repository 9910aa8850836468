"""Models from ONNX's text form; separate from native onnxruntime, which writes into the temporary folder."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx


def parse(text: str, constants: Mapping[str, np.ndarray] | None = None, opset: int = 21) -> onnx.ModelProto:
    """Make a model from a graph in ONNX's text form, and constants."""
    header = (
        "" if text.lstrip().startswith("<") else f'<ir_version: 8, opset_import: ["" : {opset}, "com.microsoft" : 1]>\n'
    )
    model = onnx.parser.parse_model(header + text)
    for name, contents in (constants or {}).items():
        model.graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(contents), name))
    return model
