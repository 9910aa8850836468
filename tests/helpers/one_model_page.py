"""A page that runs one exported model by the JavaScript API, and tells its outputs or the error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
from static_site import StaticSite, browsing

_PAGE = """<!doctype html><meta charset="utf-8"><title>One model</title>
<script type="module">
const asked = Object.fromEntries(new URL(location).searchParams);
const tell = (body) => fetch('/told', { method: 'POST', body: JSON.stringify(body) });
try {
  const { env, InferenceSession, Tensor } = await import(asked.runtime);
  env.wasm.proxy = asked.thread !== 'page';
  const session = await InferenceSession.create(asked.model, { executionProviders: [asked.provider] });
  const feeds = JSON.parse(asked.feeds).map(([name, data, dims]) => [name, new Tensor('float32', data, dims)]);
  const outputs = await session.run(Object.fromEntries(feeds));
  await tell({ outputs: Object.fromEntries(Object.entries(outputs).map(([name, { data }]) => [name, [...data]])) });
} catch (error) {
  await tell({ error: error.message });
}
</script>
"""


def run_in_page(
    site: StaticSite,
    model: str,
    feeds: dict[str, np.ndarray],
    provider: str,
    *,
    runtime: str = "./py_ort.mjs",
    thread: str = "worker",
) -> dict[str, Any]:
    """Return what the page told: the elements of `outputs` by name, or an `error`."""
    Path(site.folder, "one_model.html").write_text(_PAGE)
    given = json.dumps([(name, value.ravel().tolist(), value.shape) for name, value in feeds.items()])
    query = {"model": model, "feeds": given, "provider": provider, "runtime": runtime, "thread": thread}
    with browsing("chromium", f"{site.origin}/one_model.html?{urlencode(query)}", webgpu="software"):
        told: dict[str, Any] = site.told()
    return told
