"""The runner: each backend in turn, each group of its cases, a report."""

from __future__ import annotations

import logging
import os
import platform
import subprocess
import sys
import time
from pathlib import Path

from rich.console import Console
from rich.markup import escape

from karma_compat.arguments import SEVERITIES, Arguments, parse
from karma_compat.report import Report, performance
from karma_compat.suite import Group, groups
from py_ort import BrowserOptions, GraphOptimizationLevel, InferenceSession, SessionOptions
from py_ort.exceptions import EPFail, PyOrtError
from py_ort.providers import PROVIDERS, canonical_provider, with_cpu
from py_ort.providers.resolution import REQUIRE
from py_ort.runtime.probe import probe
from py_ort.testing.case import Case
from py_ort.testing.fleet import run_anywhere
from py_ort.testing.results import FAILED, PASSED, SKIPPED, Outcome
from py_ort.testing.runner import RunnerOptions, run_once

_WEB = Path(__file__).resolve().parents[1] / "web"
_TIMEOUT = 60.0
_DEBUG_PORT = 9333


def main() -> None:
    """Run the command line; the status is 1 if a test failed or none was run."""
    arguments = parse(sys.argv[1:])
    console = Console(soft_wrap=True)
    logging.basicConfig(format="%(name)s: %(message)s")
    level = "verbose" if arguments.debug or arguments.profile else arguments.severity
    logging.getLogger("py_ort").setLevel(_LEVELS[level])
    if arguments.trace:
        os.environ["PY_ORT_TRACE"] = "1"  # sessions read it
    for flag, reason in arguments.without_effect.items():
        console.print(f"[yellow]{flag} has no effect: {reason}[/]")
    try:
        sys.exit(run(arguments, console))
    except PyOrtError as error:
        console.print(f"[red]{type(error).__name__}: {error}[/]")
        sys.exit(1)


_LEVELS = dict(zip(SEVERITIES, (logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR), strict=True))


def run(arguments: Arguments, console: Console) -> int:
    """Run what the arguments say, and return the exit status."""
    began = time.perf_counter()
    report = Report(console)
    if arguments.mode in ("suite0", "unittest"):
        report.group("#UnitTest", {"web": unit_tests()})
    if arguments.mode != "unittest":
        browser = browser_options(arguments)
        found = probe(browser)
        where = f"{found['browser']} on {platform.system()}"
        console.print(where, markup=False)
        for backend in arguments.backends:
            console.print(f"\n[bold]{backend}[/]")
            if arguments.io_binding != "none" and arguments.bound(backend) == "none":
                console.print(f"[yellow]--io-binding={arguments.io_binding} has no effect on {backend}[/]")
            for group in groups(arguments, backend, where):
                run_group(arguments, backend, browser, group, report, console)
    report.end(time.perf_counter() - began)
    return int(report.failed)


def run_group(
    arguments: Arguments, backend: str, browser: BrowserOptions, group: Group, report: Report, console: Console
) -> None:
    """Run the cases of a group on a backend, and print what came of them."""
    if not arguments.named and (reason := PROVIDERS[canonical_provider(backend)].unavailable):
        for case in group.cases:
            report.count(group.title, case.id, Outcome(SKIPPED, reason))
        console.print(f"  [yellow]{group.title}: {escape(reason)}[/]")
        return
    if arguments.perf:
        for case in group.cases:
            time_case(arguments, backend, browser, case, report, console)
        return
    for case in group.cases if arguments.download_model else ():
        Path(f"{case.id.replace('/', '_').replace(' ', '_')}.onnx").write_bytes(case.model_bytes())
    options, missing = runner_options(arguments, backend, browser), absent(group)
    try:
        report.group(group.title, run_anywhere(group.cases, options).cases | missing)
    except EPFail as error:
        # The backend is not there: that is why each of them fails.
        console.print(f"  [red]{group.title}: {escape(error.message)}[/]")
        for case in group.cases:
            outcome = Outcome(SKIPPED, case.skip) if case.skip else Outcome(FAILED, error.message)
            report.count(group.title, case.id, outcome)
        for name, outcome in missing.items():
            report.count(group.title, name, outcome)


def runner_options(arguments: Arguments, backend: str, browser: BrowserOptions) -> RunnerOptions:
    """Return how cases are run on a backend."""
    return RunnerOptions(
        tuple(with_cpu(canonical_provider(backend))),
        browser=browser,
        # One browser that can be looked at, or several.
        jobs=1 if arguments.debug or arguments.mode == "op" else 0,
        timeout=1e6 if arguments.debug else _TIMEOUT,
        session=session_settings(arguments),
        entries=entries(arguments),
        io_binding=arguments.bound(backend),
    )


def absent(group: Group) -> dict[str, Outcome]:
    """Return the failures of tests that are listed, and do not exist."""
    return {name: Outcome(FAILED, reason) for name, reason in group.missing}


def time_case(
    arguments: Arguments, backend: str, browser: BrowserOptions, case: Case, report: Report, console: Console
) -> None:
    """Time the creation of a model's session and its runs on the first data set."""
    settings = SessionOptions()
    for name, value in session_settings(arguments).items():
        setattr(settings, name, value)
    for name, entry in {**entries(arguments), REQUIRE: "1"}.items():
        settings.add_session_config_entry(name, entry)
    began = time.perf_counter()
    with InferenceSession(case.model, settings, with_cpu(canonical_provider(backend)), browser=browser) as session:
        init = (time.perf_counter() - began) * 1000
        runs = []
        for _ in range(arguments.perf + 1):
            began = time.perf_counter()
            run_once(session, case.data_sets[0], arguments.bound(backend))
            runs.append((time.perf_counter() - began) * 1000)
    performance(console, case.id, init, runs)
    report.count(backend, case.id, Outcome(PASSED))


def session_settings(arguments: Arguments) -> dict[str, object]:
    """Return the attributes of the `SessionOptions`."""
    settings: dict[str, object] = {
        "graph_optimization_level": GraphOptimizationLevel[f"ORT_{_ENABLE[arguments.graph_optimization_level]}"],
        "enable_profiling": arguments.profile,
    }
    if arguments.optimized_model_file_path:
        settings["optimized_model_filepath"] = arguments.optimized_model_file_path
    if threads := arguments.env.get("wasm.numThreads"):
        settings["intra_op_num_threads"] = int(threads)
    return settings


def entries(arguments: Arguments) -> dict[str, str]:
    """Return the configuration entries of the `SessionOptions`."""
    found = {}
    if device := arguments.webnn_device_type:
        found[f"{PROVIDERS['webnn'].prefix}deviceType"] = device
    if (simd := arguments.env.get("wasm.simd")) in ("fixed", "relaxed"):
        found[f"{PROVIDERS['wasm'].prefix}simd"] = simd
    return found


_ENABLE = {
    "disabled": "DISABLE_ALL",
    **{name: f"ENABLE_{name.upper()}" for name in ("basic", "extended", "layout", "all")},
}


def browser_options(arguments: Arguments) -> BrowserOptions:
    """Return the browser that the arguments ask for: with a window for --debug, else headless."""
    flags = list(arguments.chromium_flags)
    if arguments.debug:
        flags.append(f"--remote-debugging-port={_DEBUG_PORT}")
    return BrowserOptions(browser=arguments.browser, flags=tuple(flags), headless=not arguments.debug)


def unit_tests() -> Outcome:
    """Run the unit tests of web/, in Node."""
    began = time.perf_counter()
    done = subprocess.run(["npm", "test", "--silent"], cwd=_WEB, capture_output=True, text=True, check=False)
    seconds = time.perf_counter() - began
    return Outcome(PASSED, "", seconds) if done.returncode == 0 else Outcome(FAILED, done.stdout + done.stderr, seconds)
