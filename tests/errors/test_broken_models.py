"""Models that cannot be used: which error, and what it says."""

import pytest
import small_models

from py_ort.exceptions import InvalidGraph, InvalidProtobuf, NoSuchFile, NotImplemented, PyOrtError


@pytest.mark.parametrize(
    "content, hint",
    [
        (b"", "empty"),
        (b"this is no model at all", "not an ONNX model"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:0", "git lfs pull"),
        (b"PK\x03\x04rest of a zip", "zip"),
        (b"\x08\x07", "no graph"),
    ],
    ids=["empty", "text", "lfs", "zip", "truncated"],
)
def test_not_a_model(new_session, tmp_path, content, hint):
    file = tmp_path / "model.onnx"
    file.write_bytes(content)
    for source in (file, content):
        with pytest.raises(InvalidProtobuf, match=hint):
            new_session(source)


def test_no_file(new_session, tmp_path):
    with pytest.raises(NoSuchFile, match=r"missing\.onnx") as caught:
        new_session(tmp_path / "missing.onnx")
    assert isinstance(caught.value, FileNotFoundError)


@pytest.mark.parametrize("domain", ["", "my.domain"])
@pytest.mark.parametrize("provider", ["webgpu", "wasm"])
def test_unknown_operator(new_session, provider, domain):
    with pytest.raises((InvalidGraph, NotImplemented), match="Frobnicate") as caught:
        new_session(small_models.unknown_operator(domain), providers=[provider])
    assert caught.value.op_type == "Frobnicate" and caught.value.domain == domain
    assert "frob" in str(caught.value)


def test_a_truncated_model(new_session):
    whole = small_models.add()
    with pytest.raises(PyOrtError):
        new_session(whole[: len(whole) // 2])
