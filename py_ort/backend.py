"""ONNX's backend interface (`onnx.backend.base.Backend`), so that ONNX's own test runner works on us.

import onnx.backend.test, py_ort.backend
tests = onnx.backend.test.BackendTest(py_ort.backend, __name__)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx.backend.base import Backend, BackendRep, namedtupledict

from py_ort.available import get_available_providers
from py_ort.session import InferenceSession

#: ONNX's device names and the providers they mean here.
_PROVIDERS = {"CPU": ["wasm"], "CUDA": ["webgpu", "wasm"]}


class PyOrtRep(BackendRep):
    """A prepared model."""

    def __init__(self, session: InferenceSession) -> None:
        self.session = session

    def run(self, inputs: Any, **kwargs: Any) -> tuple[Any, ...]:
        """Run the model.

        Args:
            inputs: Arrays in the order of the model's inputs, or by their names, or one array.
            kwargs: None are used.
        """
        if isinstance(inputs, dict):
            feeds = inputs
        else:
            values = [inputs] if isinstance(inputs, np.ndarray) else list(inputs)
            feeds = {arg.name: value for arg, value in zip(self.session.get_inputs(), values, strict=False)}
        names = [arg.name for arg in self.session.get_outputs()]
        return namedtupledict("Outputs", names)(*self.session.run(names, feeds))


class PyOrtBackend(Backend):
    """Device "CPU" is the wasm provider, "CUDA" (ONNX has no better name for a GPU) webgpu with wasm."""

    @classmethod
    def prepare(cls, model: onnx.ModelProto, device: str = "CPU", **kwargs: Any) -> PyOrtRep:
        """Compile a model and load it into a page; `kwargs` go to `InferenceSession`."""
        providers = kwargs.pop("providers", None) or _PROVIDERS[device.split(":")[0]]
        return PyOrtRep(InferenceSession(model.SerializeToString(), providers=providers, **kwargs))

    @classmethod
    def run_model(cls, model: onnx.ModelProto, inputs: Any, device: str = "CPU", **kwargs: Any) -> tuple[Any, ...]:
        """Prepare a model, run it once, release it."""
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
        """Run a node alone, with the newest opset.

        Args:
            node: The node.
            inputs: Arrays, in the order of its inputs that are not omitted.
            device: As for `prepare`.
            outputs_info: dtype and shape of each output; by default what onnx infers.
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
            inferred = onnx.shape_inference.infer_shapes(model)
            known = {value.name: value for value in inferred.graph.output}
            for value in model.graph.output:
                value.CopyFrom(known.get(value.name, value))
        return cls.run_model(model, arrays, device, **kwargs)

    @classmethod
    def supports_device(cls, device: str) -> bool:
        """Whether a device of ONNX's naming ("CPU", "CUDA:0") is here."""
        wanted = _PROVIDERS.get(device.split(":")[0])
        return wanted is not None and (wanted[0] == "wasm" or "WebGpuExecutionProvider" in get_available_providers())


prepare = PyOrtBackend.prepare
run_model = PyOrtBackend.run_model
run_node = PyOrtBackend.run_node
supports_device = PyOrtBackend.supports_device
