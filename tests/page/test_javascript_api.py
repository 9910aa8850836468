"""py_ort.mjs in a page without Python: tensors on the GPU in and out, as in onnxruntime-web."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from javascript_site import case_names, lay_out

pytestmark = pytest.mark.browser


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
@pytest.mark.parametrize("case", case_names())
def test_javascript(javascript: Any, case: str, proxy: bool | None) -> None:
    javascript(case, proxy)
