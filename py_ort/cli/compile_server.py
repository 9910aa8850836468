"""`py-ort compile-server`: a service that compiles models which pages meet at run time."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from py_ort.browser.address import in_url
from py_ort.cli.common import KERNEL_FILES, err, kernels_option, out, provider_option
from py_ort.cli.serve import origins as origin_list
from py_ort.cli.serve import run_server
from py_ort.providers import DEFAULT

if TYPE_CHECKING:
    from py_ort.serving.compiling.server import CompileServer
    from py_ort.serving.compiling.server_options import CompileServerOptions


def _mebibytes(name: str, default: int, text: str, least: int = 1) -> Callable[[Any], Any]:
    """Return the option of a size."""
    kind = click.IntRange(min=least)
    return click.option(name, type=kind, default=default, show_default=True, metavar="MIB", help=text)


@click.command("compile-server", short_help="Compile models for pages, as a service.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    *("--store", "objects"),
    default="",
    metavar="URL",
    help="Object store that several servers share, as well as FOLDER: s3://BUCKET/….",
)
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="Port to listen on; 0: a free one."
)
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", show_default=True, help="Address to listen on.")
@click.option(
    "--name",
    "names",
    multiple=True,
    metavar="HOST",
    help="Host name of this server, as the proxy sends it; may be repeated.",
)
@click.option(
    *("--cors", "origins"),
    multiple=True,
    callback=origin_list,
    metavar="ORIGIN",
    help="Allow pages of this origin to send requests.",
)
@click.option(
    *("--source", "sources"),
    multiple=True,
    callback=origin_list,
    metavar="ORIGIN",
    help="Fetch models from this origin only, also after redirects; may be repeated.",
)
@click.option("--private-sources", is_flag=True, help="Allow sources with private addresses, as in an intranet.")
@provider_option
@kernels_option
@click.option(
    "--jobs",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of models compiled at once. Default: one for each CPU.",
)
@_mebibytes("--max-size", 2048, "Largest size of a model.")
@click.option(
    *("--timeout", "seconds"),
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="Longest time to fetch a model, and to compile it.",
)
@_mebibytes("--memory", 8192, "Memory limit of a process.", least=256)
@_mebibytes("--keep", 51200, "Largest size of FOLDER.")
@click.pass_context
def compile_server(
    context: click.Context,
    folder: Path,
    objects: str,
    port: int,
    host: str,
    names: tuple[str, ...],
    origins: tuple[str, ...],
    sources: tuple[str, ...],
    private_sources: bool,
    providers: tuple[str, ...],
    jobs: int | None,
    max_size: int,
    seconds: float,
    memory: int,
    keep: int,
) -> None:
    """Compile models on request, for pages that name this server in env.compiler, and keep them in FOLDER.

    GET /export?url=URL fetches an ONNX file, and redirects to the compiled .pyort file; POST /export accepts a model's
    bytes. Each model is compiled once, in a separate process. GET /health and GET /metrics report on the server. Run it
    behind a reverse proxy with TLS.
    """
    from py_ort.exporting import ExportOptions
    from py_ort.exporting.compile_process import Limits
    from py_ort.serving.compiling.server import CompileServer
    from py_ort.serving.compiling.server_options import CompileServerOptions

    if not folder.absolute().parent.is_dir():
        raise click.BadParameter(f"there is no folder {folder.parent} to make it in", param_hint="FOLDER")
    kernels = [str(file.absolute()) for file in context.meta.get(KERNEL_FILES, ())]
    options = CompileServerOptions(
        folder,
        objects,
        host,
        port,
        names,
        origins,
        sources,
        private_sources,
        ExportOptions(providers or DEFAULT, kernels=kernels, alone=True),
        Limits(memory << 20, seconds),
        largest=max_size << 20,
        jobs=jobs or os.cpu_count() or 1,
        keep=keep << 20,
    )
    server = CompileServer(options, lambda line: err.print(line, markup=False, soft_wrap=True))
    run_server(_serve(server, options), host, port)


async def _serve(server: CompileServer, options: CompileServerOptions) -> None:
    async with server.serving() as port:
        out.print(f"http://{in_url(options.host)}:{port}/", soft_wrap=True)
        out.file.flush()
        await asyncio.Event().wait()
