"""Lines about steps that take long, and the warning of WebGPU in software."""

from __future__ import annotations

import io
import logging
import threading

import pytest

from py_ort import BrowserOptions
from py_ort.log import SessionLog
from py_ort.runtime import devices, slow_steps
from py_ort.runtime.slow_steps import SlowSteps


class Terminal(io.StringIO):
    """A stderr that may be a terminal, with a wait for what is written."""

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self.terminal, self.written = terminal, threading.Condition()

    def isatty(self) -> bool:
        return self.terminal

    def write(self, text: str) -> int:
        with self.written:
            self.written.notify()
            return super().write(text)

    def shows(self, text: str, seconds: float = 60) -> bool:
        with self.written:
            return self.written.wait_for(lambda: text in self.getvalue(), seconds)


@pytest.fixture
def impatient(monkeypatch):
    monkeypatch.setattr(slow_steps, "_PATIENCE", 0.0)
    monkeypatch.setattr(slow_steps, "_TICK", 0.005)


def test_a_slow_step_has_a_line_on_a_terminal_that_counts(impatient, monkeypatch):
    monkeypatch.setattr("sys.stderr", stderr := Terminal(True))
    with SlowSteps(SessionLog()) as steps:
        steps("reading the model", 0, 0)
        assert stderr.shows("py_ort: reading the model …")
        for done in (9, 10):
            steps("compiling shaders", done, 20)
            assert stderr.shows(f"py_ort: compiling shaders {done} of 20 …")
    counted = "py_ort: compiling shaders 9 of 20 …\rpy_ort: compiling shaders 10 of 20 …\n"
    assert stderr.getvalue() == f"py_ort: reading the model …\n{counted}"


def test_elsewhere_it_is_a_log_message(impatient, monkeypatch):
    monkeypatch.setattr("sys.stderr", Terminal(False))
    told, texts = threading.Event(), []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            texts.append(record.getMessage())
            told.set()

    handler, logger = Handler(), logging.getLogger("py_ort")
    logger.addHandler(handler)
    try:
        with SlowSteps(SessionLog(1)) as steps:
            steps("compiling shaders", 3, 26)
            assert told.wait(60)
    finally:
        logger.removeHandler(handler)
    assert texts == ["compiling shaders 3 of 26 takes more than 0 s"]


def test_quick_steps_have_none(monkeypatch):
    monkeypatch.setattr("sys.stderr", stderr := Terminal(True))
    monkeypatch.setattr(slow_steps, "_PATIENCE", 3600.0)
    monkeypatch.setattr(slow_steps, "_TICK", 0.001)
    with SlowSteps(SessionLog()) as steps:
        steps("reading the model", 0, 0)
        assert not stderr.shows("py_ort", 0.05)
    assert stderr.getvalue() == ""


def test_software_is_told_once(monkeypatch, caplog):
    monkeypatch.setattr(devices, "_warned", set())
    monkeypatch.setattr("py_ort.browser.browser_options.has_gpu", lambda: False)
    for _ in range(2):
        devices.warn_of_software("webgpu", BrowserOptions(webgpu="auto"), "SwiftShader", SessionLog())
    assert caplog.messages == ["webgpu runs in software here (SwiftShader): results are right, times are not a GPU's"]
    devices.warn_of_software("webgpu", BrowserOptions(webgpu="software"), "lavapipe", SessionLog())
    assert len(caplog.messages) == 1
