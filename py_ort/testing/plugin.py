"""The pytest plugin: tests of models in browsers. It is installed with py_ort; pytest finds it.

    def test_my_model(ort_session):
        session = ort_session("model.onnx")
        (y,) = session.run(None, {"x": x})
        np.testing.assert_allclose(y, expected, rtol=1e-3)

runs once on WebGPU and once on wasm; `pytest --ort-provider webgpu --ort-browser chromium --ort-browser firefox` runs
it on WebGPU in both browsers, and `--ort-engine onnxruntime-web` by that runtime. Test ids end in e.g.
[chromium-webgpu], and that is where the test ran: where the browser has not that provider, it fails, or is skipped with
--ort-skip-missing. Single nodes that run on wasm all the same are a
`FallbackWarning`; with --ort-no-fallback or the marker ort_no_fallback they fail the test. The marker `ort` says what a
test wants of browser and adapter, and whether its sessions live in what pytest-playwright opens (docs/testing.md).
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from functools import partial
from itertools import product, starmap
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from py_ort.providers import DEFAULT, PROVIDERS, canonical_provider, on_device, with_cpu
from py_ort.runtime.engines import ENGINES, OURS
from py_ort.testing.captures import is_lent, prepare_capture
from py_ort.testing.marks import MARKER, WITHIN, Wanted
from py_ort.testing.remotes import ANY_REMOTE, Remotes, add_options
from py_ort.testing.run_page import COMMAND, PLACE, TARGET, RunPage
from py_ort.testing.short_failures import shortened

if TYPE_CHECKING:
    from py_ort import BrowserOptions, InferenceSession
    from py_ort.providers import Placement
    from py_ort.testing.page_session import PageSession

_NO_FALLBACK = "ort_no_fallback: nodes that do not run on the test's provider are an error (as with --ort-no-fallback)"


class FallbackWarning(UserWarning):
    """Nodes of a session do not run on the provider that the test is named after."""


class Target(NamedTuple):
    """Where a test runs: a value for `browser=`, a provider, and a value for `engine=`."""

    browser: str
    provider: str
    engine: str = OURS

    def __str__(self) -> str:
        return "-".join((self.browser, self.provider, *(() if self.engine == OURS else (self.engine,))))


def pytest_addoption(parser: pytest.Parser) -> None:
    """Declare the options, all called --ort-…."""
    group = parser.getgroup("py_ort", "ONNX models in browsers")
    group.addoption(
        "--ort-browser", action="append", metavar="BROWSER", help="browser= of sessions; may be repeated (chromium)"
    )
    group.addoption(
        "--ort-provider", action="append", metavar="PROVIDER", help="providers to run on, each by itself (webgpu, wasm)"
    )
    group.addoption(
        "--ort-engine",
        action="append",
        choices=ENGINES,
        help="engine= of sessions; may be repeated (py_ort)",
    )
    group.addoption("--ort-webgpu", metavar="KIND", help="hardware, software, off or auto (PY_ORT_WEBGPU, or auto)")
    group.addoption(
        "--ort-skip-missing", action="store_true", help="skip tests whose provider the browser lacks; else they fail"
    )
    group.addoption(
        "--ort-no-fallback", action="store_true", help="a node that does not run on the test's provider is an error"
    )
    group.addoption("--ort-html", metavar="FILE", help="write a page of the run: tests against where they ran")
    group.addoption("--ort-within", choices=WITHIN, help="have sessions in what pytest-playwright opens for the test")
    add_options(group)


def pytest_configure(config: pytest.Config) -> None:
    """Declare the markers."""
    config.addinivalue_line("markers", _NO_FALLBACK)
    config.addinivalue_line("markers", MARKER)
    if (file := config.getoption("--ort-html")) and not hasattr(config, "workerinput"):  # of pytest-xdist
        config.pluginmanager.register(RunPage(Path(file)))
    if "capture" in (config.getoption("--ort-browser") or ()):
        prepare_capture(config)


#: Outputs that differ and are named.
_OUTPUTS = 5
#: The reason to skip tests whose adapter is missing.
_MISSING = pytest.StashKey[dict[tuple[Target, Wanted], str]]()
#: A function that returns the browser of the next session, and one that writes a line about the session there.
Place = tuple[Callable[[], "BrowserOptions"], Callable[[str], None]]


@pytest.hookimpl(tryfirst=True)
def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run each test that asks for `ort_target`, itself or by `ort_session`, in each browser on each provider."""
    if "ort_target" in metafunc.fixturenames:
        given = metafunc.config.getoption
        wanted = Wanted.of(metafunc.definition, given("--ort-within"))
        browsers = given("--ort-browser") or ["chromium"]
        if given("--ort-remote"):
            browsers = [ANY_REMOTE]
        if wanted.within:
            browsers = ["playwright"]
        axes = product(browsers, given("--ort-provider") or DEFAULT, given("--ort-engine") or (OURS,))
        every = list(starmap(Target, axes))
        targets: list[Any] = [target for target in every if wanted.takes(*target)]
        if not targets:
            skip = pytest.mark.skip(reason=wanted.elsewhere(every))
            targets = [pytest.param(every[0], id="elsewhere", marks=skip)]
        if wanted.within:  # so that their plugin sees that the test has a browser of theirs
            metafunc.fixturenames.append(wanted.within)
        metafunc.parametrize("ort_target", targets, ids=str, scope="session")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Note the target of a test for `RunPage`."""
    if target := getattr(getattr(item, "callspec", None), "params", {}).get("ort_target"):
        item.user_properties.append((TARGET, [*target, str(target)]))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report errors of py_ort by the test's line; --full-trace keeps all frames."""
    with nullcontext() if item.config.getoption("fulltrace") else shortened(call.excinfo):
        return (yield)


@pytest.fixture(scope="session")
def ort_browser(ort_target: Target, pytestconfig: pytest.Config) -> BrowserOptions:
    """Options of the browser that this test's sessions share; override it to start the browser otherwise."""
    from py_ort import BrowserOptions

    if ort_target.browser == ANY_REMOTE and (remotes := Remotes.of(pytestconfig)):
        return remotes.browser
    # Without the option the variable PY_ORT_WEBGPU decides, as for every session.
    webgpu = pytestconfig.getoption("--ort-webgpu")
    # It is closed with Python, not between two tests; one that is lent is for the next test of any worker.
    idle = 0 if is_lent(ort_target.browser) else 3600
    options = BrowserOptions(browser=ort_target.browser, idle_timeout=idle)
    return BrowserOptions.of(options, webgpu=webgpu)


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
    request: pytest.FixtureRequest,
    ort_target: Target,
    ort_page_errors: list[str],
    _ort_wanted: Wanted,
    _ort_place: Place,
) -> Iterator[Callable[..., InferenceSession]]:
    """Make sessions as `InferenceSession` does, by the engines of --ort-engine, or one that is given as `engine=`;
    they are closed after the test.

    A provider that the browser lacks fails the test, or skips it with --ort-skip-missing. On WebGPU, nodes that it
    cannot run go to wasm with a `FallbackWarning`, or fail the test with --ort-no-fallback or the marker
    ort_no_fallback. A test decides otherwise for a session by the configuration entries behind this,
    session.require_providers and session.disable_cpu_ep_fallback.
    """
    given, wanted = request.config.getoption, _ort_wanted
    entries = {"session.require_providers": "1"}
    if given("--ort-no-fallback") or request.node.get_closest_marker("ort_no_fallback"):
        entries["session.disable_cpu_ep_fallback"] = "1"
    providers = with_cpu(ort_target.provider)
    browser, tell = _ort_place
    remotes = Remotes.of(request.config) if ort_target.browser == ANY_REMOTE else None
    missing_here = request.config.stash.setdefault(_MISSING, {})
    with sessions_in(browser, providers, entries) as make_session:

        def make(*args: Any, **options: Any) -> InferenceSession:
            from py_ort.exceptions import BrowserError, EPFail, NoAdapter

            if known := missing_here.get((ort_target, wanted)):
                pytest.skip(known)
            options.setdefault("engine", ort_target.engine)
            try:
                session = make_session(*args, **options)
            except EPFail as missing:
                if given("--ort-skip-missing") or wanted.webgpu:
                    if isinstance(missing, NoAdapter) and not (remotes or wanted.within or options.get("browser")):
                        missing_here[ort_target, wanted] = str(missing)  # no test gets another answer
                    pytest.skip(str(missing))
                raise
            except BrowserError as lost:
                if remotes and not options.get("browser") and remotes.without(lost):
                    return make(*args, **options)
                raise
            if remotes:
                request.node.user_properties.append(("ort_where", remotes.name))
            where = options.get("browser") or browser()
            if on_device(ort_target.provider) and (lacks := _lacks(wanted, ort_target.provider, where)):
                pytest.skip(lacks)
            nodes: dict[str, int] = {}
            if options["engine"] == OURS:  # the others do not tell
                nodes = session.placement().counts()
                if told := _fallbacks(session.placement()):
                    warnings.warn(told, FallbackWarning, stacklevel=2)
            request.node.user_properties.append((PLACE, [session.browser, session.adapter, nodes]))
            tell(f"{session!r}")
            return session

        yield make


@pytest.fixture
def _ort_wanted(request: pytest.FixtureRequest) -> Wanted:
    return Wanted.of(request.node, request.config.getoption("--ort-within"))


@pytest.fixture
def _ort_place(request: pytest.FixtureRequest, _ort_wanted: Wanted) -> Iterator[Place]:
    from py_ort import BrowserOptions

    wanted = _ort_wanted
    if not wanted.within:
        browser = request.getfixturevalue("ort_browser")
        remotes = Remotes.of(request.config) if browser.instance else None
        # Another one, after a remote one could not be had.
        yield (
            lambda: BrowserOptions.of(remotes.browser if remotes else browser, webgpu=wanted.webgpu),
            lambda text: None,
        )
        return
    from py_ort.testing.in_playwright import Within

    try:
        fixture = request.getfixturevalue(wanted.within)
    except pytest.FixtureLookupError:
        raise pytest.UsageError(f"within={wanted.within!r} needs pytest-playwright: pip install it") from None
    with ExitStack() as stack:
        place = Within(wanted.within, fixture, stack)
        yield place.options, place.tell


def _lacks(wanted: Wanted, provider: str, browser: BrowserOptions) -> str:
    """Return the requirement of a test that a provider's device does not meet; "" if there is none."""
    if not (wanted.f16 or wanted.webgpu):
        return ""
    from py_ort.runtime.probe import probe

    found = probe(browser)
    kind = "software" if found.get("software") else "hardware"
    if wanted.webgpu and kind != wanted.webgpu:
        return f"the adapter is of {kind}, not of {wanted.webgpu}: {found['adapter']}"
    if wanted.f16 and PROVIDERS[provider].needs.features.get("float16") not in (found.get("features") or ()):
        return f"no float16 in shaders: {found['adapter']}"
    return ""


@pytest.fixture(scope="session")
def ort_launch_args(browser_type: Any, browser_channel: str | None, pytestconfig: pytest.Config) -> dict[str, Any]:
    """Arguments with which pytest-playwright's browser has WebGPU, and is found where Playwright brought none.

    They are for a fixture of yours:

        @pytest.fixture(scope="session")
        def browser_type_launch_args(browser_type_launch_args, ort_launch_args):
            return {**ort_launch_args, **browser_type_launch_args}
    """
    from py_ort.testing.in_playwright import launch_args

    return launch_args(browser_type, pytestconfig.getoption("--ort-webgpu"), browser_channel)


@pytest.fixture
def ort_page(page: Any) -> Callable[..., PageSession]:
    """Run a model that the test's page has loaded: `ort_page("app.session").run(None, feeds)`; see `PageSession`."""
    from py_ort.testing.page_session import PageSession

    return partial(PageSession, page)


@pytest.fixture
def assert_matches_reference(
    request: pytest.FixtureRequest,
    ort_session: Callable[..., InferenceSession],
    ort_target: Target,
    _ort_place: Place,
    tmp_path_factory: pytest.TempPathFactory,
) -> Callable[..., InferenceSession]:
    """Compare a model's outputs with native onnxruntime's, and return the session. Where they differ, the test fails,
    and says which node's result is the first that does.

    It is called with a model (a file, or its bytes), feeds (arrays by input name; random numbers for the others), a
    tolerance, steps (see `py_ort.testing.closeness.closeness`) and, by name, other arguments of `InferenceSession`. The
    reference needs onnxruntime installed; user kernels need a `reference` of their own.
    """
    from py_ort.testing.compare import InBrowser
    from py_ort.testing.reference import differences, first_difference, reference
    from py_ort.testing.reproduction import of_model

    def check(
        model: str | os.PathLike[str] | bytes,
        feeds: Mapping[str, Any] | None = None,
        tolerance: float | None = None,
        steps: int = 0,
        **options: Any,
    ) -> InferenceSession:
        fed, wanted = reference(model, feeds)
        session = ort_session(model, **options)
        if wrong := differences(session, fed, wanted, tolerance, steps):
            provider = canonical_provider(session.get_providers()[0])
            where = ort_target._replace(provider=provider, engine=options.get("engine", ort_target.engine))
            if len(wrong) > _OUTPUTS:
                wrong[_OUTPUTS:] = [f"{len(wrong) - _OUTPUTS} more outputs"]
            session_options = {"browser": _ort_place[0](), **options}
            side = InBrowser(where.provider, where.engine, session_options)
            wrong += first_difference(model, fed, side, tolerance, steps)
            folder = partial(tmp_path_factory.mktemp, "ort_feeds")
            if command := of_model(model, feeds or {}, side, folder, tolerance, steps):
                request.node.user_properties.append((COMMAND, command))
                wrong.append(f"all values: {command}")
            pytest.fail(f"on {where} outputs differ from native onnxruntime's:\n  " + "\n  ".join(wrong))
        return session

    return check


def _fallbacks(placement: Placement) -> str:
    """Return a remark about nodes that do not run on the provider in the test's name; "" if all do."""
    first, strays = placement.providers[0], placement.fallbacks()
    if not strays and (placement.on_first() or not placement.nodes):
        return ""
    found = strays or placement.nodes
    why = "; ".join(dict.fromkeys(f"{node.op_type} on {node.provider}: {node.reason}" for node in found[:5]))
    told = f"{len(found)} of {len(placement.nodes)} nodes do not run on {first} ({why})"
    return f"{told}; --ort-no-fallback makes this an error" if strays else told


@contextmanager
def sessions_in(
    browser: BrowserOptions | Callable[[], BrowserOptions],
    providers: Sequence[str] | None = None,
    entries: Mapping[str, str] | None = None,
) -> Iterator[Callable[..., InferenceSession]]:
    """Make sessions as `InferenceSession` does, in this browser, on these providers and with these configuration
    entries unless told otherwise.

    They are closed at the end.
    """
    from py_ort import InferenceSession, SessionOptions

    made: list[InferenceSession] = []

    def make(
        path_or_bytes: Any, sess_options: SessionOptions | None = None, *args: Any, **options: Any
    ) -> InferenceSession:
        settings = sess_options._copy() if sess_options else SessionOptions()
        for key, value in (entries or {}).items():
            if key not in settings.config_entries:
                settings.add_session_config_entry(key, value)
        if not args and providers is not None and not settings.has_providers():
            options.setdefault("providers", providers)
        if options.get("browser") is None:
            options["browser"] = browser() if callable(browser) else browser
        made.append(InferenceSession(path_or_bytes, settings, *args, **options))
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
