"""Damaged `.pyort` files in a page, with repaired checksums: a seed selects a header and a plan of each model."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from javascript_site import lay_out_mutated

from py_ort.exporting.runtime_files import copy_runtime

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "web/test"))

#: The part that is damaged, and its model; see tests/page/javascript_damaged_files.mjs.
DAMAGED = (("headers", "integer_products"), ("plans", "integer_products"), ("plans", "windows"))
_AT_ONCE = 25
_SCRIPT = """async ([kind, seeds, model, provider]) => {
    const { mutants } = await import('./javascript_damaged_files.mjs');
    return mutants(kind, seeds, model, [provider]);
}"""


def faults(provider: str, seeds: Iterator[int], told: set[str], counts: Counter[str]) -> Iterator[str]:
    """Yield a text on each new fault: an undeclared error, a file that never ends, another session's numbers changed.

    Args:
        provider: Where the models run.
        seeds: Seeds of the damages.
        told: Faults that are known already; new ones are added.
        counts: Counts of files that ran, were refused, and showed a fault, to be increased.
    """
    page = _opened()
    try:
        while some := list(islice(seeds, _AT_ONCE)):
            for kind, model in DAMAGED:
                left = some
                while left:
                    found: dict[str, Any] = page.evaluate(_SCRIPT, [kind, left, model, provider])
                    counts.update(ok=found["ran"], refused=found["refused"], faults=len(found["faults"]))
                    left = []
                    for fault in found["faults"]:
                        if fault["over"]:  # the page is unusable now
                            left = some[some.index(fault["seed"]) + 1 :]
                            page.close()
                            page = _opened()
                        if (mark := f"{kind} {fault['text'][:60]}") not in told:
                            told.add(mark)
                            yield f"files {fault['seed']}, {kind} of {model} on {provider}: {fault['text']}"
    finally:
        page.close()


def _opened() -> Any:
    from browser_page import BrowserPage

    page = BrowserPage(["--page", "session_page"], "session")
    copy_runtime(page.folder)
    for name in ("damaged_files", "checks", "parts"):
        file = ROOT / f"tests/page/javascript_{name}.mjs"
        (page.folder / file.name).write_bytes(file.read_bytes())
    lay_out_mutated(page.folder)
    return page
