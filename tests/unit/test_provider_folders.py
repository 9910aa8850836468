"""A provider is a folder: builds have it without a change to any other file."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

WEB = Path(__file__).parents[2] / "web"

INDEX = """
import { CORE_PROVIDER } from '@web/contract/providers';
import type { ProviderModule } from '@web/device/module';
const mirror: ProviderModule = {
  name: 'mirror',
  forCompiler: [],
  settings: () => ({ deviceId: 0, device: {}, preserveDevice: false, enableGraphCapture: false }),
  devices: () => { throw new Error(`a mirror of ${CORE_PROVIDER}`); },
};
export default mirror;
"""
MANIFEST = """
export const kernels = [{ op: 'Relu', types: [['float32']] }];
export const sources = ['mirror'];
"""


def test_a_folder_elsewhere_is_a_provider(tmp_path: Path) -> None:
    folder, assets = tmp_path / "mirror", tmp_path / "assets"
    folder.mkdir()
    (folder / "index.ts").write_text(INDEX.replace("@web", str(WEB / "src")))
    (folder / "manifest.ts").write_text(MANIFEST)
    command = ["node", WEB / "build.mjs", "--out", assets]
    subprocess.run(command, env={**os.environ, "PY_ORT_PROVIDERS": str(folder)}, check=True)
    [kernel] = json.loads((assets / "kernels.mirror.json").read_text())
    assert (kernel["op_type"], kernel["types"], kernel["source"]) == ("Relu", [["float32"]], "mirror")
    assert json.loads((assets / "kernels.webgpu.json").read_text())
    having = [file.name for file in assets.glob("*.*js") if "a mirror of " in file.read_text()]
    assert {"worker.js", "session_worker.mjs"} <= set(having)
    assert not [name for name in having if ".wasm" in name]
