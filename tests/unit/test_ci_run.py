"""The run of continuous integration (.ci/run): checks and tests."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / ".ci/run"
CLOSING = "== 3 passed in 1s =="


@pytest.mark.parametrize("check", [0, 1])
@pytest.mark.parametrize("test", [0, 1])
def test_tests_run_and_are_reported_last_even_if_a_check_fails(tmp_path, check, test):
    recipes = {"build": "@true", "check": f"@echo checks; exit {check}", "test": f"@echo '{CLOSING}'; exit {test}"}
    (tmp_path / "Makefile").write_text("".join(f"{name}:\n\t{recipe}\n" for name, recipe in recipes.items()))
    (tmp_path / ".ci").mkdir()
    shutil.copy(RUN, tmp_path / ".ci")
    outside = {name: value for name, value in os.environ.items() if not name.startswith("MAKE")}  # as `make test` sets
    done = subprocess.run([tmp_path / ".ci/run"], env=outside, capture_output=True, text=True)
    assert done.stdout.splitlines() == ["checks", CLOSING]
    assert (done.returncode == 0) == (check == test == 0)
