"""`pytest --retry-failed`: failed tests run once more at the end, alone, in a separate process.

A test that passes then is listed as flaky, and does not fail the run. A test that fails twice fails.
"""

from __future__ import annotations

import subprocess
import sys

import pytest

#: With more failures than this the code is broken, not the machine busy: nothing runs again.
_MOST = 40


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--retry-failed", action="store_true", help="run failed tests once more, alone")


@pytest.hookimpl(trylast=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, exitstatus: int, config: pytest.Config) -> None:
    """Run the failed tests again, after the reports of the failures, and before the closing line counts them."""
    if not config.getoption("retry_failed") or hasattr(config, "workerinput"):  # a worker of pytest-xdist sees a part
        return
    stats = terminalreporter.stats
    failed = [report for kind in ("failed", "error") for report in stats.get(kind, [])]
    tests = {report.nodeid: None for report in failed if isinstance(report, pytest.TestReport)}
    whole = all(report.nodeid in tests for report in failed)  # False if a file could not be collected
    if exitstatus != pytest.ExitCode.TESTS_FAILED or not tests or not whole:
        return
    if len(tests) > _MOST:
        terminalreporter.write_line(f"{len(tests)} tests failed: too many to run again")
        return
    passed = {test for test in tests if _passes(config, test)}
    for kind in ("failed", "error"):
        stats[kind] = [report for report in stats.get(kind, []) if report.nodeid not in passed]
        if not stats[kind]:
            del stats[kind]
    if passed:
        terminalreporter.section("passed when run once more, alone")
        for test in sorted(passed):
            terminalreporter.write_line(f"flaky: {test}")
        stats["flaky"] = [report for report in failed if report.nodeid in passed]
    if len(passed) == len(tests):
        terminalreporter._session.exitstatus = pytest.ExitCode.OK


def _passes(config: pytest.Config, test: str) -> bool:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "no:xdist", "-q", test]
    return subprocess.run(command, cwd=config.rootpath, check=False).returncode == 0
