"""The pytest plugin: models in browsers, from anybody's tests. Installed with py_ort; pytest finds it by itself.

    def test_my_model(ort_session):
        session = ort_session("model.onnx")
        (y,) = session.run(None, {"x": x})
        np.testing.assert_allclose(y, expected, rtol=1e-3)

runs once on WebGPU and once on wasm; `pytest --ort-provider webgpu --ort-browser chromium --ort-browser firefox` runs
it on WebGPU in both browsers. Test ids end in e.g. [chromium-webgpu].
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from py_ort import BrowserOptions, InferenceSession

PROVIDERS = ("webgpu", "wasm")


class Target(NamedTuple):
    """Where a test runs: a value for `browser=` and a provider."""

    browser: str
    provider: str


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare --ort-browser, --ort-provider and --ort-webgpu."""
    group = parser.getgroup("py_ort", "ONNX models in browsers")
    group.addoption(
        "--ort-browser", action="append", metavar="BROWSER", help="browser= of sessions; may be repeated (chromium)"
    )
    group.addoption(
        "--ort-provider", action="append", metavar="PROVIDER", help="providers to run on, each by itself (webgpu, wasm)"
    )
    group.addoption("--ort-webgpu", metavar="KIND", help="hardware, software, off or auto (auto)")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that asks for `ort_target`, itself or by `ort_session`, in each browser on each provider."""
    if "ort_target" in metafunc.fixturenames:
        given = metafunc.config.getoption
        browsers = given("--ort-browser") or ["chromium"]
        targets = [Target(browser, name) for browser in browsers for name in given("--ort-provider") or PROVIDERS]
        metafunc.parametrize("ort_target", targets, ids=lambda target: "-".join(target), scope="session")


@pytest.fixture(scope="session")
def ort_browser(ort_target: Target, pytestconfig: pytest.Config) -> BrowserOptions:
    """Options of the browser that this test's sessions share; override it to start the browser otherwise."""
    from py_ort import BrowserOptions

    return BrowserOptions(
        browser=ort_target.browser,
        webgpu=pytestconfig.getoption("--ort-webgpu") or "auto",
        # It is closed with Python, not between two tests.
        idle_timeout=3600,
    )


@pytest.fixture
def ort_page_errors() -> Iterator[list[str]]:
    """Fail a test in which a page logged an error: an uncaptured WebGPU error, an exception, a message of the console.

    A test that provokes one takes the fixture and clears the list.
    """
    handler, logger = _PageErrors(), logging.getLogger("py_ort.page")
    logger.addHandler(handler)
    yield handler.lines
    logger.removeHandler(handler)
    if handler.lines:
        pytest.fail("the page logged errors:\n" + "\n".join(handler.lines))


@pytest.fixture
def ort_session(
    ort_target: Target, ort_browser: BrowserOptions, ort_page_errors: list[str]
) -> Iterator[Callable[..., InferenceSession]]:
    """Make sessions as `InferenceSession` does; they are closed after the test.

    On WebGPU, nodes that it cannot run go to wasm, as by default; to forbid that, pass SessionOptions with the config
    entry session.disable_cpu_ep_fallback = "1".
    """
    with sessions_in(ort_browser, list(dict.fromkeys([ort_target.provider, "wasm"]))) as make:
        yield make


@contextmanager
def sessions_in(
    browser: BrowserOptions, providers: Sequence[str] | None = None
) -> Iterator[Callable[..., InferenceSession]]:
    """Make sessions as `InferenceSession` does, in this browser, on these providers unless told otherwise.

    They are closed at the end.
    """
    from py_ort import InferenceSession

    made: list[InferenceSession] = []

    def make(*args: Any, **options: Any) -> InferenceSession:
        if len(args) < 3 and providers is not None:
            options.setdefault("providers", providers)
        options.setdefault("browser", browser)
        made.append(InferenceSession(*args, **options))
        return made[-1]

    try:
        yield make
    finally:
        for session in made:
            session.close()


class _PageErrors(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name}: {record.getMessage()}")
