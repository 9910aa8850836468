"""Messages of the page and of the core in Python's logging, at the levels of their sessions."""

import logging

import numpy as np
import pytest
from session_settings import settings
from text_form import parse

from py_ort import BrowserOptions

MODEL = parse("logged (float[2,3] x) => (float[2,3] y) { y = Relu(x) }")
#: A page's lines are shown if one of its sessions requests them: only the test's own may be open here.
OWN = BrowserOptions(webgpu="software", env={"PY_ORT_TEST": "logging"}, idle_timeout=5)


@pytest.mark.parametrize(
    ("severity", "level", "shown"),
    [
        (-1, logging.INFO, True),
        (-1, logging.WARNING, False),
        (0, logging.ERROR, True),
        (1, logging.ERROR, True),
        (2, logging.DEBUG, False),
    ],
    ids=["the logger's, info", "the logger's, warning", "verbose", "info", "warning"],
)
def test_levels(severity, level, shown, new_session, caplog):
    options = settings(log_severity_level=severity, logid="mine")
    logging.getLogger("py_ort").setLevel(level)  # not the handler's level, as caplog.at_level would set it
    session = new_session(MODEL, options, providers=["webgpu"], browser=OWN)
    session.run(None, {"x": np.ones((2, 3), np.float32)})
    lines = [f"{r.name} {r.levelname}: {r.getMessage()}" for r in caplog.records if r.name.startswith("py_ort.page")]
    found = [line for line in lines if "loaded logged in" in line]
    assert len(found) == shown
    if shown:
        prefix = "mine: " if severity >= 0 else ""
        assert found[0].startswith(f"py_ort.page.session INFO: {prefix}loaded logged in")
    session.close()
