"""py_ort.mjs in a page without Python: tensors on the GPU in and out, as onnxruntime-web has them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from javascript_site import lay_out

pytestmark = pytest.mark.browser
HERE = Path(__file__).resolve().parent
CASES = re.findall(r"""^  ['"](.+)['"]: async""", (HERE / "javascript_api.mjs").read_text(), re.MULTILINE)


@pytest.fixture(scope="module")
def javascript() -> Iterator[Any]:
    """Runs a case of javascript_api.mjs."""
    from plain_page import PlainPage

    opened = PlainPage()
    page = opened._page
    lay_out(page.folder)
    run = """async ([name, proxy]) => {
        const { cases, env } = await import('./javascript_api.mjs');
        env.wasm.proxy = proxy;
        await cases[name]();
    }"""
    yield lambda case, proxy: page.evaluate(run, [case, proxy])
    opened.close()


@pytest.mark.parametrize("proxy", [None, False], ids=["worker", "page"])
@pytest.mark.parametrize("case", CASES)
def test_javascript(javascript: Any, case: str, proxy: bool | None) -> None:
    javascript(case, proxy)
