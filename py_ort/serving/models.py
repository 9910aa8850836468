"""ONNX files in a form for pages: compiled on request, and kept until they change."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import py_ort
from py_ort.browser.guard import Guard
from py_ort.exceptions import PyOrtError


@dataclass(frozen=True)
class _Compiled:
    """The state of a model when it was compiled."""

    version: tuple[int, int]
    folder: Path


class Models:
    """Compiles one model at a time, in a thread; used in the server's loop.

    Args:
        providers: Providers to compile for.
        dims: Sizes of dimensions by name.
        tell: Called, in the loop, with events: a kind, and fields; see `Events.tell`.
        say: Called with lines for the terminal.
    """

    def __init__(
        self,
        providers: Sequence[str],
        dims: Mapping[str, int],
        tell: Callable[..., None],
        say: Callable[[str], None],
    ) -> None:
        self._providers, self._dims, self._tell, self._say = providers, dims, tell, say
        self._kept = Guard("py-ort-serve-")
        self._compiled: dict[Path, _Compiled] = {}
        self._turn = asyncio.Lock()
        self._made = 0

    async def exported(self, model: Path, shown: str) -> Path:
        """Return the `.pyort` file of an ONNX file; its parts are next to it.

        Args:
            model: The ONNX file.
            shown: Its name for messages.

        Raises:
            PyOrtError: It cannot be compiled.
            OSError: It cannot be read, or there is no room.
        """
        async with self._turn:
            version = _version(model)
            known = self._compiled.get(model)
            if known is None or known.version != version:
                known = self._compiled[model] = _Compiled(version, await self._compile(model, shown))
        return known.folder / f"{model.stem}.pyort"

    def forget(self) -> None:
        """Compile all models again on the next request, since their sources have changed."""
        self._compiled.clear()

    async def close(self) -> None:
        """Delete the compiled models."""
        await self._kept.end()

    async def _compile(self, model: Path, shown: str) -> Path:
        loop, began = asyncio.get_running_loop(), time.perf_counter()
        self._made += 1
        folder = self._kept.folder / str(self._made)
        folder.mkdir()

        def report(stage: str, done: int, total: int) -> None:
            loop.call_soon_threadsafe(lambda: self._tell("progress", file=shown, text=stage, done=done, total=total))

        def export() -> None:
            options = py_ort.SessionOptions()
            for name, size in self._dims.items():
                options.add_free_dimension_override_by_name(name, size)
            py_ort.export(
                model, folder / f"{model.stem}.pyort", providers=self._providers, options=options, progress=report
            )

        self._tell("progress", file=shown, text="compiling", done=0, total=0)
        try:
            await asyncio.to_thread(export)
        except (PyOrtError, OSError) as e:
            text = f"{type(e).__name__}: {e}"
            self._tell("failed", file=shown, text=text)
            self._say(f"{shown}: {text}")
            raise
        self._tell("compiled", file=shown)
        self._say(f"{shown}: compiled in {time.perf_counter() - began:.2f} s")
        return folder


def _version(file: Path) -> tuple[int, int]:
    found = file.stat()
    return found.st_mtime_ns, found.st_size
