"""Keywords of onnxruntime's sessions that are not our arguments. Native sessions accept any keyword, and so do ours."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from py_ort.compiler.saved.target import DISABLED_ENTRY
from py_ort.log import SessionLog
from py_ort.runtime.model_config import VARIABLE, options_in_model
from py_ort.runtime.options import SessionOptions
from py_ort.suggestion import did_you_mean

_DISABLED = "disabled_optimizers"
#: Arguments of a session that other keywords may stand for.
_OWN = ("sess_options", "providers", "provider_options", "browser", "launcher", "pages", "progress", "engine")
_warned: set[tuple[str, ...]] = set()


@dataclass(frozen=True)
class Keywords:
    """The meaning of keywords.

    Attributes:
        fallback: True if a run whose GPU is lost is repeated on wasm.
        read_config: True if options in the model are used.
        disabled: onnxruntime's optimizers that are disabled.
        without_effect: Keywords that change nothing here.
    """

    fallback: bool = False
    read_config: bool = False
    disabled: tuple[str, ...] = ()
    without_effect: tuple[str, ...] = ()

    @classmethod
    def read(cls, keywords: Mapping[str, Any]) -> Keywords:
        """Return the meaning of keywords."""
        left = dict(keywords)
        fallback = int(left.pop("enable_fallback", 0)) == 1
        read_config = int(left.pop("read_config_from_model", os.environ.get(VARIABLE) == "1")) == 1
        disabled = tuple(sorted(left.get(_DISABLED) or ()))
        if not disabled:
            left.pop(_DISABLED, None)
        return cls(fallback, read_config, disabled, tuple(left))

    def options(self, source: Any, given: SessionOptions | None) -> SessionOptions:
        """Return the options of a session; options in the model replace the given ones, as in onnxruntime."""
        options = (options_in_model(source) if self.read_config else None) or given or SessionOptions()
        if not self._concern_a_file(options):
            return options
        options = options._copy()
        options.add_session_config_entry(DISABLED_ENTRY, ";".join(self.disabled))
        return options

    def warn(self, options: SessionOptions, log: SessionLog) -> None:
        """Warn once in a process about keywords without effect; optimizers only affect the file that is written."""
        idle = tuple(name for name in self.without_effect if name != _DISABLED or not self._concern_a_file(options))
        if idle and idle not in _warned:
            _warned.add(idle)
            texts = (f"{name}{did_you_mean(name, _OWN)}" for name in idle)
            log.warning("keywords without effect in a browser: %s", ", ".join(texts))

    def _concern_a_file(self, options: SessionOptions) -> bool:
        return bool(self.disabled and options.optimized_model_filepath)
