"""Orders of calls that choose devices, adapters and providers: they give what they give on onnxruntime-web.

A page has its settings for good, so each case is in a frame of its own.
"""

import json
import re
import shutil
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from either_engine import lay_out_engine
from static_site import StaticSite, browsing

HERE = Path(__file__).resolve().parent
CASES = re.findall(r"^  '(.+?)': ", (HERE / "order_of_calls.mjs").read_text(), re.MULTILINE)
PLAIN, FED = [11, 22, 33], [14, 25, 36]
#: Orders that do more here than on onnxruntime-web, whose sessions of WebGPU take no device that is set, and tell none
#: that is an option.
MORE = {
    "a feed on the device of a session that was released": [FED, True],
    "a device that is set": [True, PLAIN, FED],
    "a device that is set, and a feed before the session": FED,
    "a device as an option": [True, PLAIN, FED],
    "a device as an option, then a session without": [PLAIN, PLAIN, FED, FED],
    "providers: webgpu twice": PLAIN,
}
FRAME = '<!doctype html><script type="module" src="order_of_calls.mjs"></script>\n'
PAGE = """<!doctype html>
<meta charset="utf-8">
<script type="module">
for (const name of %s) {
  const frame = document.createElement('iframe');
  const query = new URLSearchParams(location.search);
  query.set('case', name);
  frame.src = `frame.html?${query}`;
  const told = new Promise((resolve) => addEventListener('message', ({ data }) => resolve(data), { once: true }));
  document.body.append(frame);
  const { answer } = await told;
  frame.remove();
  await fetch('/told', { method: 'POST', body: JSON.stringify([name, answer]) });
}
</script>
<body></body>
"""


def answers_of(folder: Path, engine: str, more: str = "") -> dict[str, Any]:
    """Return what came of each case."""
    shutil.copy(HERE / "order_of_calls.mjs", folder)
    (folder / "frame.html").write_text(FRAME)
    (folder / "index.html").write_text(PAGE % json.dumps(CASES))
    query = lay_out_engine(folder, engine)
    with closing(StaticSite(folder)) as site, browsing("chromium", f"{site.origin}/index.html?{query}{more}"):
        return dict(site.told() for _ in CASES)


@pytest.fixture(scope="module")
def of_peer(tmp_path_factory):
    return answers_of(tmp_path_factory.mktemp("peer"), "onnxruntime-web")


@pytest.fixture(scope="module", params=["worker", "page"])
def of_py_ort(request, tmp_path_factory):
    more = "&here" if request.param == "page" else ""
    return answers_of(tmp_path_factory.mktemp(request.param), "py_ort", more)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("case", CASES)
def test_order_of_calls(of_py_ort, of_peer, case):
    assert of_py_ort[case] == MORE.get(case, of_peer[case])
    assert (of_py_ort[case] != of_peer[case]) == (case in MORE)
