"""The pytest plugin together with Playwright's: sessions in a test's own page, in its context, in its browser."""

import shutil
import sys
import textwrap
import zipfile
from contextlib import closing

import pytest
import small_models
from playwright_server import stand_in
from static_site import StaticSite

import py_ort

CONFTEST = """
    import pytest

    @pytest.fixture(scope="session")
    def browser_type_launch_args(browser_type_launch_args, ort_launch_args):
        return {**ort_launch_args, **browser_type_launch_args}
"""
MODULE = """
    import numpy as np
    import pytest

    FEEDS = {"x": np.ones((1, 3), np.float32), "scale": np.full(3, 2, np.float32)}

    @pytest.mark.ort(within="page")
    def test_page(page, ort_session, ort_target):
        page.goto("SITE/index.html")
        session = ort_session("add.onnx")
        assert session.run(None, FEEDS)[0].tolist() == [[3, 3, 3]]
        assert session.placement().counts()[ort_target.provider] == 1
        assert page.frames[1].url.startswith("http://127.0.0.1:") and page.title() == "mine"
        page.goto("SITE/index.html?again")
        assert ort_session("add.onnx").run(None, FEEDS)[0].tolist() == [[3, 3, 3]]

    @pytest.mark.ort(within="page", provider="wasm")
    def test_forbidden(page, ort_session):
        from py_ort.exceptions import BrowserError

        page.goto("SITE/closed.html")
        with pytest.raises(BrowserError, match="closed.html forbids frames .* frame-src.* within='context'"):
            ort_session("add.onnx")

    @pytest.mark.ort(within="page", provider="wasm")
    def test_of_another_network(page, ort_session):
        from py_ort.exceptions import BrowserError

        page.route("https://staging.example/", lambda route: route.fulfill(body="<h1>x</h1>", content_type="text/html"))
        page.goto("https://staging.example/")
        with pytest.raises(BrowserError, match="no frame of this machine opens in https://staging.example/"):
            ort_session("add.onnx")
        page.context.grant_permissions(["local-network-access"])
        page.reload()
        assert ort_session("add.onnx").run(None, FEEDS)[0].tolist() == [[3, 3, 3]]

    @pytest.mark.ort(within="context", provider="webgpu", webgpu="software")
    def test_context(context, ort_session):
        assert ort_session("add.onnx").run(None, FEEDS)[0].tolist() == [[3, 3, 3]]
        assert len(context.pages) == 1

    @pytest.mark.ort(within="browser", provider="wasm")
    def test_browser(browser, ort_session):
        assert ort_session("add.onnx").run(None, FEEDS)[0].tolist() == [[3, 3, 3]]
        assert len(browser.contexts) == 1

    @pytest.mark.ort(within="context", webgpu="hardware", provider="webgpu")
    def test_of_a_gpu(ort_session):
        ort_session("add.onnx")

    def test_exported_model_in_it(page, ort_page):
        page.goto("SITE/index.html")
        model = ort_page("app.model", tensor="app.Tensor")
        assert (model.input_names, model.output_names) == (["x", "scale"], ["y"])
        (y,) = model.run(None, FEEDS)
        assert y.dtype == np.float32 and y.tolist() == [[3, 3, 3]]
        (y,) = model.run(["y"], {**FEEDS, "x": np.zeros((2, 3), np.float32)})
        assert y.tolist() == [[2, 2, 2], [2, 2, 2]]

    def test_errors_of_it(page, ort_page):
        from py_ort.exceptions import InvalidArgument, RuntimeException

        page.goto("SITE/index.html")
        model = ort_page("app.model", tensor="app.Tensor")
        with pytest.raises(RuntimeException, match='index.html: .*"x"'):
            model.run(None, {"scale": FEEDS["scale"]})
        with pytest.raises(InvalidArgument, match="'x' is complex64"):
            model.run(None, {"x": np.zeros((1, 3), np.complex64)})
        with pytest.raises(RuntimeException, match="has no app.other after"):
            ort_page("app.other", timeout=0.1)
"""
WINDOW = """
    import numpy as np
    import pytest

    @pytest.mark.ort(within="context")
    def test_in_a_window(context, ort_session, ort_target):
        feeds = {"x": np.ones((1, 3), np.float32), "scale": np.ones(3, np.float32)}
        session = ort_session("add.onnx")
        assert session.run(None, feeds)[0].tolist() == [[2, 2, 2]]
        assert session.placement().counts()[ort_target.provider] == 1
        assert "Headless" not in context.pages[0].evaluate("navigator.userAgent")
"""
PAGE = """<!doctype html><title>mine</title><body><script type="module">
import { InferenceSession, Tensor } from './py_ort/py_ort.mjs';
const model = await InferenceSession.create('add.pyort', { executionProviders: ['wasm'] });
globalThis.app = { model, Tensor };
</script>"""
CLOSED = """<!doctype html><meta http-equiv="Content-Security-Policy" content="frame-src 'none'"><body>"""


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Another site, with a model that py_ort exported."""
    folder = tmp_path_factory.mktemp("site")
    (folder / "add.onnx").write_bytes(small_models.add())
    py_ort.export(folder / "add.onnx", folder, page=True)
    (folder / "index.html").write_text(PAGE)
    (folder / "closed.html").write_text(CLOSED)
    with closing(StaticSite(folder)) as served:
        yield served.origin


@pytest.fixture
def project(pytester, site):
    pytester.makeconftest(CONFTEST)
    pytester.makepyfile(test_site=MODULE.replace("SITE", site))
    (pytester.path / "add.onnx").write_bytes(small_models.add())
    return pytester


def run(project: pytest.Pytester, *flags: str, **outcomes: int) -> pytest.RunResult:
    """Run tests, and check the numbers of their outcomes."""
    result = project.runpytest_subprocess("-p", "no:cacheprovider", *flags)
    if outcomes:
        result.assert_outcomes(**outcomes)
    return result


def test_sessions_in_playwrights_fixtures(project):
    result = run(project, "-rs", "-v", "--ort-webgpu", "software", passed=8, skipped=1)
    result.stdout.fnmatch_lines(
        ["*test_page?playwright-webgpu-chromium? PASSED*", "*test_of_a_gpu*SKIPPED*", "SKIPPED*hardware*"]
    )


def test_playwrights_options_are_for_them_too(project):
    """A trace of the test's context, with the page of our sessions."""
    run(project, "--tracing", "on", "-k", "test_context", passed=1, deselected=8)
    (trace,) = project.path.glob("test-results/*/trace.zip")
    with zipfile.ZipFile(trace) as archive:
        told = b"".join(archive.read(name) for name in archive.namelist() if name.endswith(".trace"))
    assert b"py_ort: <InferenceSession 'small': 1 nodes on webgpu" in told


def test_a_video_of_them(project, monkeypatch):
    if not (program := shutil.which("ffmpeg")):
        pytest.skip("ffmpeg is not installed")
    for name, value in stand_in(project.path / "programs", "ffmpeg", "ffmpeg-linux", program).items():
        monkeypatch.setenv(name, value)
    run(project, "--video", "on", "-k", "test_page and wasm", passed=1, deselected=8)
    (video,) = project.path.glob("test-results/*/video.webm")
    assert video.read_bytes().startswith(b"\x1aE\xdf\xa3")  # a file of Matroska's


def test_with_windows(project):
    if not (xvfb := shutil.which("xvfb-run")):
        pytest.skip("xvfb-run is not installed")
    (project.path / "test_window.py").write_text(textwrap.dedent(WINDOW))
    command = [xvfb, "-a", sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--headed", "test_window.py"]
    project.run(*command, "--ort-webgpu", "software").assert_outcomes(passed=2)


def test_no_other_browser_stands_in_for_a_channel(pytester):
    pytester.makepyfile("def test(ort_launch_args):\n    assert 'executable_path' not in ort_launch_args\n")
    run(pytester, "--browser-channel", "chrome-canary", passed=1)


def test_wrong_markers(pytester):
    pytester.makepyfile("import pytest\n\n@pytest.mark.ort(fp16=True)\ndef test_typo(ort_session):\n    pass\n")
    run(pytester).stdout.fnmatch_lines(["*marker ort has no 'fp16'*"])
