"""Registered kernels, which the rest of py_ort treats as ordinary operators.

A kernel gets the same parts as every operator: a schema of ONNX (arity, attributes and their defaults, dtypes), a
declaration of `py_ort.ops` (how inputs are read, layout, shape inference), and a row in the manifest by which nodes are
placed. Its `definition` is plain JSON; a plan has the definitions that its nodes use. The registered definitions are
part of the key of a cached plan.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from py_ort.boundary import public_function
from py_ort.exceptions import InvalidArgument
from py_ort.ir.operators import REGISTERED
from py_ort.user_kernels.kernel import RequiredAttribute, UserKernel

_lock = threading.Lock()
#: Files that register a kernel when they are run, where known.
_files: WeakKeyDictionary[UserKernel, Path] = WeakKeyDictionary()
_SINCE_VERSION = 1
_ONNX_TYPES = {"float32": "float", "float64": "double"}


@public_function
def register_kernel(kernel: UserKernel | str, /, **fields: Any) -> UserKernel:
    """Register a WebGPU kernel: models may use its operator from now on.

    Args:
        kernel: A `UserKernel`, or the name of one ("domain::Operator") whose fields follow.
        fields: See `UserKernel`.

    Returns:
        The kernel. It replaces a kernel registered under the same name; existing sessions keep the old one.

    Raises:
        InvalidArgument: It is declared wrongly; the message has the correct form.
    """
    if isinstance(kernel, str):
        kernel = UserKernel(name=kernel, **fields)
    elif fields:
        raise InvalidArgument("pass fields only with a name: a UserKernel has its own")
    from py_ort.user_kernels.inference import declaration

    key = (kernel.domain, kernel.op_type)
    with _lock:
        if key not in REGISTERED and key in _built_in():
            raise InvalidArgument(
                f"{kernel.name} is an operator of py_ort: name yours in a domain of your own, as in my::Operator"
            )
        _forget_schema(key)
        _learn_schema(kernel)
        REGISTERED[key] = declaration(kernel)
    if file := _module_of_caller():
        set_kernel_file(kernel, file)
    return kernel


@public_function
def unregister_kernel(name: str) -> None:
    """Forget a kernel. Sessions that use it continue to work.

    Raises:
        InvalidArgument: No kernel of this name is registered.
    """
    domain, _, op_type = name.partition("::")
    with _lock:
        if REGISTERED.pop((domain, op_type), None) is None:
            there = ", ".join(registered_kernels()) or "none"
            raise InvalidArgument(f"no kernel {name!r} is registered: there are {there}")
        _forget_schema((domain, op_type))


def registered_kernels() -> dict[str, UserKernel]:
    """Return the registered kernels by name."""
    return {each.kernel.name: each.kernel for each in REGISTERED.values() if isinstance(each.kernel, UserKernel)}


def kernel_file(kernel: UserKernel) -> Path | None:
    """Return the file from which `load_kernels` registers a kernel; None: none is known."""
    return _files.get(kernel)


def set_kernel_file(kernel: UserKernel, file: Path) -> None:
    """Remember a kernel's file, unless a file is known."""
    _files.setdefault(kernel, file.resolve())


def _module_of_caller() -> Path | None:
    """Return the file whose top level called py_ort; None if a function did, which may depend on anything."""
    frame = sys._getframe(1)
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] == "py_ort":
        frame = frame.f_back
    file = Path(frame.f_code.co_filename)
    return file if frame.f_code.co_name == "<module>" and file.is_file() else None


def _built_in() -> set[tuple[str, str]]:
    from py_ort.providers.manifest import load_manifests

    return {key for manifest in load_manifests().values() for key in manifest.kernels}


# --- ONNX's schema, by which loading checks arity, attributes and types


def _learn_schema(kernel: UserKernel) -> None:
    import onnx

    schema = onnx.defs.OpSchema
    option = schema.FormalParameterOption
    names = kernel.input_names
    groups = {
        name: (name if isinstance(given, list) else given) for name, given in zip(names, kernel.accepted, strict=True)
    }
    while any(groups[group] != group for group in groups.values()):
        groups = {name: groups[group] for name, group in groups.items()}
    constraints = {
        f"T_{name}": [_onnx_type(dtype) for dtype in given]
        for name, given in zip(names, kernel.accepted, strict=True)
        if isinstance(given, list)
    }
    inputs = [
        schema.FormalParameter(
            name, f"T_{groups[name]}", param_option=option.Optional if marked.endswith("?") else option.Single
        )
        for name, marked in zip(names, kernel.inputs, strict=True)
    ]
    outputs = [
        schema.FormalParameter(name, f"T_{groups[dtype]}" if dtype in groups else _onnx_type(dtype))
        for name, dtype in zip(kernel.outputs, kernel.output_dtypes, strict=True)
    ]
    kinds = {
        **{"i": schema.AttrType.INT, "f": schema.AttrType.FLOAT, "s": schema.AttrType.STRING},
        **{"is": schema.AttrType.INTS, "fs": schema.AttrType.FLOATS, "ss": schema.AttrType.STRINGS},
    }
    attributes = [
        schema.Attribute(name, kinds[kind], required=True)
        if isinstance(kernel.attributes[name], RequiredAttribute)
        else schema.Attribute(name, _attribute_proto(name, kind, kernel.attributes[name]))
        for name, kind in kernel.attribute_kinds.items()
    ]
    onnx.defs.register_schema(
        schema(
            kernel.op_type,
            kernel.domain,
            _SINCE_VERSION,
            kernel.doc,
            inputs=inputs,
            outputs=outputs,
            type_constraints=[(name, types, "") for name, types in constraints.items()],
            attributes=attributes,
        )
    )
    _clear_caches()


def _attribute_proto(name: str, kind: str, value: Any) -> Any:
    import onnx

    if kind in ("f", "fs"):
        value = [float(item) for item in value] if kind == "fs" else float(value)
    return onnx.helper.make_attribute(name, int(value) if kind == "i" else value)


def _forget_schema(key: tuple[str, str]) -> None:
    import onnx

    domain, op_type = key
    if onnx.defs.has(op_type, domain):
        onnx.defs.deregister_schema(op_type, _SINCE_VERSION, domain)
        _clear_caches()


def _clear_caches() -> None:
    from py_ort.compiler.load import types
    from py_ort.ir import schemas

    schemas.schema.cache_clear()
    types.forget_schemas()


def _onnx_type(dtype: str) -> str:
    return f"tensor({_ONNX_TYPES.get(dtype, dtype)})"
