"""The command `py-ort`. Each command is a file; they use nothing but the public API."""

from __future__ import annotations

import logging
import sys

import click

from py_ort.cli.bench import bench
from py_ort.cli.browsers import browsers
from py_ort.cli.cache import cache
from py_ort.cli.conformance import conformance
from py_ort.cli.kernel import kernel
from py_ort.cli.passes import passes
from py_ort.cli.placement import placement
from py_ort.cli.profile import profile
from py_ort.cli.run import run
from py_ort.cli.serve import serve
from py_ort.exceptions import PyOrtError


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="py_ort")
@click.option("-v", "--verbose", count=True, help="Show what happens; twice: everything.")
def cli(verbose: int) -> None:
    """Run ONNX models in real browsers."""
    if verbose:
        logging.basicConfig(format="%(relativeCreated)6d %(name)s: %(message)s", stream=sys.stderr)
        logging.getLogger("py_ort").setLevel(logging.DEBUG if verbose > 1 else logging.INFO)


for command in (run, bench, conformance, placement, passes, profile, kernel, cache, browsers, serve):
    cli.add_command(command)


def main() -> None:
    """Run the command line; errors of py_ort end it with their message and status 1."""
    try:
        cli(standalone_mode=False)
    except click.ClickException as e:
        e.show()
        sys.exit(e.exit_code)
    except click.exceptions.Exit as e:
        sys.exit(e.exit_code)
    except (click.Abort, KeyboardInterrupt):
        sys.exit(130)
    except PyOrtError as e:
        click.echo(f"py-ort: {type(e).__name__}: {e}", err=True)
        if e.stack and logging.getLogger("py_ort").isEnabledFor(logging.INFO):
            click.echo(e.stack, err=True)
        sys.exit(1)
