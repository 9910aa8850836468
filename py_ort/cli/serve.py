"""`py-ort serve`: the page and compiled models over HTTP, for browsers without Python."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import click

from py_ort.cli.common import kernels_option, out, progress, provider_option
from py_ort.parts import Part


@click.command()
@click.argument("models", nargs=-1, type=click.Path(path_type=Path))
@provider_option
@kernels_option
def serve(models: tuple[Path, ...], providers: tuple[str, ...]) -> None:
    """Serve the built page, and the plans and weights of MODELS, on loopback until Ctrl-C.

    A page loads them with `Session.load(plan, weights)`; nothing of it needs Python afterwards.
    """
    from py_ort.browser.http_server import HttpServer, check_assets

    check_assets()
    server = HttpServer()
    out.print(f"page     {server.origin}/index.html", soft_wrap=True)
    with progress() as report:
        for model in models:
            report(f"compiling {model}", 0, 0)
            plan, weights = _compile(model, providers)
            out.print(
                f"{model}\n  plan     {server.publish([plan])}\n  weights  {server.publish(weights)}", soft_wrap=True
            )
    try:
        while True:
            time.sleep(3600)
    finally:
        server.close()


def _compile(model: Path, providers: tuple[str, ...]) -> tuple[bytes, Sequence[Part]]:
    from py_ort.plan import compile_model
    from py_ort.providers.resolution import resolve

    compiled = compile_model(model, providers=list(resolve(list(providers) or None).providers))
    return compiled.plan, compiled.parts()
