"""The files of the JavaScript runtime: what a page needs beside a model."""

from __future__ import annotations

from pathlib import Path

from py_ort.compiler.load.files import replacing
from py_ort.exceptions import EngineError
from py_ort.folders import ASSETS

#: Of kernels on the CPU that few models need.
RARE_KERNELS = "rare_kernels.wasm"

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
#: What the modules of a flavor share; each build names it anew.
_SHARED = "py_ort{}-*.mjs"
#: Providers that a page loads when a session names them.
_PROVIDERS = "provider_*.mjs"


def runtime_files(webgpu: bool = True) -> list[Path]:
    """Return them, the module first.

    Args:
        webgpu: Whether sessions may run on it; without, pages have less to load.

    Raises:
        EngineError: They were not built.
    """
    flavor = "" if webgpu else ".wasm"
    names = tuple(dict.fromkeys((f"py_ort{flavor}.mjs", f"session_worker{flavor}.mjs", *_FILES)))
    missing = [name for name in names if not (ASSETS / name).is_file()]
    if missing:
        raise EngineError(
            f"the runtime is not built ({', '.join(missing)} not in {ASSETS}): run `make build` in the repository, or "
            "install a wheel, which carries it"
        )
    more = (_SHARED.format(flavor), *([_PROVIDERS] if webgpu else []))
    return [*(ASSETS / name for name in names), *(file for each in more for file in sorted(ASSETS.glob(each)))]


def copy_runtime(folder: Path) -> list[Path]:
    """Bring the runtime into a folder: what differs, or is missing, there; an older build's shared files go.

    Raises:
        EngineError: It was not built.
        OSError: The folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    copies = [copy(file, folder) for file in runtime_files()]
    for old in set(folder.glob(_SHARED.format(""))) - set(copies):
        old.unlink()
    return copies


def copy(file: Path, folder: Path) -> Path:
    """Bring a file into a folder, unless it is there; return it there."""
    content, there = file.read_bytes(), folder / file.name
    if not there.is_file() or there.read_bytes() != content:
        with replacing(there, 0o666) as out:
            out.write(content)
    return there
