"""Browsers of the machine, without which tests are skipped."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from py_ort.browser import find


def need_browser(name: str, *, display: bool = False, webgpu: bool = False) -> str:
    """Skip the test if the browser, or what it needs for a display or for WebGPU, is not installed."""
    if not find.installed(name):
        pytest.skip(f"{name} is not installed")
    if (display or name == "webkit") and not shutil.which("Xvfb"):
        pytest.skip("Xvfb is not installed")
    if webgpu and not list(Path("/usr/share/vulkan/icd.d").glob("*.json")):
        pytest.skip("there is no Vulkan driver: mesa-vulkan-drivers has one for the CPU")
    return name
