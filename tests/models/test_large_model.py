"""A model above 2 GB, all on the GPU: its weights pass through neither Python's own memory nor the wasm heap."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import large_model
import pytest

GB = 1 << 30


def _why_not() -> str:
    if os.environ.get("PY_ORT_LARGE") != "1":
        return "PY_ORT_LARGE=1 asks for it (make large)"
    try:
        available = int(Path("/proc/meminfo").read_text().split("MemAvailable:")[1].split()[0]) * 1024
    except (OSError, IndexError):
        return "this system does not say how much memory is free"
    return "" if available >= 12 * GB else f"{available / GB:.1f} GB of memory are free, and it needs 12"


@pytest.mark.large
@pytest.mark.skipif(bool(_why_not()), reason=_why_not() or "-")
def test_weights_stream_to_the_gpu(tmp_path):
    if shutil.disk_usage(tmp_path).free < 4 * GB:
        pytest.skip("4 GB of disk are needed")
    try:
        large_model.write(tmp_path)
        command = [sys.executable, large_model.__file__, str(tmp_path)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    finally:
        (tmp_path / "weights.bin").unlink(missing_ok=True)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout.splitlines()[-1])
    assert told["error"] < 1e-4
    assert told["memory"]["webgpu"]["weights"] > 2.3 * GB
    assert told["memory"]["wasm"]["weights"] == 0 and told["heap"] < 100 << 20
    assert told["own"] < GB
