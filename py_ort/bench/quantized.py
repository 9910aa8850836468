"""Models quantized by the tools of native onnxruntime."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from py_ort.exceptions import Fail, NotFound
from py_ort.ir.onnx_calls import convert_version

#: The ways: weights beforehand and activations in each run, or both beforehand.
METHODS = ("dynamic", "qdq")
#: The IR version, and the opset.
_WEIGHTS_APART, _SCALES_OF_CHANNELS = 4, 13


def quantize(model: bytes, method: str, calibration: Iterable[Mapping[str, np.ndarray]]) -> bytes:
    """Quantize a float model to 8 bits, with onnxruntime's default options.

    Args:
        model: An ONNX file's contents, its weights included.
        method: "dynamic": `quantize_dynamic`; "qdq": `quantize_static`, nodes that quantize around each operator, a
            scale for each channel of weights.
        calibration: Feeds by name, by which "qdq" finds the scales of activations.

    Raises:
        NotFound: Native onnxruntime, or a package that its tools need, is not installed.
        Fail: The tools refuse this model.
    """
    try:
        from onnxruntime import quantization
        from onnxruntime.quantization.shape_inference import quant_pre_process
    except ImportError as e:
        raise NotFound(f"quantizing models takes native onnxruntime (pip install onnxruntime): {e}") from e

    class Reader(quantization.CalibrationDataReader):
        def __init__(self) -> None:
            self._left = iter(calibration)

        def get_next(self) -> dict[str, Any] | None:
            return next((dict(feeds) for feeds in self._left), None)

    root, level = logging.getLogger(), logging.getLogger().level
    root.setLevel(logging.CRITICAL)  # advice on how to call it
    try:
        with tempfile.TemporaryDirectory() as folder:
            # Files, as the tools change models that they are given.
            source, plain, result = (str(Path(folder) / f"{name}.onnx") for name in ("given", "plain", "quantized"))
            Path(source).write_bytes(_of_today(model))
            if method == "dynamic":
                quantization.quantize_dynamic(source, result)
            else:
                # It folds batch normalizations. Where it cannot take a model, the other may still.
                with suppress(Exception):
                    quant_pre_process(source, plain, skip_symbolic_shape=True)
                    source = plain
                quantization.quantize_static(source, result, Reader(), per_channel=True)
            return Path(result).read_bytes()
    except Exception as e:  # its tools raise anything
        raise Fail(f"onnxruntime's quantization ({method}) does not take the model: {type(e).__name__}: {e}") from e
    finally:
        root.setLevel(level)


def _of_today(model: bytes) -> bytes:
    """Convert an old model to a form that the tools and native onnxruntime accept.

    In files of the first IR versions weights are inputs, too; scales of channels came with opset 13.
    """
    proto = onnx.load_from_string(model)
    if proto.ir_version < _WEIGHTS_APART:
        weights = {each.name for each in proto.graph.initializer}
        inputs = [each for each in proto.graph.input if each.name not in weights]
        del proto.graph.input[:]
        proto.graph.input.extend(inputs)
        proto.ir_version = _WEIGHTS_APART
    if any(each.domain == "" and each.version < _SCALES_OF_CHANNELS for each in proto.opset_import):
        with suppress(Exception):  # of what ONNX's converter does not know, a scale for each tensor may be taken
            proto = convert_version(proto, _SCALES_OF_CHANNELS)
    return proto.SerializeToString()
