"""Names of `onnxruntime` and its native module that py_ort lacks: data is returned, functions refuse."""

from __future__ import annotations

import enum
from collections.abc import Callable
from types import ModuleType
from typing import Any, NoReturn

from py_ort.compat import block_quantization, devices, inference_collection
from py_ort.compat.dlpack import is_dlpack_uint8_tensor
from py_ort.exceptions import NotImplemented
from py_ort.runtime.model_compiler import OrtExternalInitializerInfo
from py_ort.runtime.native import memory
from py_ort.runtime.native.assignment import OrtEpAssignedNode, OrtEpAssignedSubgraph
from py_ort.runtime.options import SessionOptions
from py_ort.runtime.values.ort_value_vector import OrtValueVector
from py_ort.runtime.values.sparse_tensor import OrtSparseFormat, SparseCooView, SparseCsrView
from py_ort.unsupported import refusing

_NO_COMPILED = (
    "No provider of a browser has compiled contexts: every session compiles its plan, and keeps it in a cache."
)
_NO_PACKAGES = "Packages of models for devices are native onnxruntime's: py_ort.export writes a file for web pages."
_NO_CUDA = "There is no CUDA in a browser."
#: Names that exist so that code which mentions them runs, with what is said to code that uses them.
_CLASSES = {
    "OrtEpContextData": _NO_COMPILED,
    "OrtEpContextDataBuffer": _NO_COMPILED,
    **dict.fromkeys(
        ("ModelPackage", "ModelPackageComponentContext", "ModelPackageContext", "ModelPackageOptions"), _NO_PACKAGES
    ),
    "OrtSyncStream": "A browser has no streams.",
    "SessionObjectInitializer": "SessionOptions and RunOptions are made by their names.",
    "SparseBlockSparseView": "Sparse tensors of blocks are not supported: no operator takes one.",
}
_FUNCTIONS = {
    "get_all_opkernel_def": "docs/operators.md lists what has a kernel here.",
    "get_registered_ep_kernel_defs": "docs/operators.md lists what has a kernel here.",
    "get_session_initializer": "SessionOptions and RunOptions are made by their names.",
    "pack_fp4_weights_for_cuda_moe_gemm": _NO_CUDA,
    "quantize_qdq_matmul_2bits": "ONNX's DequantizeLinear has no use for it: quantize_matmul_2bits is for MatMulNBits.",
}
_ENUMS: dict[str, dict[str, int]] = {
    "ModelPackageWriteMode": {"PRESERVE": 0, "DENSE": 1},
    "OrtCompileApiFlags": {"NONE": 0, "ERROR_IF_NO_NODES_COMPILED": 1, "ERROR_IF_OUTPUT_FILE_EXISTS": 2},
    "OrtDeviceEpIncompatibilityReason": {
        "NONE": 0,
        "DRIVER_INCOMPATIBLE": 1,
        "DEVICE_INCOMPATIBLE": 2,
        "MISSING_DEPENDENCY": 4,
        "UNKNOWN": -2147483648,
    },
    "OrtExecutionProviderDevicePolicy": {
        **{"DEFAULT": 0, "PREFER_CPU": 1, "PREFER_NPU": 2, "PREFER_GPU": 3},
        **{"MAX_PERFORMANCE": 4, "MAX_EFFICIENCY": 5, "MIN_OVERALL_POWER": 6},
    },
}
#: Names of the package itself; all others are those of its native module only.
_PUBLIC = (
    *("ModelPackage", "ModelPackageComponentContext", "ModelPackageContext", "ModelPackageOptions"),
    "ModelPackageWriteMode",
    *("OrtAllocatorType", "OrtArenaCfg", "OrtDeviceMemoryType", "OrtDeviceVendorId", "OrtMemType", "OrtMemoryInfo"),
    *("OrtMemoryInfoDeviceType", "OrtCompileApiFlags", "OrtEpAssignedNode", "OrtEpAssignedSubgraph"),
    *("OrtEpContextData", "OrtEpContextDataBuffer", "OrtEpDevice", "OrtExecutionProviderDevicePolicy"),
    *("OrtExternalInitializerInfo", "OrtHardwareDevice", "OrtHardwareDeviceType", "OrtSparseFormat", "OrtSyncStream"),
    *("create_and_register_allocator", "create_and_register_allocator_v2", "get_ep_devices"),
)


def get_all_operator_schema() -> list[Any]:
    """Return the schemas of all operators of ONNX, of every version."""
    import onnx.defs

    return list(onnx.defs.get_all_schemas_with_history())


def get_default_session_options() -> SessionOptions:
    """Return options with their defaults."""
    return SessionOptions()


def _refused(name: str, reason: str) -> Callable[..., NoReturn]:
    def refuse(*args: object, **options: object) -> NoReturn:
        raise NotImplemented(f"{name}: {reason}")

    refuse.__name__, refuse.__doc__ = name, reason
    return refuse


def _own(module: ModuleType) -> dict[str, Any]:
    """Return the names that a module itself defines."""
    return {name: value for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}


def of_native_module() -> dict[str, Any]:
    """Return the names of `onnxruntime.capi.onnxruntime_pybind11_state` that py_ort itself has not."""
    strategies = memory.ArenaExtendStrategy
    kinds = {**_own(memory), **_own(devices)}
    return {
        **{name: refusing(name, reason) for name, reason in _CLASSES.items()},
        **{name: _refused(name, reason) for name, reason in _FUNCTIONS.items()},
        **{name: enum.IntEnum(name, members) for name, members in _ENUMS.items()},
        **kinds,
        **strategies.__members__,
        **{name: getattr(block_quantization, name) for name in block_quantization.__all__},
        "OrtEpAssignedNode": OrtEpAssignedNode,
        "OrtEpAssignedSubgraph": OrtEpAssignedSubgraph,
        "OrtSparseFormat": OrtSparseFormat,
        "OrtExternalInitializerInfo": OrtExternalInitializerInfo,
        "OrtValueVector": OrtValueVector,
        "SparseCooView": SparseCooView,
        "SparseCsrView": SparseCsrView,
        "is_dlpack_uint8_tensor": is_dlpack_uint8_tensor,
        "get_all_operator_schema": get_all_operator_schema,
        "get_default_session_options": get_default_session_options,
    }


def of_inference_collection() -> dict[str, Any]:
    """Return the names of `onnxruntime.capi.onnxruntime_inference_collection` that py_ort itself has not."""
    return {name: getattr(inference_collection, name) for name in inference_collection.__all__}


def of_package() -> dict[str, Any]:
    """Return the names of `onnxruntime` itself that py_ort has not."""
    found = of_native_module()
    return {name: found[name] for name in _PUBLIC}
