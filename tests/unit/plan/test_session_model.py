"""All plans of a session are made from the same files, however the current folder and the files change."""

import numpy as np
import pytest
import small_models
from onnx import TensorProto, helper

from py_ort.compiler.compile_options import CompileOptions
from py_ort.compiler.load.model_files import DataFolder
from py_ort.compiler.plan.cache import PlanCache
from py_ort.exceptions import Fail, NoSuchFile
from py_ort.runtime.model_changes import ModelChanges
from py_ort.runtime.planning import Planner
from py_ort.runtime.session_model import Origin

VARIANT = ModelChanges(outputs=["y"])


def put(folder, value: float) -> None:
    """Write a model x * w with its w, this number, in a file next to it."""
    folder.mkdir(exist_ok=True)
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[3], data_location=TensorProto.EXTERNAL)
    tensor.external_data.add(key="location", value="w.bin")
    ends = [small_models.floats(name, [3]) for name in "xyz"]
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"]), helper.make_node("Neg", ["x"], ["z"])]
    (folder / "model.onnx").write_bytes(small_models.model(nodes, ends[:1], ends[1:], [tensor]))
    (folder / "w.bin").write_bytes(np.full(3, value, np.float32).tobytes())


def weights(origin: Origin, changes: ModelChanges | None = None, cache: PlanCache | None = None) -> list[float]:
    parts = Planner(origin, changes, cache).plan(["wasm"], CompileOptions()).parts()
    blob = b"".join(bytes(part.make() if hasattr(part, "make") else part) for part in parts)
    return np.frombuffer(blob[:12], np.float32).tolist()


@pytest.fixture
def here(tmp_path, monkeypatch):
    put(tmp_path / "a", 1)
    put(tmp_path / "b", 2)
    monkeypatch.chdir(tmp_path / "a")
    return tmp_path


@pytest.mark.parametrize("how", ["path", "bytes"])
def test_another_current_folder(here, monkeypatch, how):
    data = (here / "a/model.onnx").read_bytes()
    origin = Origin("model.onnx") if how == "path" else Origin(data, ".")
    assert weights(origin) == [1, 1, 1]
    monkeypatch.chdir(here / "b")
    assert weights(origin, VARIANT) == [1, 1, 1]
    assert weights(origin.anew(), VARIANT) == [1, 1, 1]


@pytest.mark.parametrize("cached", [False, True])
@pytest.mark.parametrize("file", ["model.onnx", "w.bin"])
def test_another_file(here, file, cached):
    cache = PlanCache(here / "plans") if cached else None
    if cache is not None:
        planner = Planner(Origin("model.onnx"), None, cache)
        planner.plan(["wasm"], CompileOptions())
        planner.store()
        cache.flush()
    origin = Origin("model.onnx")
    assert weights(origin, cache=cache) == [1, 1, 1]
    (here / "b" / file).replace(here / "a" / file)
    with pytest.raises(Fail, match=rf"{file}'? is not the file any more that the session was made of"):
        weights(origin, VARIANT)
    with pytest.raises(Fail, match="is not the file any more"):
        weights(origin, cache=cache)
    assert weights(origin.anew()) == ([2, 2, 2] if file == "w.bin" else [1, 1, 1])


def test_a_link_is_no_text(here):
    """`..` after a link is the parent of its target."""
    put(here / "b" / "inner", 3)
    (here / "a" / "link").symlink_to(here / "b" / "inner")
    assert weights(Origin("link/../model.onnx")) == [2, 2, 2]


def test_the_current_folder_is_gone(here, monkeypatch):
    gone = here / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    with pytest.raises(NoSuchFile):
        weights(Origin("model.onnx"))
    assert weights(Origin(here / "a/model.onnx")) == [1, 1, 1]


def test_an_empty_name_of_a_folder_is_none():
    assert Origin(b"", "").folder is None
    assert isinstance(Origin("x", "").folder, DataFolder)
