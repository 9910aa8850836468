"""A folder whose pages run one model on py_ort or on onnxruntime-web, by the API that both have."""

from __future__ import annotations

import shutil
from pathlib import Path

import small_models
from npm_packages import peer_dist

import py_ort
from py_ort.bench.peer import FLAVORS
from py_ort.exporting.runtime_files import copy_runtime

ENGINES = ("py_ort", "onnxruntime-web")


def lay_out_engine(folder: Path, engine: str) -> str:
    """Write an engine and the model `small_models.add`. Return the query that names both: `module` and `model`."""
    if engine == "py_ort":
        copy_runtime(folder / "engine")
        py_ort.export(small_models.add(), folder / "add.pyort")
        return "module=engine/py_ort.mjs&model=add.pyort"
    dist, flavor = peer_dist(), FLAVORS["webgpu"]
    (folder / "engine").mkdir()
    for name in (flavor.module, f"{flavor.glue}.mjs", f"{flavor.glue}.wasm"):
        shutil.copy(dist / name, folder / "engine")
    (folder / "add.onnx").write_bytes(small_models.add())
    return f"module=engine/{flavor.module}&model=add.onnx"
