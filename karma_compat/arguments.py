"""The command line of onnxruntime-web's `npm test`."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

MODES = ("suite0", "suite1", "model", "op", "unittest")
BACKENDS = ("webgl", "webgpu", "wasm", "webnn", "cpu")
DEFAULT_BACKENDS = ("webgl", "webgpu", "wasm")
#: Environments, and what is `browser=` for them; None: it is no browser, and ours runs in nothing else.
ENVIRONMENTS: dict[str, str | None] = {
    "chrome": "chromium",
    "chromecanary": "google-chrome-canary",
    "edge": "microsoft-edge",
    "firefox": "firefox",
    "safari": "webkit",
    "capture": "capture",
    "electron": None,
    "node": None,
    "bs": None,
}
LEVELS = ("disabled", "basic", "extended", "layout", "all")
IO_BINDINGS = ("none", "gpu-tensor", "gpu-location", "ml-tensor", "ml-location")
#: Whose devices I/O bindings name.
_BOUND = {"gpu": "webgpu", "ml": "webnn"}
SEVERITIES = ("verbose", "info", "warning", "error")
_NONE = "py_ort has no such switch"
#: The fields of `ort.env` that may be set, with the values that mean something here ("": all), and why others do not.
ENV_FIELDS: dict[str, dict[str, tuple[str, str]]] = {
    "wasm": {
        "numThreads": ("", ""),
        "initTimeout": ("-", _NONE),
        "simd": ("true|auto|fixed|relaxed", "py_ort has no build without SIMD"),
        "proxy": ("true", "sessions of Python always run in a worker"),
    },
    "webgl": dict.fromkeys(("contextId", "matmulMaxBatchSize", "textureCacheMode", "pack", "async"), ("-", _NONE)),
    "webgpu": {"profiling.mode": ("", ""), "validateInputContent": ("-", _NONE)},
}
#: Older spellings.
ALIASES = {
    "--wasm-number-threads": "--wasm.numThreads",
    "--wasm-init-timeout": "--wasm.initTimeout",
    "--wasm-enable-simd": "--wasm.simd",
    "--wasm-enable-proxy": "--wasm.proxy",
    "--webgl-context-id": "--webgl.contextId",
    "--webgl-matmul-max-batch-size": "--webgl.matmulMaxBatchSize",
    "--webgl-texture-cache-mode": "--webgl.textureCacheMode",
    "--webgl-texture-pack-mode": "--webgl.pack",
    "--webgpu-profiling-mode": "--webgpu.profiling.mode",
}


@dataclass
class Arguments:
    """A command line, checked.

    Attributes:
        backends, named: The backends, and whether the caller named them (else they are that runner's default).
        env: Values of `ort.env` by dotted name.
        without_effect: Flags that were given and can do nothing here, with the reason.
    """

    mode: str
    param: str
    backends: tuple[str, ...]
    named: bool
    browser: str
    debug: bool
    profile: bool
    trace: bool
    download_model: bool
    perf: int
    optimized_model_file_path: str
    graph_optimization_level: str
    io_binding: str
    severity: str
    chromium_flags: tuple[str, ...]
    test_data: str
    webnn_device_type: str = ""
    env: dict[str, str] = field(default_factory=dict)
    without_effect: dict[str, str] = field(default_factory=dict)

    def bound(self, backend: str) -> str:
        """The I/O binding of a backend, named as the GPU's; none if another one's was asked for."""
        device, _, what = self.io_binding.partition("-")
        return f"gpu-{what}" if _BOUND.get(device) == backend else "none"


def parse(arguments: Sequence[str]) -> Arguments:
    """Return what a command line says; one that is wrong ends the program with status 2 and a message."""
    parser = _parser()
    given, rest = parser.parse_known_args(list(arguments))
    env = _environment(parser, rest)
    if given.x is not None:
        env["wasm.numThreads"] = str(given.x)
    mode, param = _mode(parser, given)
    browser = ENVIRONMENTS[given.env]
    if browser is None:
        parser.error(f"-e={given.env} is no browser that can be started here: py_ort runs models in browsers")
    backends = tuple(filter(None, (given.backend or ",".join(DEFAULT_BACKENDS)).split(",")))
    for name in backends:
        if name not in BACKENDS:
            parser.error(f"-b={given.backend}: there is no backend {name!r}; they are {', '.join(BACKENDS)}")
    if given.perf and (mode != "model" or given.debug):
        parser.error("--perf goes with the mode model only, and not with --debug")
    result = Arguments(
        mode=mode,
        param=param,
        backends=backends,
        named=given.backend is not None,
        browser=browser,
        debug=given.debug,
        trace=given.trace,
        profile=given.profile or env.get("webgpu.profiling.mode") == "default",
        download_model=given.download_model,
        perf=given.perf,
        optimized_model_file_path=given.optimized_model_file_path,
        graph_optimization_level=given.graph_optimization_level,
        io_binding=given.io_binding,
        severity=next((name for name in SEVERITIES if getattr(given, name) is not None), "error"),
        chromium_flags=tuple(given.chromium_flags),
        test_data=given.test_data,
        webnn_device_type=given.webnn_device_type or "",
        env=env,
    )
    if given.no_sandbox:
        result.chromium_flags += ("--no-sandbox",)
    result.without_effect = _without_effect(given, env)
    return result


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="npm test --", description="onnxruntime-web's test runner on py_ort.", allow_abbrev=False
    )
    add = parser.add_argument
    add("mode", nargs="?", default="suite0", help=f"{', '.join(MODES)} (default suite0)")
    add("param", nargs="?", default="", help="model: a folder; op: a .jsonc file or its name")
    add("-d", "--debug", action="store_true", help="say everything, keep a window, debug at port 9333, no time limits")
    add("-b", "--backend", help=f"list of {', '.join(BACKENDS)}; default {','.join(DEFAULT_BACKENDS)}")
    add("-e", "--env", choices=ENVIRONMENTS, default="chrome", help="where to run; capture: browsers that open a URL")
    add("-p", "--profile", action="store_true", help="write a profile of each session")
    add("-m", "--download-model", action="store_true", help="write the model of each operator test")
    add("-t", "--trace", action="store_true", help="mark runs in the browser's own performance timeline")
    add("-P", "--perf", nargs="?", type=int, const=10, default=0, help="model only: time that many runs (10)")
    add("-c", "--file-cache", action="store_true")
    add("-u", "--optimized-model-file-path", default="", help="write the optimized model there")
    add("-o", "--graph-optimization-level", choices=LEVELS, default="all")
    add("-i", "--io-binding", choices=IO_BINDINGS, default="none")
    for name in SEVERITIES:
        add(f"--log-{name}", dest=name, nargs="?", const="", help="log from this level on")
    add("-x", type=int, help="threads of wasm (--wasm.numThreads)")
    add("--webnn-device-type", choices=("cpu", "gpu", "npu"))
    add("--no-sandbox", action="store_true")
    add("--user-data-dir")
    add("--chromium-flags", action="append", default=[], help="a flag for the browser; may be repeated")
    add("--test-data", default="test", help="folder of suite-test-list.jsonc, ops/ and node/ (also below data/)")
    return parser


def _mode(parser: argparse.ArgumentParser, given: Any) -> tuple[str, str]:
    if given.mode not in MODES:
        parser.error(f"there is no mode {given.mode!r}; they are {', '.join(MODES)}")
    if (given.mode in ("model", "op")) != bool(given.param):
        parser.error(f"{given.mode} takes {'a parameter' if not given.param else 'no parameter'}")
    return given.mode, given.param


def _environment(parser: argparse.ArgumentParser, rest: Sequence[str]) -> dict[str, str]:
    """Return {"wasm.numThreads": "2"} from --wasm.numThreads=2; a flag without a value is true."""
    env = {}
    for text in rest:
        flag, _, value = text.partition("=")
        group, _, name = ALIASES.get(flag, flag).removeprefix("--").partition(".")
        if not flag.startswith("--") or name not in ENV_FIELDS.get(group, {}):
            parser.error(f"there is no flag {flag}")
        env[f"{group}.{name}"] = value or "true"
    threads = env.get("wasm.numThreads", "1")
    if not threads.isdecimal():
        parser.error(f"--wasm.numThreads is a number, not {threads!r}")
    return env


def _without_effect(given: Any, env: dict[str, str]) -> dict[str, str]:
    reasons: dict[str, Any] = {
        "--file-cache": given.file_cache and "tensors do not go through files here",
        "--user-data-dir": given.user_data_dir and "the browser has a profile of its own, made anew",
    }
    for name in SEVERITIES:
        if categories := getattr(given, name):
            reasons[f"{categories!r} of --log-{name}"] = (
                "all messages of that level are logged, whatever their category"
            )
    found = {flag: reason for flag, reason in reasons.items() if reason}
    for name, value in env.items():
        group, _, rest = name.partition(".")
        effective, why = ENV_FIELDS[group][rest]
        if effective and value not in effective.split("|"):
            found[f"--{name}={value}"] = why
    return found
