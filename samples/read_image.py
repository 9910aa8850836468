"""Read the text of an image with RapidOCR, its code unmodified, in a browser: the main job (`make run`).

    python samples/read_image.py [--image FILE] [--provider webgpu|wasm] [--browser B] [--drawn FILE.png]

RapidOCR (pip: rapidocr-onnxruntime) finds lines of text, turns them upright and reads them with three PP-OCRv4 models
that it runs through onnxruntime. Here py_ort stands in for onnxruntime, so the models run in headless Chromium.
What was read is drawn beside the picture, too.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import numpy as np
from draw_lines import Line, draw_lines
from rich.console import Console
from rich.table import Table
from rich.text import Text

import py_ort
from py_ort.browser.browser_options import LAUNCHERS, WEBGPU, BrowserOptions, has_gpu
from py_ort.cli.common import progress

if TYPE_CHECKING:
    from py_ort.compat import Installed

MODELS = ("detection", "classification", "recognition")


@click.command()
@click.option(
    "--image",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    default=Path(__file__).with_name("sample.png"),
    show_default="samples/sample.png",
    help="The picture to read.",
)
@click.option("--provider", default="webgpu", show_default=True, help="webgpu or wasm.")
@click.option("--browser", default=None, help="As for py_ort.InferenceSession.")
@click.option("--launcher", type=click.Choice(LAUNCHERS), default=None)
@click.option("--webgpu", type=click.Choice(WEBGPU), default=None, help="Default: a GPU's, else software.")
@click.option("--side", type=int, default=None, help="Shrink the picture to this size for finding lines.")
@click.option(
    "--drawn",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE.png",
    help="Where to write the picture with what was read. Default: build/read/ and the picture's name.",
)
def main(
    image: Path,
    provider: str,
    browser: str | None,
    launcher: str | None,
    webgpu: str | None,
    side: int | None,
    drawn: Path | None,
) -> None:
    """Read the text of an image in a browser."""
    began, console = time.perf_counter(), Console(highlight=False)
    given = {"browser": browser, "launcher": launcher, "webgpu": webgpu}
    options = BrowserOptions(**{key: value for key, value in given.items() if value})  # type: ignore[arg-type]
    # A CPU that plays GPU takes seconds for a big picture.
    side = side or (960 if provider in ("wasm", "cpu") or has_gpu() else 640)
    with py_ort.install_as_onnxruntime([provider], browser=options) as installed:
        with progress() as report:
            report("starting the browser, compiling three models", 0, 0)
            engine = _rapidocr(side)
            report(f"reading {image.name}: the first time, shaders are compiled", 0, 0)
            lines = _read(engine, image)
            report("reading it once more, for the steady time", 0, 0)
            again = _read(engine, image)
        drawn = drawn or Path("build/read", f"{image.stem}.png")
        drawn.parent.mkdir(parents=True, exist_ok=True)
        draw_lines(engine.load_img(str(image))[..., ::-1], lines).save(drawn, optimize=True)
        _print(console, image, drawn, lines, installed)
    if [line.text for line in lines] != [line.text for line in again]:
        raise click.ClickException("the second reading differs from the first")
    console.print(f"\n{time.perf_counter() - began:.1f} s in all")


def _rapidocr(side: int) -> Any:
    from rapidocr_onnxruntime import RapidOCR

    logging.getLogger("RapidOCR").setLevel(logging.WARNING)
    return RapidOCR(det_limit_type="max", det_limit_side_len=side)


def _read(engine: Any, image: Path) -> list[Line]:
    found, _ = engine(str(image))
    return [Line(text, float(score), np.array(box, float)) for box, text, score in found or []]


def _print(console: Console, image: Path, drawn: Path, lines: list[Line], installed: Installed) -> None:
    table = Table("line", "score", box=None, header_style="bold", pad_edge=False)
    for line in lines:
        table.add_row(Text(line.text), f"{line.score:.3f}")
    console.print(table if lines else Text(f"no text found in {image}"))
    first = installed.sessions[0]
    console.print(f"\nimage    {image}", soft_wrap=True, markup=False)
    console.print(f"drawn    {drawn}", soft_wrap=True, markup=False)
    console.print(f"browser  {first.browser}", soft_wrap=True)
    console.print(f"adapter  {first.adapter or 'not used'}\n", soft_wrap=True)
    providers = list(dict.fromkeys(name for session in installed.sessions for name in session.placement().counts()))
    table = Table("model", box=None, header_style="bold", pad_edge=False)
    for heading in (*(f"nodes on {name}" for name in providers), "create", "first run", "steady run"):
        table.add_column(heading, justify="right")
    for name, session in zip(MODELS, installed.sessions, strict=True):
        counts, stats = session.placement().counts(), session.stats()
        times = (stats["create_ms"], stats["first_run_ms"], stats["last_run"]["total_ms"])
        table.add_row(name, *(str(counts.get(p, 0)) for p in providers), *(f"{ms:,.0f} ms" for ms in times))
    console.print(table)


if __name__ == "__main__":
    try:
        main(standalone_mode=False)
    except click.ClickException as e:
        e.show()
        sys.exit(e.exit_code)
    except py_ort.PyOrtError as e:
        sys.exit(f"{type(e).__name__}: {e}")
