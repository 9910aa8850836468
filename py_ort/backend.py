"""ONNX's backend interface (`onnx.backend.base.Backend`), for ONNX's own test runner.

import onnx.backend.test, py_ort.backend
tests = onnx.backend.test.BackendTest(py_ort.backend, __name__)
"""

from __future__ import annotations

import contextlib
import functools
import logging
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from py_ort.browser.browser_options import BrowserOptions
from py_ort.exceptions import InvalidArgument, PyOrtError
from py_ort.ir.onnx_calls import infer_model
from py_ort.ir.onnx_process import Died, Refused
from py_ort.providers import CPU, DEFAULT
from py_ort.runtime.inference_session import InferenceSession
from py_ort.runtime.probe import probe

#: ONNX's device names, with the provider of each. Nodes without a kernel there run on the CPU.
_PROVIDERS = {"CPU": CPU, "CUDA": DEFAULT[0]}
_log = logging.getLogger("py_ort")


class PyOrtRep(BackendRep):
    """A prepared model."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model.

        Args:
            inputs: Arrays in the order of the model's inputs, or by their names, or one array.
            kwargs: Ignored.
        """
        if isinstance(inputs, dict):
            feeds = inputs
        else:
            values = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            feeds = {arg.name: value for arg, value in zip(self.session.get_inputs(), values, strict=False)}
        names = [arg.name for arg in self.session.get_outputs()]
        return namedtupledict("Outputs", names)(*self.session.run(names, feeds))


class PyOrtBackend(Backend):
    """Device "CPU" is the wasm provider, "CUDA" (ONNX has no better name for a GPU) webgpu, which must be available.

    Attributes:
        browser: For every session; a subclass may set another one.
    """

    browser: str | BrowserOptions | None = None

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PyOrtRep:
        """Compile a model and load it into a page.

        Args:
            model: The model.
            device: "CPU" for wasm, "CUDA" for webgpu.
            kwargs: As for `InferenceSession`.

        Raises:
            InvalidArgument: The device is neither "CPU" nor "CUDA".
            NoAdapter: It is "CUDA", and the browser has no WebGPU.
        """
        if _provider(device) is None:
            raise InvalidArgument(f"there is no device {device!r}: it is one of {', '.join(_PROVIDERS)}")
        settings = {"providers": [_provider(device)], "browser": cls.browser, **kwargs}
        return PyOrtRep(InferenceSession(model.SerializeToString(), **settings))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Prepare a model, run it once, release it.

        Args:
            model: The model.
            inputs: Arrays, in the order of its inputs, or by their names.
            device: As for `prepare`.
            kwargs: As for `prepare`.

        Raises:
            PyOrtError: As for `prepare` and `InferenceSession.run`.
        """
        with cls.prepare(model, device, **kwargs).session as session:
            return PyOrtRep(session).run(inputs)

    @classmethod
    def run_node(
        cls,
        node: onnx.NodeProto,
        inputs: Any,
        device: str = "CPU",
        outputs_info: Sequence[tuple[np.dtype, tuple[int, ...]]] | None = None,
        **kwargs: Any,
    ) -> tuple[Any, ...]:
        """Run a single node, with the newest opset.

        Args:
            node: The node.
            inputs: Arrays, in the order of its inputs that are not omitted.
            device: As for `prepare`.
            outputs_info: dtype and shape of each output; by default inferred by onnx.
            kwargs: As for `prepare`.
        """
        super().run_node(node, inputs, device, outputs_info, **kwargs)
        names = [name for name in dict.fromkeys(node.input) if name]
        arrays = dict(zip(names, [np.asarray(value) for value in inputs], strict=True))
        infos = [
            onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(a.dtype), a.shape)
            for name, a in arrays.items()
        ]
        outputs = [onnx.ValueInfoProto(name=name) for name in node.output if name]
        for value, info in zip(outputs, outputs_info or (), strict=False):
            dtype, shape = info
            element = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
            value.CopyFrom(onnx.helper.make_tensor_value_info(value.name, element, shape))
        model = onnx.helper.make_model(onnx.helper.make_graph([node], node.op_type, infos, outputs))
        if not outputs_info:
            with contextlib.suppress(Refused, Died):  # the session reports the error
                known = {value.name: value for value in infer_model(model).graph.output}
                for value in model.graph.output:
                    value.CopyFrom(known.get(value.name, value))
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Return True if a device of ONNX's naming ("CPU", "CUDA:0") is available; starts the browser once to see."""
        provider = _provider(device)
        return provider == CPU or (provider is not None and _has_webgpu(BrowserOptions.of(cls.browser)))


def _provider(device: str) -> str | None:
    return _PROVIDERS.get(device.split(":")[0])


@functools.cache
def _has_webgpu(browser: BrowserOptions) -> bool:
    try:
        found = probe(browser)
    except PyOrtError as e:
        _log.warning("no device CUDA: %s", e)
        return False
    return found["adapter"] is not None


prepare = PyOrtBackend.prepare
run_model = PyOrtBackend.run_model
run_node = PyOrtBackend.run_node
supports_device = PyOrtBackend.supports_device
