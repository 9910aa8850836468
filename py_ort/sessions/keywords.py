"""Keywords of onnxruntime's sessions that are no arguments of ours. Native takes any, and so do we."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from py_ort.options import SessionOptions
from py_ort.sessions.model_config import VARIABLE, options_in_model


@dataclass(frozen=True)
class Keywords:
    """What they ask for.

    Attributes:
        fallback: Whether a run whose GPU is lost is done again on wasm.
        read_config: Whether options that are in the model count.
        without_effect: Those that change nothing here.
    """

    fallback: bool = False
    read_config: bool = False
    without_effect: tuple[str, ...] = ()

    @classmethod
    def read(cls, keywords: Mapping[str, Any]) -> Keywords:
        """Read what came besides our own arguments."""
        left = dict(keywords)
        fallback = int(left.pop("enable_fallback", 0)) == 1
        read_config = int(left.pop("read_config_from_model", os.environ.get(VARIABLE) == "1")) == 1
        if not left.get("disabled_optimizers", True):
            del left["disabled_optimizers"]
        return replace(cls(fallback, read_config), without_effect=tuple(left))

    def options(self, source: Any, given: SessionOptions | None) -> SessionOptions | None:
        """Return the options of a session: those in the model take the place of those given, as in onnxruntime."""
        return (options_in_model(source) if self.read_config else None) or given
