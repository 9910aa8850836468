"""`py-ort serve`: the page and compiled models over HTTP, for browsers without Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.cli.common import KERNEL_FILES, err, kernels_option, out, progress, provider_option
from py_ort.exceptions import PyOrtError

if TYPE_CHECKING:
    from py_ort.browser.http_server import HttpServer
    from py_ort.wire.parts import Part

_INTERVAL = 0.3


@click.command()
@click.argument("models", nargs=-1, type=click.Path(path_type=Path))
@provider_option
@kernels_option
@click.option("--watch", is_flag=True, help="Compile again when a model or a file of kernels changes; the URLs stay.")
@click.pass_context
def serve(context: click.Context, models: tuple[Path, ...], providers: tuple[str, ...], watch: bool) -> None:
    """Serve the built page, and the plans and weights of MODELS, on loopback until Ctrl-C.

    A page loads them with `Session.load(plan, weights)`; nothing of it needs Python afterwards.
    """
    from py_ort.browser.http_server import HttpServer, check_assets

    check_assets()
    server = HttpServer()
    out.print(f"page     {server.origin}/index.html", soft_wrap=True)
    served = Served(server, models, providers, context.meta.get(KERNEL_FILES, ()))
    with progress() as report:
        for model in models:
            report(f"compiling {model}", 0, 0)
            plan, weights = served.add(model)
            out.print(f"{model}\n  plan     {plan}\n  weights  {weights}", soft_wrap=True)
    try:
        while True:
            time.sleep(_INTERVAL if watch else 3600)
            for line in served.refresh() if watch else ():
                err.print(line, markup=False, soft_wrap=True)
    finally:
        server.close()


@dataclass
class Served:
    """Models on a server, and the files that they come from.

    Attributes:
        server: The server.
        models: The files of the models.
        providers: As the command got them.
        kernels: Files of user kernels.
    """

    server: HttpServer
    models: Sequence[Path]
    providers: Sequence[str]
    kernels: Sequence[Path] = ()
    _urls: dict[Path, tuple[str, str]] = field(default_factory=dict)
    _versions: dict[Path, tuple[int, int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for file in (*self.models, *self.kernels):
            self._changed(file)

    def add(self, model: Path) -> tuple[str, str]:
        """Compile a model; return the URLs of its plan and its weights."""
        plan, weights = self._compile(model)
        self._urls[model] = self.server.publish([plan]), self.server.publish(weights)
        return self._urls[model]

    def refresh(self) -> list[str]:
        """Compile what changed again; return a line for each model. One that fails is served as it was."""
        from py_ort.user_kernels import load_kernels

        changed = [file for file in self.kernels if self._changed(file)]
        lines = []
        try:
            for file in changed:
                load_kernels(file)
        except Exception as e:  # a file of Python may raise anything
            return [f"{file}: {e}"]
        for model in self.models:
            if not self._changed(model) and not changed:
                continue
            try:
                began = time.perf_counter()
                plan, weights = self._compile(model)
                for url, parts in zip(self._urls[model], ([plan], weights), strict=True):
                    self.server.replace(url, parts)
                lines.append(f"{model}: compiled again in {time.perf_counter() - began:.2f} s")
            except PyOrtError as e:
                lines.append(f"{model}: {type(e).__name__}: {e}")
        return lines

    def _compile(self, model: Path) -> tuple[bytes, Sequence[Part]]:
        from py_ort.compiler import compile_model
        from py_ort.runtime.providers.resolution import resolve

        compiled = compile_model(model, providers=list(resolve(list(self.providers) or None).providers))
        return compiled.plan, compiled.parts()

    def _changed(self, file: Path) -> bool:
        """Whether a file is another one than when it was last asked for; one that is being replaced is not."""
        try:
            stat = file.stat()
        except OSError:
            return False
        version = stat.st_mtime_ns, stat.st_size
        before, self._versions[file] = self._versions.get(file), version
        return before != version
