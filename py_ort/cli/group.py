"""All commands together, and the handling of their errors."""

from __future__ import annotations

import logging
import os
import sys
from typing import NoReturn

import click

from py_ort.cli.advice import Formatter, in_flags
from py_ort.cli.bench import bench
from py_ort.cli.browsers import browsers
from py_ort.cli.cache import cache
from py_ort.cli.check import check
from py_ort.cli.compare import compare
from py_ort.cli.compile_server import compile_server
from py_ort.cli.conformance import conformance
from py_ort.cli.export import export
from py_ort.cli.kernel import kernel
from py_ort.cli.passes import passes
from py_ort.cli.placement import placement
from py_ort.cli.profile import profile
from py_ort.cli.run import run
from py_ort.cli.serve import serve
from py_ort.cli.tune import tune
from py_ort.exceptions import PyOrtError
from py_ort.suggestion import did_you_mean


class _Commands(click.Group):
    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command; the error for an unknown name suggests the nearest."""
        if self.get_command(ctx, args[0]) is None and not args[0].startswith("-"):
            ctx.fail(f"No such command {args[0]!r}{did_you_mean(args[0], self.commands)}.")
        return super().resolve_command(ctx, args)


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="py_ort")
@click.option("-v", "--verbose", count=True, help="Show what happens; twice: everything.")
def cli(verbose: int) -> None:
    """Run ONNX models in real browsers."""
    handler = logging.StreamHandler()
    handler.setFormatter(Formatter("%(relativeCreated)6d %(name)s: %(message)s" if verbose else "%(message)s"))
    logging.basicConfig(handlers=[handler])
    if verbose:
        logging.getLogger("py_ort").setLevel(logging.DEBUG if verbose > 1 else logging.INFO)


for command in (
    run,
    check,
    compare,
    bench,
    conformance,
    placement,
    passes,
    profile,
    kernel,
    tune,
    cache,
    browsers,
    export,
    serve,
    compile_server,
):
    cli.add_command(command)


def run_command_line() -> None:
    """Run the command line. An error ends it with one message: status 2 for wrong arguments, 1 for all others."""
    try:
        cli(prog_name="py-ort", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as e:
        _end(e.format_message(), e.exit_code)
    except click.UsageError as e:
        path = e.ctx.command_path if e.ctx else "py-ort"
        _end(f"{path}: {e.format_message()} ({path} --help)", e.exit_code)
    except click.ClickException as e:
        _end(f"py-ort: {e.format_message()}", e.exit_code)
    except click.exceptions.Exit as e:
        sys.exit(e.exit_code)
    except click.Abort:
        raise KeyboardInterrupt from None
    except PyOrtError as e:
        if e.stack and logging.getLogger("py_ort").isEnabledFor(logging.INFO):
            click.echo(e.stack, err=True)
        _end(f"py-ort: {type(e).__name__}: {in_flags(str(e))}", 1)
    except BrokenPipeError:  # the reader of our output has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as e:
        _end(f"py-ort: {e.filename or 'output'}: {e.strerror or e}", 1)
    except Exception as e:
        logging.getLogger("py_ort").info("where it happened:", exc_info=e)
        _end(f"py-ort: {type(e).__name__}: {e}. This is a bug of py_ort: please report it, with what -v shows", 1)


def _end(message: str, status: int) -> NoReturn:
    click.echo(message, err=True)
    sys.exit(status)
