"""Messages of the page and of the core in Python's logging, at the levels of their sessions."""

from __future__ import annotations

import logging
from collections.abc import Callable

import numpy as np
import pytest
from onnx import TensorProto, helper

from py_ort import BrowserOptions, InferenceSession, SessionOptions

pytestmark = pytest.mark.browser


def model() -> bytes:
    node = helper.make_node("Relu", ["x"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [2, 3]) for name in "xy")
    graph = helper.make_graph([node], "logged", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8).SerializeToString()


def lines(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [f"{r.name} {r.levelname}: {r.getMessage()}" for r in caplog.records if r.name.startswith("py_ort.page")]


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
def test_levels(
    severity: int,
    level: int,
    shown: bool,
    new_session: Callable[..., InferenceSession],
    caplog: pytest.LogCaptureFixture,
) -> None:
    options = SessionOptions()
    options.log_severity_level, options.logid = severity, "mine"
    logger = logging.getLogger("py_ort")
    before = logger.level
    logger.setLevel(level)  # not the handler's level, as caplog.at_level would set it
    try:
        session = new_session(model(), options, providers=["webgpu"], browser=OWN)
        session.run(None, {"x": np.ones((2, 3), np.float32)})
    finally:
        logger.setLevel(before)
    found = [line for line in lines(caplog) if "loaded logged in" in line]
    assert len(found) == shown
    if shown:
        prefix = "mine: " if severity >= 0 else ""
        assert found[0].startswith(f"py_ort.page.session INFO: {prefix}loaded logged in")
    session.close()
