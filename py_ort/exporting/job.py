"""Options for exporting several models, as plain data for other processes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from py_ort.exporting.export import compile_options_for, targets
from py_ort.providers import DEFAULT

if TYPE_CHECKING:
    from py_ort.runtime.options import SessionOptions


@dataclass(frozen=True)
class ExportOptions:
    """Options of `py_ort.export`, the same for several models.

    Attributes:
        providers: Providers to compile for.
        dims: Sizes of dimensions by name.
        shapes: Shapes of inputs, with a further plan for each.
        part_size: The largest size of a file in bytes.
        kernels: Files of user kernels that models need.
        alone: True if models may have no external data.
    """

    providers: Sequence[str] = DEFAULT
    dims: Mapping[str, int] = field(default_factory=dict)
    shapes: Sequence[Mapping[str, Sequence[int]]] = ()
    part_size: int | None = None
    kernels: Sequence[str] = ()
    alone: bool = False

    def for_session(self) -> SessionOptions:
        """Return the options of a session that the exported model replaces."""
        from py_ort.runtime.options import SessionOptions

        options = SessionOptions()
        for name, size in self.dims.items():
            options.add_free_dimension_override_by_name(name, size)
        return options

    def key(self, digest: str) -> str:
        """Return a hash of everything that determines the contents of a model's file: equal keys, equal files.

        Args:
            digest: Hash of the model's contents.

        Raises:
            InvalidArgument: The options are wrong.
        """
        from py_ort.compiler.plan.cache import cache_key

        options = self.for_session()
        plans = [
            [cache_key(digest, target.providers, compile_options_for(target, options)), dict(target.shapes)]
            for target in targets(self.providers, self.shapes)
        ]
        contents = [hashlib.sha256(Path(file).read_bytes()).hexdigest() for file in self.kernels]
        return hashlib.sha256(json.dumps([plans, self.part_size, contents], sort_keys=True).encode()).hexdigest()
