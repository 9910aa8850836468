"""From a user's list to the providers to open."""

import pytest

from py_ort.exceptions import InvalidArgument
from py_ort.providers.resolution import resolve


@pytest.mark.parametrize("given", [None, []])
def test_default(given):
    assert list(resolve(given).providers) == ["webgpu", "wasm"]


@pytest.mark.parametrize(
    "given, expected",
    [
        (["webgpu"], ["webgpu"]),
        (["JsExecutionProvider", "WebGpuExecutionProvider", "cpu"], ["webgpu", "wasm"]),
        (["CPUExecutionProvider", "webgpu"], ["wasm", "webgpu"]),
        ([("WebGPU", {"deviceId": 1}), "wasm"], ["webgpu", "wasm"]),
    ],
    ids=str,
)
def test_names(given, expected):
    assert list(resolve(given).providers) == expected


def test_options_from_both_places():
    given = {"preferredLayout": "NCHW", "deviceId": 1}
    wanted = resolve([("webgpu", given), "wasm"], [{"deviceId": 2}, {}])
    assert wanted.providers == {"webgpu": {"preferredLayout": "NCHW", "deviceId": "2"}, "wasm": {}}


def test_what_cannot_be_opened_has_a_reason():
    wanted = resolve(["CUDAExecutionProvider", "wasm"])
    assert list(wanted.providers) == ["wasm"]
    assert list(wanted.dropped) == ["CUDAExecutionProvider"] and all(wanted.dropped.values())


@pytest.mark.parametrize("given, options", [(["nonsense"], None), ("webgpu", None), (["wasm"], [{}, {}])], ids=str)
def test_refused(given, options):
    with pytest.raises(InvalidArgument):
        resolve(given, options)
