"""Options of the compile server."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from py_ort.exporting.compile_process import Limits
from py_ort.exporting.job import ExportOptions


@dataclass(frozen=True)
class CompileServerOptions:
    """Options of `py-ort compile-server`.

    Attributes:
        folder: The store.
        objects: URL of an object store behind it, which other servers share; "": none.
        host: The address to listen on.
        port: 0: a free one.
        names: Names that the server may be called by, besides those of loopback.
        origins: Origins whose pages may ask.
        sources: Origins that models are fetched from.
        private_sources: True if their names may lead to private addresses.
        export: How models are exported.
        limits: Limits of each process.
        largest: The largest size of a model in bytes.
        jobs: Models to compile at once.
        waiting: The most models that may wait.
        keep: The largest size of the store in bytes.
    """

    folder: Path
    objects: str = ""
    host: str = "127.0.0.1"
    port: int = 8001
    names: Sequence[str] = ()
    origins: Sequence[str] = ()
    sources: Sequence[str] = ()
    private_sources: bool = False
    export: ExportOptions = field(default_factory=ExportOptions)
    limits: Limits = field(default_factory=lambda: Limits(8 << 30, 600))
    largest: int = 2 << 30
    jobs: int = 2
    waiting: int = 100
    keep: int = 50 << 30
