"""The files of the JavaScript runtime, which a page needs besides a model."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from py_ort.compiler.load.model_files import replacing
from py_ort.exceptions import EngineError
from py_ort.folders import ASSETS

#: Of kernels on the CPU that few models need.
RARE_KERNELS = "rare_kernels.wasm"
#: The flavor into whose scripts an export writes kernels: minimal_runtime.py.
MINIMAL = ".minimal"

_FILES = (
    "session_worker.wasm.mjs",
    "microkernel_worker.js",
    "generate.mjs",
    "core.mjs",
    "core.wasm",
    RARE_KERNELS,
    "simd128.wasm",
    "relaxed_simd.wasm",
)
#: The common part of a flavor's modules; each build gives it another name.
_SHARED = "py_ort{}-*.mjs"
#: Providers that a page loads when a session requests them.
_PROVIDERS = "provider_*.mjs"
#: Files that not each runtime has.
_OF_SOME = (
    *(_SHARED.format(flavor) for flavor in ("", MINIMAL)),
    "session_worker.mjs",
    f"session_worker{MINIMAL}.mjs",
    _PROVIDERS,
    RARE_KERNELS,
)


def runtime_files(flavor: str = "") -> list[Path]:
    """Return them, the module first.

    Args:
        flavor: Suffix of the build: "" for all providers, ".wasm" for WebAssembly alone, MINIMAL.

    Raises:
        EngineError: They were not built.
    """
    names = tuple(dict.fromkeys((f"py_ort{flavor}.mjs", f"session_worker{flavor}.mjs", *_FILES)))
    missing = [name for name in names if not (ASSETS / name).is_file()]
    if missing:
        raise EngineError(
            f"the runtime is not built ({', '.join(missing)} not in {ASSETS}): run `make build` in the repository, or "
            "install a wheel, which carries it"
        )
    more = (_SHARED.format(flavor), *([] if flavor else [_PROVIDERS]))
    return [*(ASSETS / name for name in names), *(file for each in more for file in sorted(ASSETS.glob(each)))]


def copy_runtime(folder: Path) -> list[Path]:
    """Write the runtime into a folder, in place of an earlier runtime.

    Raises:
        EngineError: It was not built.
        OSError: The folder cannot be written.
    """
    return put_runtime(folder, {file.name: file.read_bytes() for file in runtime_files()})


def put_runtime(folder: Path, contents: Mapping[str, bytes]) -> list[Path]:
    """Write the missing and different files of a runtime; remove files of another runtime."""
    folder.mkdir(parents=True, exist_ok=True)
    files = [put(folder / name, content) for name, content in contents.items()]
    for old in {file for pattern in _OF_SOME for file in folder.glob(pattern)} - set(files):
        old.unlink()
    return files


def put(file: Path, content: bytes) -> Path:
    """Write a file, unless it has this content; return it."""
    if not file.is_file() or file.read_bytes() != content:
        with replacing(file, 0o666) as out:
            out.write(content)
    return file
