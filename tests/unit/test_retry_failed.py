"""`--retry-failed`, by which continuous integration distinguishes flaky tests from failing ones."""

from __future__ import annotations

from pathlib import Path

import pytest
import retry_failed

TESTS = """
    import pathlib
    import pytest

    def runs_of(name):
        file = pathlib.Path(name)
        file.write_text((file.read_text() if file.exists() else "") + "x")
        return len(file.read_text())

    def test_passes():
        pass

    @pytest.mark.parametrize("name", ["a b[c]", "d"])
    def test_now_and_then(name):
        assert runs_of(name) == 2

    @pytest.fixture
    def leaves():
        yield
        assert runs_of("end") == 2

    def test_ends_badly_once(leaves):
        pass
"""
ALWAYS = "\n    def test_fails():\n        assert False\n"


@pytest.fixture
def project(pytester):
    pytester.makepyprojecttoml(f"[tool.pytest.ini_options]\npythonpath = ['{Path(retry_failed.__file__).parent}']")
    pytester.makeconftest("pytest_plugins = ['retry_failed']")
    return pytester


@pytest.mark.parametrize("jobs", [["-p", "no:xdist"], ["-n", "2"]], ids=["one process", "two"])
def test_what_passes_alone_is_listed(project, jobs):
    project.makepyfile(test_some=TESTS)
    result = project.runpytest_subprocess("--retry-failed", *jobs)
    assert result.ret == pytest.ExitCode.OK
    for name in ("test_now_and_then[a b[c]]", "test_now_and_then[d]", "test_ends_badly_once"):
        assert f"flaky: test_some.py::{name}" in result.outlines
    assert "2 passed, 3 flaky" in result.outlines[-1]


def test_what_fails_twice_fails(project):
    project.makepyfile(test_some=TESTS + ALWAYS)
    result = project.runpytest_subprocess("--retry-failed", "-p", "no:xdist")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert "1 failed" in result.outlines[-1] and "3 flaky" in result.outlines[-1]


@pytest.mark.parametrize("module", [TESTS, "import nothing_of_this_name"], ids=["without the option", "not collected"])
def test_nothing_else_is_run_again(project, module):
    project.makepyfile(test_some=module)
    retry = [] if module is TESTS else ["--retry-failed"]
    result = project.runpytest_subprocess(*retry, "-p", "no:xdist")
    assert result.ret == (pytest.ExitCode.INTERRUPTED if retry else pytest.ExitCode.TESTS_FAILED)
    assert "flaky" not in result.stdout.str()
