"""The pytest plugin, in a pytest of its own."""

import pytest
import small_models

MODULE = """
    import logging

    import numpy as np
    import pytest

    FEEDS = {"x": np.ones((1, 3), np.float32), "scale": np.ones(3, np.float32)}

    def test_add(ort_session, ort_target):
        session = ort_session("add.onnx")
        assert session.run(None, FEEDS)[0].tolist() == [[2, 2, 2]]
        assert session.placement().counts()[ort_target.provider] == 1

    @pytest.mark.parametrize("scale", [1, 2])
    def test_wrong(ort_session, scale):
        assert ort_session("add.onnx").run(None, FEEDS)[0].tolist() == [[scale + 1] * 3]

    def test_page_error(ort_page_errors):
        logging.getLogger("py_ort.page").error("out of memory")

    def test_neither():
        pass
"""


@pytest.fixture
def project(pytester):
    pytester.makepyfile(test_models=MODULE)
    (pytester.path / "add.onnx").write_bytes(small_models.add())
    return pytester


def run(project, *flags):
    return project.runpytest_subprocess("-p", "no:cacheprovider", "-v", *flags)


def test_both_providers(project):
    result = run(project, "--ort-webgpu", "software")
    result.assert_outcomes(passed=6, failed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["*test_add?chromium-webgpu? PASSED*", "*test_add?chromium-wasm? PASSED*", "*out of memory*"]
    )


def test_one_provider(project):
    result = run(project, "--ort-provider", "wasm", "-k", "add")
    result.assert_outcomes(passed=1, deselected=4)


def test_no_such_browser(project):
    result = run(project, "--ort-browser", "/no/such/browser", "-k", "add and wasm")
    result.assert_outcomes(failed=1, deselected=7)
    result.stdout.fnmatch_lines(["*BrowserNotFound*/no/such/browser*"])
