"""Sessions' work is in the browser's own performance timeline, which DevTools and Perfetto show."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import websockets.sync.client
from devtools import chromium_with_devtools
from session_settings import settings
from text_form import parse

from py_ort import InferenceSession, SessionOptions
from py_ort.browser.browser_options import BrowserOptions

#: `det` on the CPU, between two nodes on the GPU.
MODEL = "g (float[2, 2] x) => (float y) { a = Exp(x)  b = Det(a)  y = Neg(b) }"
PROVIDERS = [("webgpu", {"forceCpuNodeNames": "det"}), "wasm"]


@pytest.fixture(scope="module")
def devtools(tmp_path_factory):
    """The websocket of a browser's DevTools."""
    with chromium_with_devtools(tmp_path_factory.mktemp("profile")) as (websocket, _):
        yield websocket


def traced(devtools: str, work: Callable[[], None]) -> dict[str, dict[str, Any]]:
    """Return the measures that the browser's tracing records meanwhile: name -> details for DevTools."""
    with websockets.sync.client.connect(devtools, max_size=None) as connection:

        def ask(method: str, **params: Any) -> None:
            connection.send(json.dumps({"id": 1, "method": method, "params": params}))

        def until(arrived: Callable[[dict[str, Any]], bool]) -> list[dict[str, Any]]:
            events: list[dict[str, Any]] = []
            while True:
                message = json.loads(connection.recv(timeout=60))
                events += message.get("params", {}).get("value", []) if "method" in message else []
                if arrived(message):
                    return events

        ask("Tracing.start", traceConfig={"includedCategories": ["blink.user_timing"]}, transferMode="ReportEvents")
        until(lambda message: message.get("id") == 1)
        work()
        ask("Tracing.end")
        events = until(lambda message: message.get("method") == "Tracing.tracingComplete")
    begun = [e for e in events if e.get("ph") == "b" and "blink.user_timing" in e["cat"]]
    return {e["name"]: json.loads(e["args"]["detail"])["devtools"] for e in begun}


def measures(devtools: str, options: SessionOptions) -> dict[str, dict[str, Any]]:
    """Return the measures of a session and two runs."""
    model = parse(MODEL, opset=18)
    for node, name in zip(model.graph.node, ("exp", "det", "neg"), strict=True):
        node.name = name
    browser = BrowserOptions(browser=f"cdp:http://{devtools.split('/')[2]}", idle_timeout=0)

    def work() -> None:
        with InferenceSession(model.SerializeToString(), options, providers=PROVIDERS, browser=browser) as session:
            for factor in (1, 2):
                session.run(None, {"x": np.eye(2, dtype=np.float32) * factor})
            assert ("timeline" in session.stats()["last_run"]) == options.enable_profiling

    return traced(devtools, work)


TRACKS = {
    "fetch the weights": "worker",
    "make the kernels": "worker",
    "run": "runs",
    "walk the plan": "worker",
    "exp": "nodes",
    "det": "nodes",
    "upload": "worker",
    "encode and submit": "worker",
    "GPU work and download": "GPU",
}


def test_by_the_environment(devtools, monkeypatch):
    monkeypatch.setenv("PY_ORT_TRACE", "1")
    found = measures(devtools, SessionOptions())
    assert {name: found[name]["track"] for name in TRACKS} == TRACKS
    assert all(each["trackGroup"] == "py_ort" and each["dataType"] == "track-entry" for each in found.values())
    assert dict(found["det"]["properties"])["op_name"] == "Det"
    assert dict(found["run"]["properties"])["segments"] == "2"
    assert "kernels" not in {each["track"] for each in found.values()}, "dispatches are timed in profiles only"


def test_by_a_profile(devtools, tmp_path):
    found = measures(devtools, settings(tmp_path))
    assert {name: found[name]["track"] for name in TRACKS} == TRACKS
    kernels = {dict(each["properties"])["node"] for each in found.values() if each["track"] == "kernels"}
    assert kernels == {"exp", "neg"}


def test_by_default_there_is_none(devtools):
    assert measures(devtools, SessionOptions()) == {}
