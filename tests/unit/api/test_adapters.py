"""Files of LoRA adapters: the same for onnxruntime and for us."""

from __future__ import annotations

import numpy as np
import pytest

from py_ort import AdapterFormat, LoraAdapter, OrtValue, RunOptions
from py_ort.exceptions import InvalidArgument, NoSuchFile

native = pytest.importorskip("onnxruntime")
VALUES = {
    "a.weight": np.arange(6, dtype=np.float32).reshape(3, 2),
    "half": np.ones((1, 4), np.float16),
    "none of them": np.zeros((0, 4), np.float64),
    "odd bytes": np.arange(3, dtype=np.uint8),
}


def written(module, path):
    adapter = module.AdapterFormat()
    adapter.set_adapter_version(3)
    adapter.set_model_version(-4)
    adapter.set_parameters({name: module.OrtValue.ortvalue_from_numpy(array) for name, array in VALUES.items()})
    adapter.export_adapter(str(path))
    return path


def check(adapter):
    assert (adapter.get_format_version(), adapter.get_adapter_version(), adapter.get_model_version()) == (1, 3, -4)
    found = adapter.get_parameters()
    assert found.keys() == VALUES.keys()
    for name, array in VALUES.items():
        np.testing.assert_array_equal(found[name].numpy(), array, strict=True)


def test_onnxruntime_reads_what_we_write(tmp_path):
    import py_ort

    path = written(py_ort, tmp_path / "ours.onnx_adapter")
    check(native.AdapterFormat.read_adapter(str(path)))
    check(AdapterFormat.read_adapter(path))


def test_we_read_what_onnxruntime_writes(tmp_path):
    check(AdapterFormat.read_adapter(written(native, tmp_path / "theirs.onnx_adapter")))


def test_an_empty_one(tmp_path):
    AdapterFormat().export_adapter(tmp_path / "empty")
    assert AdapterFormat.read_adapter(tmp_path / "empty").get_parameters() == {}
    assert not native.AdapterFormat.read_adapter(str(tmp_path / "empty")).get_parameters()


def test_damaged_files(tmp_path):
    import py_ort

    data, path = written(py_ort, tmp_path / "whole").read_bytes(), tmp_path / "damaged"
    random = np.random.default_rng(5)
    for _ in range(300):
        damaged = bytearray(data)
        for place in random.integers(0, len(data), 4):
            damaged[place] = random.integers(256)
        path.write_bytes(damaged[: random.integers(1, len(data) + 1)])
        try:
            AdapterFormat.read_adapter(path)
        except InvalidArgument as e:
            assert "is no LoRA adapter" in str(e)
    for text in (b"", b"hello" * 9):
        path.write_bytes(text)
        with pytest.raises(InvalidArgument, match="is no LoRA adapter"):
            LoraAdapter().Load(path)
    with pytest.raises(NoSuchFile):
        LoraAdapter().Load(tmp_path / "nope")


def test_what_is_no_parameter_or_adapter(tmp_path):
    adapter = AdapterFormat()
    with pytest.raises(InvalidArgument, match="'w' is to be an OrtValue"):
        adapter.set_parameters({"w": np.ones(2)})
    adapter.set_parameters({"w": OrtValue(np.array(["a"]))})
    with pytest.raises(InvalidArgument, match="'w' is of type STRING"):
        adapter.export_adapter(tmp_path / "texts")
    with pytest.raises(TypeError):
        RunOptions().add_active_adapter(adapter)
