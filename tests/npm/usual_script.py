"""A user's usual script with the npm package, in a page or a worker, and its results.

The script makes two sessions, runs one and generates with the other, and reports the results and the console's messages
to the site. `ort` is the API.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from language_models import language_model, native_greedy
from static_site import StaticSite, browsing

DECODER = language_model("growing")
RUN = """
const tell = (body) => fetch(`${base}told`, { method: 'POST', body: JSON.stringify(body) });
const said = [];
for (const method of ['warn', 'error']) console[method] = (...words) => said.push(words.join(' '));
addEventListener('error', ({ message }) => tell({ error: message }));
async function run(ort, executionProviders) {
  const session = await ort.InferenceSession.create(`${base}add.pyort`, { executionProviders });
  const x = new ort.Tensor('float32', [1, 2, 3], [1, 3]);
  const { y } = await session.run({ x, scale: new ort.Tensor('float32', [10, 20, 30]) });
  const { executionProviders: providers } = session;
  const decoder = await ort.InferenceSession.create(`${base}decoder.pyort`, { executionProviders: ['wasm'] });
  const tokens = await decoder.generate([3, 1, 4], { maxNewTokens: 4 }).result;
  await tell({ y: [...y.data], tokens, providers, said, isolated: self.crossOriginIsolated });
}
const start = (ort, ...providers) => run(ort, providers).catch((error) => tell({ error: error.message, said }));
"""
PAGE = "const base = new URL('/', location.href);" + RUN


def page(script: str, before: str = "", kind: str = "module") -> str:
    return f'<!doctype html><meta charset="utf-8"><title>Test</title>{before}<script type="{kind}">{script}</script>\n'


def visit(site: StaticSite, path: str = "/") -> dict[str, Any]:
    with browsing("chromium", f"{site.origin}{path}"):
        return checked(site.told())


def checked(told: Mapping[str, Any]) -> dict[str, Any]:
    """Return it, if the results are right and the console is empty."""
    assert told.get("y") == [11, 22, 33] and told["said"] == [], told
    assert told["tokens"] == native_greedy(DECODER, [3, 1, 4], 4)
    return dict(told)
