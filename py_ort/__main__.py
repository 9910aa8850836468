"""`python -m py_ort SCRIPT`: somebody's program, unedited, with py_ort in onnxruntime's place."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path

import click

from py_ort.compat.at_start import VARIABLE, expect


@click.command(
    name="python -m py_ort", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
@click.option(
    "--providers",
    metavar="P,P",
    help="Providers of every session, e.g. webgpu,wasm. Default: those that SCRIPT asks for.",
)
@click.option("--browser", metavar="B", help="The browser, as for `py-ort run`.")
@click.option("-m", "as_module", is_flag=True, help="SCRIPT is the name of a module, as for `python -m`.")
@click.argument("script")
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def main(providers: str | None, browser: str | None, as_module: bool, script: str, arguments: tuple[str, ...]) -> None:
    """Run SCRIPT with its ARGUMENTS; `import onnxruntime` imports py_ort there, and in processes that it starts."""
    os.environ[VARIABLE] = providers or "1"
    if browser is not None:
        os.environ["PY_ORT_BROWSER"] = browser
    expect()
    sys.argv = [script, *arguments]
    if as_module:
        sys.path[0] = ""
        runpy.run_module(script, run_name="__main__", alter_sys=True)
        return
    if not Path(script).exists():
        raise click.BadParameter(f"there is no file {script}", param_hint="SCRIPT")
    sys.path[0] = str(Path(script).resolve().parent)
    runpy.run_path(script, run_name="__main__")


if __name__ == "__main__":
    main(prog_name="python -m py_ort")
