"""`py_ort.export(…, page=True)`: a static page that runs the exported model."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from py_ort.compiler.load.model_files import replacing
from py_ort.compiler.package.format import Header
from py_ort.exceptions import PyOrtError
from py_ort.folders import ASSETS

#: The folder of the runtime's files, next to the page; web/build.mjs has it, too.
RUNTIME = "py_ort"
_SCRIPT = "model_page.js"
_MODULE = "py_ort.mjs"


def write_page(file: Path, minimal: bool = False) -> list[Path]:
    """Write `index.html`, its script, and the runtime's files in a folder of their own, beside an exported model.

    The page runs any model of the folder, and starts with this one. Any file server is sufficient; one that sends COOP
    and COEP enables threads.

    Args:
        file: The `.pyort` file.
        minimal: Write the kernels of the folder's models only, instead of all.

    Returns:
        The page's files, the page first.

    Raises:
        InvalidArgument: No minimal runtime can run a model of the folder.
        EngineError: Script or runtime were not built.
        OSError: The folder cannot be written.
    """
    from py_ort.compiler.package.read import Package
    from py_ort.exporting.minimal_runtime import copy_minimal_runtime
    from py_ort.exporting.runtime_files import copy_runtime, put
    from py_ort.pages.template import render_beside

    folder, packages = file.parent, {}
    for each in [file, *sorted(set(folder.glob("*.pyort")) - {file})]:
        try:
            packages[each.name] = Package(each)
        except PyOrtError:
            if each == file:
                raise
    models = [{"file": name, "shapes": first_shapes(package.header)} for name, package in packages.items()]
    runtime = copy_minimal_runtime(folder / RUNTIME, packages) if minimal else copy_runtime(folder / RUNTIME)
    script = put(folder / _SCRIPT, (ASSETS / _SCRIPT).read_bytes())
    index = folder / "index.html"
    text = render_beside(_SCRIPT, "model", file.stem, {"models": models}, preload=_imported(folder / RUNTIME))
    with replacing(index, 0o666) as out:
        out.write(text.encode())
    return [index, script, *runtime]


def _imported(runtime: Path) -> list[str]:
    """Return the script's imports, and theirs: a browser would request them one after the other."""
    text = (runtime / _MODULE).read_text(encoding="utf-8")
    modules = dict.fromkeys(re.findall(r'\bfrom ?"\./([\w.-]+\.mjs)"', text))
    return [f"{RUNTIME}/{name}" for name in (_MODULE, *modules)]


def first_shapes(header: Header) -> Mapping[str, Sequence[int]]:
    """Return the initial sizes: of a plan for single shapes, or else of random feeds."""
    from py_ort.testing.random_feeds import IMAGE_SIZES
    from py_ort.testing.random_sizes import RandomSizes

    known = next((plan.shapes for plan in header.plans if plan.shapes), {})
    sizes = RandomSizes(header.inputs, known, image_size=IMAGE_SIZES[0])
    return {arg.name: sizes.of(arg) for arg in header.inputs if arg.dims is not None or arg.name in known}
