"""The page that Python opens: a browser's requests until it is ready, and its errors."""

from urllib.parse import urlsplit

import numpy as np
import pytest
import small_models

from py_ort import BrowserOptions
from py_ort.browser import http_server
from py_ort.browser.loop import loop_thread
from py_ort.exceptions import PyOrtError
from py_ort.schema.gen.GetStats import GetStatsT

X = np.arange(6, dtype=np.float32).reshape(2, 3)
FEEDS = {"x": X, "scale": np.ones(3, np.float32)}


def test_the_worker_is_the_second_script(new_session, monkeypatch):
    """Each script that waits for another costs a round trip to a distant browser."""
    asked: list[str] = []
    answer = http_server._Handler.do_GET

    def do_get(handler: http_server._Handler) -> None:
        asked.append(urlsplit(handler.path).path)
        answer(handler)

    monkeypatch.setattr(http_server._Handler, "do_GET", do_get)
    new_session(small_models.add(), providers=["wasm"], browser=BrowserOptions(webgpu="off", instance=77))
    scripts = [path for path in asked if path.endswith((".html", ".js", ".mjs"))]
    assert scripts[:2] == ["/index.html", "/worker.js"], asked


def test_a_worker_that_fails_to_load_is_loaded_again(new_session, monkeypatch):
    """As when a network changes while its script is being fetched."""
    answer, failed = http_server._Handler.do_GET, []

    def do_get(handler: http_server._Handler) -> None:
        if urlsplit(handler.path).path == "/worker.js" and not failed:
            failed.append(handler.path)
            handler.send_error(502)
        else:
            answer(handler)

    monkeypatch.setattr(http_server._Handler, "do_GET", do_get)
    session = new_session(small_models.add(), providers=["wasm"], browser=BrowserOptions(webgpu="off", instance=78))
    assert failed and session.run(None, FEEDS)[0].tolist() == (X + 1).tolist()


def test_stacks_name_functions(new_session):
    session = new_session(small_models.add(), providers=["wasm"])
    body = GetStatsT()
    body.session = 999
    with pytest.raises(PyOrtError, match="no session 999") as e:
        loop_thread().call(session._opened.runtime.page.request(body))
    assert "Requests.session" in e.value.stack and "Requests.stats" in e.value.stack, e.value.stack
