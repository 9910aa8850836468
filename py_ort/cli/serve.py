"""`py-ort serve`: a development server for pages that run models."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Coroutine, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import click

from py_ort.browser.address import in_url
from py_ort.cli.common import KERNEL_FILES, err, kernels_option, out, provider_option
from py_ort.cli.inputs import dim_option
from py_ort.providers import DEFAULT

if TYPE_CHECKING:
    from py_ort.serving.server import DevServer, ServeOptions


#: As browsers write it: without a path, in small letters.
_ORIGIN = re.compile(r"https?://[^/A-Z@?#]+")


def origins(context: click.Context, parameter: click.Parameter, given: tuple[str, ...]) -> tuple[str, ...]:
    for origin in given:
        try:
            right = _ORIGIN.fullmatch(origin) and urlsplit(origin).port != 0
        except ValueError:
            right = False
        if not right:
            raise click.BadParameter(f"{origin!r} is no origin: https://app.example, http://localhost:5173")
    return given


@click.command(short_help="Serve a folder for the development of pages.")
@click.argument("folder", type=click.Path(path_type=Path, exists=True, file_okay=False), default=".")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8000, show_default=True, help="Port to listen on; 0: a free one."
)
@click.option(
    "--host",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="Address to listen on, for devices in your network: the machine's own, or 0.0.0.0. The URL then has a token.",
)
@click.option(
    *("--cors", "origins"),
    multiple=True,
    callback=origins,
    metavar="ORIGIN",
    help="Allow pages of this origin to fetch files; may be repeated.",
)
@provider_option
@dim_option
@kernels_option
@click.option("--no-reload", is_flag=True, help="Do not reload open pages when a file changes.")
@click.pass_context
def serve(
    context: click.Context,
    folder: Path,
    port: int,
    host: str,
    origins: tuple[str, ...],
    providers: tuple[str, ...],
    dims: Mapping[str, int],
    no_reload: bool,
) -> None:
    """Serve FOLDER (default: this one) for the development of pages, until Ctrl-C.

    A page that loads NAME.pyort or NAME.onnx gets NAME.onnx, compiled. The runtime is /py_ort/py_ort.mjs. Pages are
    cross-origin isolated, so that threads work, and reload when a file changes.
    """
    from py_ort.serving.server import DevServer, ServeOptions

    kernels = context.meta.get(KERNEL_FILES, ())
    chosen = providers or DEFAULT
    options = ServeOptions(folder, host, port, origins, chosen, dims, kernels, not no_reload)
    server = DevServer(options, lambda line: err.print(line, markup=False, soft_wrap=True))
    run_server(_serve(server, options), host, port)


def run_server(serving: Coroutine[Any, Any, None], host: str, port: int) -> None:
    """Run a server until Ctrl-C; a port that cannot be had is an error of the command line."""
    try:
        asyncio.run(serving)
    except OSError as e:
        raise click.ClickException(f"{host}:{port}: {e.strerror or e} (--port 0 takes a free port)") from e


async def _serve(server: DevServer, options: ServeOptions) -> None:
    async with server.serving() as port:
        url = f"http://{in_url(options.host)}:{port}/"
        if server.token:
            import segno

            url += f"?token={server.token}"
            segno.make(url, error="l").terminal(compact=True)
            err.print(
                "Over http a page of another machine has neither WebGPU nor threads: browsers give these to secure "
                "contexts only (docs/web.md says what helps)",
                soft_wrap=True,
            )
        out.print(url, soft_wrap=True)
        out.file.flush()
        await asyncio.Event().wait()
