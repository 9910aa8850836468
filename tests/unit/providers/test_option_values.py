"""Options of providers are checked before anything is opened."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from py_ort.browser import browser_options as options
from py_ort.browser.browser_options import BrowserOptions
from py_ort.exceptions import InvalidArgument
from py_ort.providers import PROVIDERS
from py_ort.providers.provider_options import all_options, check_options
from py_ort.providers.resolution import resolve
from py_ort.runtime.devices import for_opening

WEBGPU = PROVIDERS["webgpu"]
INCLUDE = Path(__file__).resolve().parents[3] / "wasm_build/include"
HEADER = INCLUDE / "py_ort/webgpu_provider_options.h"
GENERATED = INCLUDE / "py_ort/gen/webgpu_options_generated.h"
OPTIONS = {option.key: option for option in WEBGPU.options}
#: Given -> its string.
VALUES = {
    "flag, truth": ({"enableGraphCapture": True}, {"enableGraphCapture": "1"}),
    "flag, text": ({"enableGraphCapture": "False"}, {"enableGraphCapture": "0"}),
    "number": ({"deviceId": 3}, {"deviceId": "3"}),
    "names": ({"forceCpuNodeNames": ["a", "b"]}, {"forceCpuNodeNames": "a\nb"}),
    "prefix": ({"ep.WebGpuExecutionProvider.preferredLayout": "NCHW"}, {"preferredLayout": "NCHW"}),
}
WRONG = {
    "key": ({"zoom": "x"}, "no option 'zoom': it has deviceId, preferredLayout", "webgpu"),
    "key nearly": ({"storage_buffer_cache_mode": "x"}, "did you mean 'storageBufferCacheMode'", "webgpu"),
    "mode": ({"defaultBufferCacheMode": "big"}, "one of disabled, lazyRelease, simple, bucket", "webgpu"),
    "case": ({"preferredLayout": "nhwc"}, "one of NCHW, NHWC", "webgpu"),
    "number": ({"deviceId": "one"}, "a whole number from 0", "webgpu"),
    "negative": ({"deviceId": -1}, "a whole number from 0 to 999999999, not -1", "webgpu"),
    "fraction": ({"deviceId": 1.5}, "a whole number from 0 to 999999999, not 1.5", "webgl"),
    "too large": ({"deviceId": 2**32}, "a whole number from 0 to 999999999, not 4294967296", "webgl"),
    "flag": ({"enableGraphCapture": "yes"}, "one of 0, 1", "webgpu"),
    "no dict": ([("deviceId", 1)], "a dict", "webgpu"),
    "wasm": ({"threads": 3}, "wasm has no option 'threads': it has simd", "wasm"),
    "wasm's choice": ({"simd": "on"}, "option simd of wasm is one of auto, relaxed, fixed", "wasm"),
}


@pytest.mark.parametrize("given, expected", VALUES.values(), ids=VALUES.keys())
def test_values(given, expected):
    assert check_options("webgpu", given) == (expected, [])


@pytest.mark.parametrize("given, words, provider", WRONG.values(), ids=WRONG.keys())
def test_wrong(given, words, provider):
    with pytest.raises(InvalidArgument, match=words) as caught:
        check_options(provider, given)
    assert caught.value.provider == provider


def test_defaults_are_onnxruntimes():
    defaults = {key: option.default for key, option in OPTIONS.items() if key.endswith("CacheMode")}
    assert defaults == {
        "storageBufferCacheMode": "bucket",
        "uniformBufferCacheMode": "simple",
        "queryResolveBufferCacheMode": "disabled",
        "defaultBufferCacheMode": "disabled",
    }
    assert all_options("webgpu", {"deviceId": "2"}) == {**all_options("webgpu", {}), "deviceId": "2"}


def test_who_is_told_what(monkeypatch):
    given = {"deviceId": "1", "preferredLayout": "NCHW", "forceCpuNodeNames": "a\n\nb", "powerPreference": "low-power"}
    assert WEBGPU.for_compiler(given) == {"preferred_layout": "NCHW", "force_cpu_node_names": ("a", "b")}
    assert WEBGPU.for_page(given) == {"deviceId": "1", "powerPreference": "low-power"}
    browser = BrowserOptions(webgpu="hardware", launch_timeout=5)
    assert for_opening(browser) == {"hardware": "required", "timeoutMs": 5000}
    assert for_opening(BrowserOptions(webgpu="software")) == {"timeoutMs": 60_000}
    monkeypatch.setattr(options, "has_gpu", lambda: True)
    assert for_opening(BrowserOptions(webgpu="auto"))["hardware"] == "expected", "what there is will do"


def test_entries_of_the_session_count_and_explicit_options_win():
    entries = {"ep.webgpuexecutionprovider.deviceId": "4", "ep.webgpuexecutionprovider.validationMode": "full"}
    wanted = resolve([("webgpu", {"deviceId": 5}), "wasm"], None, entries)
    assert wanted.providers["webgpu"] == {"deviceId": "5", "validationMode": "full"}


def test_native_options_of_the_cpu_are_named_as_ignored():
    wanted = resolve([("CPUExecutionProvider", {"arena_extend_strategy": "kSameAsRequested"})])
    assert wanted.providers == {"wasm": {}} and wanted.ignored == {"wasm": ["arena_extend_strategy"]}


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_the_header_is_plain_c():
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", f"-I{INCLUDE}", "-x", "c", str(HEADER)]
    subprocess.run(command, check=True, timeout=60)


@pytest.mark.parametrize(
    "prefix, key",
    {
        "LAYOUT": "preferredLayout",
        "BUFFER_CACHE": "storageBufferCacheMode",
        "VALIDATION": "validationMode",
    }.items(),
)
def test_numbers_of_the_header_are_places_in_the_table(prefix, key):
    found = re.findall(rf"ORT_WEBGPU_{prefix}_(\w+) = (\d)", GENERATED.read_text())
    names = [name.replace("_", "").lower() for name, _ in found]
    assert [int(number) for _, number in found] == list(range(len(found)))
    assert names == ["default", *(value.lower() for value in OPTIONS[key].values)]
