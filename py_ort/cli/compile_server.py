"""`py-ort compile-server`: a service that compiles models which pages meet at run time."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py_ort.browser.address import in_url
from py_ort.cli.common import KERNEL_FILES, err, kernels_option, out, provider_option
from py_ort.cli.serve import origins as origin_list
from py_ort.cli.serve import run_server
from py_ort.providers import DEFAULT

if TYPE_CHECKING:
    from py_ort.serving.compiling.server import CompileServer
    from py_ort.serving.compiling.server_options import CompileServerOptions


@click.command("compile-server", short_help="Compile models for pages, as a service.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False))
@click.option(
    *("--store", "objects"), default="", metavar="URL", help="Keep models here, too, for several servers: s3://…, …"
)
@click.option("--port", type=click.IntRange(0, 65535), default=8001, show_default=True, help="0: a free one.")
@click.option("--host", default="127.0.0.1", metavar="ADDRESS", show_default=True, help="Address to listen on.")
@click.option("--name", "names", multiple=True, metavar="HOST", help="A name it is called by, as its proxy sends it.")
@click.option(
    *("--cors", "origins"), multiple=True, callback=origin_list, metavar="ORIGIN", help="Let pages of this origin ask."
)
@click.option(
    *("--source", "sources"),
    multiple=True,
    callback=origin_list,
    metavar="ORIGIN",
    help="Fetch models from this origin, and from no other. Redirects lead to origins, too.",
)
@click.option("--private-sources", is_flag=True, help="Let names of sources have private addresses, as in an intranet.")
@provider_option
@kernels_option
@click.option("--jobs", type=click.IntRange(min=1), metavar="N", help="Models compiled at once. Default: CPUs.")
@click.option(
    "--max-size", type=click.IntRange(min=1), default=2048, show_default=True, metavar="MIB", help="Of a model."
)
@click.option(
    *("--timeout", "seconds"),
    type=click.FloatRange(min=0, min_open=True),
    default=600,
    show_default=True,
    metavar="SECONDS",
    help="For a model to arrive, and to compile.",
)
@click.option(
    "--memory", type=click.IntRange(min=256), default=8192, show_default=True, metavar="MIB", help="Of a process."
)
@click.option("--keep", type=click.IntRange(min=1), default=51200, show_default=True, metavar="MIB", help="Of FOLDER.")
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
    """Compile models for pages, which name this server in env.compiler, and keep them in FOLDER.

    GET /export?url=URL fetches an ONNX file and leads to its .pyort file; POST /export takes the bytes. Each model is
    compiled once, in a process of its own. GET /health and GET /metrics say how the server is doing. Put it behind a
    reverse proxy that has TLS.
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
        ExportOptions(providers or DEFAULT, kernels=kernels),
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
