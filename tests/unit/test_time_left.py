"""The remaining time that a command shows."""

import pytest

from py_ort.cli import common


@pytest.fixture
def left(monkeypatch):
    """Report the number of finished steps at a time."""
    clock = [0.0]
    monkeypatch.setattr(common.time, "monotonic", lambda: clock[0])
    counted = common._TimeLeft()

    def after(seconds: float, done: int, total: int = 35) -> str:
        clock[0] = seconds
        return counted.after(done, total)

    return after


def test_the_first_step_is_left_out(left):
    assert left(0, 0) == left(300, 1) == left(301, 2) == ""  # results already compiled in the first period are ignored
    assert left(304, 3) == "about 1:04 left"
    assert left(366, 34) == ""


def test_hours(left):
    assert left(0, 0, 20000) == left(1, 1, 20000) == ""
    assert left(11, 11, 20000) == "about 5:33:09 left"


def test_another_round_begins_anew(left):
    assert left(0, 0) == left(10, 1) == ""
    assert left(20, 2) == "about 5:30 left"
    assert left(21, 0, 40) == ""
