"""The program in README.md runs, and prints the result in its comment."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROGRAM = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)[0]


def test_the_first_program(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(ROOT)
    names: dict = {}
    exec(compile(PROGRAM, "README.md", "exec"), names)
    with names["session"]:
        assert capsys.readouterr().out.strip() == PROGRAM.rpartition("# ")[2].strip()
