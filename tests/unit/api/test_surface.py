"""Our API against the installed onnxruntime's: every public name and every signature, with the intended differences."""

from __future__ import annotations

import inspect
import re

import pytest

import py_ort
from py_ort import exceptions
from py_ort.runtime.available import API_VERSION

native = pytest.importorskip("onnxruntime")
state = pytest.importorskip("onnxruntime.capi.onnxruntime_pybind11_state")

#: Names that onnxruntime has and py_ort has not, and why. "name" or "Class.name".
LEFT_OUT = {
    "cuda_version": "its own part, not an API",
    **dict.fromkeys(
        ("version", "package_name", "import_capi_exception", "SessionIOBinding"),
        "only in the module that install_as_onnxruntime makes",
    ),
    **dict.fromkeys(
        (
            "OrtAllocatorType",
            "OrtArenaCfg",
            "OrtDeviceMemoryType",
            "OrtMemType",
            "OrtMemoryInfo",
            "OrtMemoryInfoDeviceType",
            "create_and_register_allocator",
            "create_and_register_allocator_v2",
        ),
        "native memory: a page has the wasm heap and GPU buffers, and no allocator to choose",
    ),
    **dict.fromkeys(
        (
            "OrtDeviceVendorId",
            "OrtEpDevice",
            "OrtExecutionProviderDevicePolicy",
            "OrtHardwareDevice",
            "OrtHardwareDeviceType",
            "get_ep_devices",
        ),
        "a browser does not list its devices",
    ),
    **dict.fromkeys(
        (
            "OrtEpAssignedNode",
            "OrtEpAssignedSubgraph",
        ),
        "placement() says it of every session, without being told to record it",
    ),
    **dict.fromkeys(
        ("OrtCompileApiFlags", "OrtEpContextData", "OrtEpContextDataBuffer", "OrtExternalInitializerInfo"),
        "arguments of ModelCompiler, in the module that stands in for onnxruntime",
    ),
    **dict.fromkeys(
        (
            "ModelPackage",
            "ModelPackageComponentContext",
            "ModelPackageContext",
            "ModelPackageOptions",
            "ModelPackageWriteMode",
        ),
        "packages are for native devices; the module that stands in for onnxruntime has classes that say so",
    ),
    "OrtSparseFormat": "what SparseTensor.format gives has its numbers",
    "OrtSyncStream": "a browser has no streams",
}
#: Parameters that only one of the two has, with the reason.
PARAMETERS = {
    "InferenceSession.__init__": "ours besides: browser, launcher, pages, progress",
    "InferenceSession.run_async": "callback may be left out: the result is a future",
    "OrtValue.__init__": "made of what it holds; there is no C object beneath",
    "OrtValue.from_dlpack": "ours besides: is_bool_tensor, for producers that have no bool",
    "OrtValue.__dlpack__": "all of numpy's options, stream among them",
    "OrtDevice.__init__": "made of a name and a number; there is no C object beneath",
}
CLASSES = [
    "AdapterFormat",
    "ExecutionMode",
    "ExecutionOrder",
    "GraphOptimizationLevel",
    "IOBinding",
    "InferenceSession",
    "LoraAdapter",
    "ModelCompiler",
    "ModelMetadata",
    "NodeArg",
    "OrtDevice",
    "OrtValue",
    "RunOptions",
    "SessionOptions",
    "SparseTensor",
]


def _public(thing: object) -> list[str]:
    # Submodules appear once anything in this process has imported them.
    return [name for name in dir(thing) if not (name.startswith("_") or inspect.ismodule(getattr(thing, name)))]


def _members() -> list[str]:
    found = []
    for name in CLASSES:
        theirs = getattr(native, name)
        builtin = ("name", "value") if name.startswith(("Execution", "Graph")) else ()
        found += [f"{name}.{member}" for member in _public(theirs) if member not in builtin]
    return found


def _ours(path: str) -> object:
    made = {"SessionOptions": py_ort.SessionOptions(), "RunOptions": py_ort.RunOptions()}
    samples = {"NodeArg": py_ort.NodeArg("x", "tensor(float)", None), "ModelMetadata": py_ort.ModelMetadata()}
    owner, _, member = path.partition(".")
    if not member:
        return getattr(py_ort, owner)
    return getattr({**made, **samples}.get(owner) or getattr(py_ort, owner), member)


@pytest.mark.parametrize("name", sorted({*_public(native), *_members()}))
def test_every_name_is_here_or_left_out_for_a_reason(name):
    if name in LEFT_OUT or ("." in name and f"{name.partition('.')[0]}." in LEFT_OUT):
        with pytest.raises(AttributeError):
            _ours(name)
    else:
        assert _ours(name) is not None


def test_reasons_are_of_names_that_are_there():
    known = {*_public(native), *_members()}
    stale = [name for name in LEFT_OUT if not name.endswith(".") and name not in known]
    assert not [name for name in stale if not _newer(name)]


def _newer(name: str) -> bool:
    """Return True if an older onnxruntime may lack it."""
    return not hasattr(native, name.partition(".")[0]) or "." in name


def _parameters(function: object) -> list[str] | None:
    try:
        return [p for p in inspect.signature(function).parameters if p not in ("self", "cls")]  # type: ignore[arg-type]
    except (TypeError, ValueError):
        pass
    # pybind11 has names of parameters only if the author gave them.
    text = re.match(r"\w+\((.*)\) ->", (getattr(function, "__doc__", "") or "").split("\n")[0])
    if text is None:
        return None
    names = re.findall(r"(?:^|, )(\w+): ", text[1])
    return None if any(name.startswith("arg") for name in names) else [n for n in names if n != "self"]


def _defaults(function: object) -> dict[str, object]:
    try:
        parameters = inspect.signature(function).parameters  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return {}
    return {n: p.default for n, p in parameters.items() if p.default is not inspect.Parameter.empty}


CALLABLES = sorted(
    {
        *(
            m
            for m in _members()
            if callable(inspect.getattr_static(getattr(native, m.partition(".")[0]), m.partition(".")[2]))
        ),
        *(f"{name}.__init__" for name in ("InferenceSession", "IOBinding", "OrtDevice", "OrtValue")),
        "OrtValue.__dlpack__",
        *(n for n in _public(native) if inspect.isroutine(getattr(native, n))),
    }
    - set(LEFT_OUT)
)


@pytest.mark.parametrize("name", CALLABLES)
def test_signatures(name):
    owner, _, member = name.partition(".")
    theirs = getattr(getattr(native, owner), member) if member else getattr(native, owner)
    ours = getattr(getattr(py_ort, owner), member) if member else getattr(py_ort, owner)
    wanted, found = _parameters(theirs), _parameters(ours)
    if name in PARAMETERS:
        assert wanted != found or _defaults(theirs) != _defaults(ours), "the difference is gone: take it off the table"
    elif wanted is not None:
        assert found == wanted
        assert not _defaults(theirs) or _defaults(ours) == _defaults(theirs)


@pytest.mark.parametrize("kind", ["SessionOptions", "RunOptions"])
def test_options_have_onnxruntimes_defaults(kind):
    theirs, ours = getattr(native, kind)(), getattr(py_ort, kind)()
    for name in _public(theirs):
        value = getattr(theirs, name)
        if not callable(value):
            expected = int(value) if hasattr(value, "__members__") else value
            assert getattr(ours, name) == expected and type(getattr(ours, name)).__name__ == type(value).__name__, name


@pytest.mark.parametrize("name", ["ExecutionMode", "ExecutionOrder", "GraphOptimizationLevel"])
def test_enums(name):
    theirs, ours = getattr(native, name).__members__, getattr(py_ort, name).__members__
    assert {member: int(value) for member, value in ours.items()} == {m: int(v) for m, v in theirs.items()}


def test_errors_have_onnxruntimes_names():
    theirs = {n for n, v in vars(state).items() if isinstance(v, type) and issubclass(v, Exception)}
    assert theirs <= set(exceptions.__all__)
    with py_ort.install_as_onnxruntime():
        from onnxruntime.capi import onnxruntime_pybind11_state as ours

        for name in theirs:
            assert issubclass(getattr(ours, name), exceptions.PyOrtError)


def test_the_module_that_stands_in_has_what_only_it_has():
    with py_ort.install_as_onnxruntime() as installed:
        for name, reason in LEFT_OUT.items():
            if reason.startswith("only in the module"):
                assert hasattr(installed.module, name)
        assert installed.module.version == installed.module.__version__ == API_VERSION
