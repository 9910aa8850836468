"""Has the schema's code made where it is missing, as in a bare clone, before the project is packed or installed."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class SchemaHook(BuildHookInterface):
    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        schema = runpy.run_path(str(Path(self.root) / "py_ort/schema/generate.py"))
        if any(not folder.is_dir() for folder in schema["FOLDERS"]) and schema["main"]() != 0:
            raise RuntimeError("the schema's code could not be made")
