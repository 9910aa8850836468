"""A real Karma: our launcher, framework and reporter, by a karma.conf.js."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from karma_cases import ADD

from py_ort.exceptions import EngineError
from py_ort.runtime.peer.npm import npm_package

ROOT = Path(__file__).parents[2]
VERSION = "6.4.4"
CONF = """
module.exports = (config) => config.set({
  basePath: %(base)s,
  plugins: [require(%(plugin)s)],
  frameworks: ['py_ort'],
  reporters: ['py_ort'],
  customLaunchers: { here: { base: 'py_ort', browser: 'chromium', webgpu: 'software' } },
  browsers: ['here'],
  py_ort: { python: %(python)s, args: %(args)s },
  singleRun: true,
});
"""


@pytest.fixture(scope="module")
def karma():
    try:
        return npm_package("karma", VERSION) / "node_modules/karma/bin/karma"
    except EngineError as e:
        pytest.skip(str(e))


@pytest.fixture
def run(karma, tmp_path):
    """Run Karma on an operator's cases with this output; return its status and output."""

    def once(output: str, *backends: str) -> tuple[int, str]:
        (tmp_path / "ops").mkdir(exist_ok=True)
        (tmp_path / "ops/add.jsonc").write_text(ADD % output)
        args = ["op", "add", f"-b={','.join(backends)}", f"--test-data={tmp_path}"]
        fields = {"base": tmp_path, "plugin": ROOT / "karma_compat/karma/plugin.cjs", "python": sys.executable}
        quoted = {name: repr(str(value)) for name, value in fields.items()}
        (tmp_path / "karma.conf.js").write_text(CONF % {**quoted, "args": args})
        command = ["node", karma, "start", tmp_path / "karma.conf.js"]
        env = {**os.environ, "PYTHONPATH": str(ROOT)}
        done = subprocess.run(command, capture_output=True, text=True, timeout=200, env=env, cwd=tmp_path, check=False)
        return done.returncode, done.stdout + done.stderr

    return once


def test_what_passes(run):
    status, said = run("[4, 6]", "webgpu", "wasm")
    assert status == 0 and "SUMMARY:\n✔ 2 tests completed\n" in said, said
    assert "  webgpu #OpTest - add.jsonc\n    ✔ " in said and "FAILED" not in said


def test_what_fails(run):
    status, said = run("[4, 7]", "wasm")
    assert status == 1 and "SUMMARY:\n✔ 0 tests completed\n✖ 1 test failed\n\nFAILED TESTS:\n  wasm #OpTest" in said, (
        said
    )
    assert re.search(r"    ✖ .*\n      wrong output", said.partition("FAILED TESTS:")[2]), said
