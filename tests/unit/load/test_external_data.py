"""External data is read from the model's folder only, for tensors in any place of the model."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx_ir as ir
import pytest
from alarm import within
from external_models import MORE_PLACES, PLACES, VALUES, external, hugging_face, model, save
from onnx import SequenceProto, SparseTensorProto, TensorProto, ValueInfoProto, helper, numpy_helper

from py_ort.compiler import compile_model
from py_ort.compiler.load import LoadedModel, load_model, read_whole
from py_ort.compiler.load.external import ExternalData
from py_ort.compiler.load.model_files import DataFolder
from py_ort.exceptions import InvalidArgument, InvalidGraph, NoSuchFile, OutOfMemory
from py_ort.ir.external_tensor import ExternalTensor
from py_ort.runtime.model_changes import ModelChanges
from py_ort.runtime.options import SessionOptions
from py_ort.runtime.planning import Planner
from py_ort.runtime.session_model import Origin

EVERYWHERE = [*PLACES, *MORE_PLACES]


def contents(loaded: LoadedModel) -> np.ndarray:
    """Return the model's one external tensor, in any place."""
    found: list[ExternalTensor] = []

    def look(item: object) -> None:
        if isinstance(item, ExternalTensor):
            found.append(item)
        elif isinstance(item, (list, tuple)):
            for each in item:
                look(each)
        elif isinstance(item, ir.Graph):
            look([value.const_value for value in item.initializers.values()])
            look([attribute.value for node in item for attribute in node.attributes.values()])

    look(loaded.model.graph)
    for function in loaded.model.functions.values():
        look(function.graph)
        look([attribute.value for attribute in function.attributes.values()])
    assert found and all(tensor.tobytes() == found[0].tobytes() for tensor in found)
    return found[0].numpy()


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The model's folder; the current one is another, with other data of the same name."""
    current = tmp_path / "current"
    current.mkdir()
    (current / "w.bin").write_bytes(bytes(16))
    monkeypatch.chdir(current)
    (tmp_path / "model").mkdir()
    return tmp_path / "model"


# Sparse tensors are read into the message; other code makes them dense.
@pytest.mark.parametrize("place", [place for place in EVERYWHERE if "sparse" not in place])
def test_locations_are_relative_to_the_models_folder(folder: Path, place: str) -> None:
    loaded = load_model(save(model(external("w.bin"), place), folder))
    wanted = VALUES[:1] if place == "ConstantOfShape" else VALUES
    np.testing.assert_array_equal(contents(loaded), wanted)
    assert list(loaded.external) == ["w.bin"]  # the plan cache checks it for changes


@pytest.mark.parametrize("place", EVERYWHERE)
@pytest.mark.parametrize(
    "location",
    ["ABSOLUTE", "../outside.bin", "sub/../../outside.bin", "link", "linked_folder/outside.bin", "/dev/zero", "zero"],
)
def test_nothing_outside_is_read(folder: Path, place: str, location: str) -> None:
    outside = folder.parent / "outside.bin"
    outside.write_bytes(VALUES.tobytes())
    (folder / "sub").mkdir()
    (folder / "link").symlink_to(outside)
    (folder / "linked_folder").symlink_to(folder.parent)
    (folder / "zero").symlink_to("/dev/zero")
    path = save(model(external(location.replace("ABSOLUTE", str(outside))), place), folder)
    with pytest.raises(InvalidGraph, match=r"tensor '(w|indices)'.* not in the model's folder .*Put the file beside"):
        load_model(path)


@pytest.mark.parametrize("place", EVERYWHERE)
@pytest.mark.parametrize("location", ["missing.bin", "sub", ".", "pipe", "missing/../w.bin", "dangling", "loop"])
def test_what_is_no_file_is_refused_at_once(folder: Path, place: str, location: str) -> None:
    (folder / "sub").mkdir()
    os.mkfifo(folder / "pipe")
    (folder / "dangling").symlink_to("nothing")
    (folder / "loop").symlink_to("loop")
    path = save(model(external(location), place), folder)
    with within(30), pytest.raises(NoSuchFile, match=r"tensor 'w' lies in the file .* put the model's external data"):
        load_model(path)


@pytest.mark.parametrize("location", ["./w.bin", "sub/w.bin", "sub/../w.bin", "../model/w.bin", "link", "hard"])
def test_what_resolves_to_a_file_inside_is_read(folder: Path, location: str) -> None:
    path = save(model(external(location)), folder)
    (folder / "sub").mkdir()
    (folder / "sub" / "w.bin").write_bytes(VALUES.tobytes())
    (folder / "link").symlink_to("sub/w.bin")
    (folder / "hard").hardlink_to(folder / "w.bin")
    np.testing.assert_array_equal(contents(load_model(path)), VALUES)


@pytest.mark.parametrize("name", [b"x" * 250, "wä.bin".encode(), b"a b\\c", b"\xff\xfe.bin"], ids=repr)
def test_names_of_all_kinds(folder: Path, name: bytes) -> None:
    made = model(external("@" * len(name))).SerializeToString().replace(b"@" * len(name), name)
    Path(os.fsdecode(bytes(folder) + b"/" + name)).write_bytes(VALUES.tobytes())
    np.testing.assert_array_equal(contents(load_model(save(made, folder))), VALUES)


@pytest.mark.parametrize("place", EVERYWHERE)
@pytest.mark.parametrize(
    "name", [b"x" * 5000, b"w.bin\0", b"a\0b", b"\xff\xfe", b"/" * 5000], ids=lambda n: repr(n[:8])
)
def test_names_that_no_file_has(folder: Path, place: str, name: bytes) -> None:
    made = model(external("@" * len(name)), place).SerializeToString().replace(b"@" * len(name), name)
    with pytest.raises((NoSuchFile, InvalidGraph), match="tensor 'w' lies in the file") as caught:
        load_model(save(made, folder))
    assert len(str(caught.value)) < 1000 and str(caught.value).isprintable()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize(
    ("entries", "words"),
    [
        *(
            ({key: text}, f"the {key} '")
            for key in ("offset", "length")
            for text in ("-4", "x", "+4", "0x4", "4.0", " 4")
        ),
        ({"offset": "9" * 5000}, "the offset '9"),
        ({"offset": "²"}, "the offset '²'"),
        ({"offset": 2**63 - 1}, "reaches to byte"),
        ({"offset": 13}, "reaches to byte"),
        ({"offset": 100}, "reaches to byte"),
        ({"length": 3}, "a length of 3"),
        ({"length": 17}, "a length of 17"),
    ],
)
def test_parts_that_do_not_go_with_file_and_tensor(folder: Path, place: str, entries: dict, words: str) -> None:
    with pytest.raises(InvalidGraph, match=f"tensor 'w' .*{words}"):
        load_model(save(model(external("w.bin", **entries), place), folder))


@pytest.mark.parametrize("entries", [{"offset": 8, "length": 8}, {"offset": 8}, {"offset": 8, "length": 0}])
def test_parts_of_a_file(folder: Path, entries: dict) -> None:
    loaded = load_model(save(model(external("w.bin", dims=(2,), **entries)), folder))
    np.testing.assert_array_equal(contents(loaded), VALUES[2:])


@pytest.mark.parametrize("change", ["no location", "empty", "twice", "negative", "string", "type 99"])
def test_tensors_that_cannot_be(folder: Path, change: str) -> None:
    tensor = external("w.bin" if change != "empty" else "")
    if change == "no location":
        del tensor.external_data[:]
    elif change == "twice":
        tensor.external_data.add(key="location", value="other.bin")
    elif change == "negative":
        tensor.dims[:] = [-1]
    elif change in ("string", "type 99"):
        tensor.data_type = TensorProto.STRING if change == "string" else 99
    with pytest.raises((InvalidGraph, NotImplementedError), match="tensor 'w' "):
        load_model(save(model(tensor), folder))


@pytest.mark.parametrize(
    "dtype",
    [
        *(TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.COMPLEX64),
        *(TensorProto.INT64, TensorProto.BOOL, TensorProto.INT4, TensorProto.UINT4),
    ],
)
def test_types(folder: Path, dtype: int) -> None:
    inside = helper.make_tensor("w", dtype, [3], [1, 0, 1])
    inside.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(inside), "w"))
    tensor = external("w.bin", dims=(3,), length=len(inside.raw_data))
    tensor.data_type = dtype
    path = save(model(tensor), folder)
    (folder / "w.bin").write_bytes(inside.raw_data)
    read = load_model(path).model.graph.initializers["w"].const_value
    assert read.tobytes() == inside.raw_data
    np.testing.assert_array_equal(read.numpy(), numpy_helper.to_array(inside))


# --- models from bytes


@pytest.mark.parametrize("place", EVERYWHERE)
def test_bytes_have_no_folder(folder: Path, place: str) -> None:
    """Even if a file of that name is in the current folder."""
    with pytest.raises(NoSuchFile, match=r"given as bytes has no folder: .*_file_folder_path"):
        load_model(model(external("w.bin"), place).SerializeToString())


def test_bytes_have_the_folder_that_the_caller_names(folder: Path) -> None:
    made = model(external("w.bin"))
    save(made, folder)
    loaded = load_model(made.SerializeToString(), folder=DataFolder(folder))
    np.testing.assert_array_equal(contents(loaded), VALUES)
    (folder.parent / "outside.bin").write_bytes(VALUES.tobytes())
    with pytest.raises(InvalidGraph, match="not in the model's folder"):
        load_model(model(external("../outside.bin")).SerializeToString(), folder=DataFolder(folder))


def test_a_named_folder_is_the_folder_of_models_with_a_path_too(folder: Path) -> None:
    """As in onnxruntime."""
    path = save(model(external("w.bin")), folder)
    other = folder.parent / "other"
    other.mkdir()
    (other / "w.bin").write_bytes((VALUES + 5).tobytes())
    planner = Planner(Origin(path, str(other)))
    np.testing.assert_array_equal(contents(planner._load()), VALUES + 5)


def test_the_entry_is_known() -> None:
    options = SessionOptions()
    options.add_session_config_entry("session.model_external_initializers_file_folder_path", "x")
    assert options.changed_without_effect() == []


@pytest.mark.parametrize("place", PLACES)
def test_files_in_memory(folder: Path, place: str) -> None:
    made = model(external("w.bin", offset=4), place).SerializeToString()
    file = memoryview(b"----" + VALUES.tobytes())
    wanted = VALUES[:1] if place == "ConstantOfShape" else VALUES
    np.testing.assert_array_equal(contents(load_model(made, files={"w.bin": file})), wanted)
    with pytest.raises(InvalidGraph, match="reaches to byte"):
        load_model(made, files={"w.bin": file[:7]})


def test_values_that_replace_external_ones_are_checked(folder: Path) -> None:
    made = model(external("missing.bin")).SerializeToString()
    for values, fits in ((VALUES + 1, True), (VALUES[:2], False), (VALUES.astype(np.int32), False)):
        changes = ModelChanges(external={"w": values})
        loaded = load_model(made, replaced=changes.replaced)
        if not fits:
            with pytest.raises(InvalidArgument, match=r"initializer 'w' is float\[4\]"):
                changes.apply(loaded)
            continue
        changes.apply(loaded)
        np.testing.assert_array_equal(loaded.model.graph.initializers["w"].const_value.numpy(), values)


# --- links


def test_the_cache_of_hugging_face(tmp_path: Path) -> None:
    """The model is a link too: its data may be next to the link's target."""
    path = hugging_face(tmp_path, model(external("model.onnx_data")), VALUES)
    np.testing.assert_array_equal(contents(load_model(path)), VALUES)


def test_a_link_elsewhere_in_the_cache_of_hugging_face(tmp_path: Path) -> None:
    path = hugging_face(tmp_path, model(external("model.onnx_data")), VALUES)
    (tmp_path / "outside").write_bytes(VALUES.tobytes())
    path.with_name("model.onnx_data").unlink()
    path.with_name("model.onnx_data").symlink_to("../../outside")
    with pytest.raises(InvalidGraph, match="not in the model's folder"):
        load_model(path)


# --- models that are no files


@pytest.mark.parametrize("name", ["pipe", "folder", "/dev/zero", "dangling", "x" * 5000, "a\0b", "w.bin/model.onnx"])
def test_models_that_are_no_files(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    (tmp_path / "dangling").symlink_to("nothing")
    (tmp_path / "w.bin").write_bytes(b"")
    with within(30), pytest.raises(NoSuchFile, match="no model at") as caught:
        Planner(Origin(tmp_path / name))._load()
    assert len(str(caught.value)) < 1000


# --- others that read tensors


def test_a_whole_model(folder: Path) -> None:
    path = save(model(external("w.bin")), folder)
    loaded = load_model(read_whole(path))
    np.testing.assert_array_equal(loaded.model.graph.initializers["w"].const_value.numpy(), VALUES)
    (folder / "w.bin").unlink()
    with pytest.raises(NoSuchFile):
        read_whole(path)


def test_tensors_of_messages(folder: Path) -> None:
    """As in the data sets of model folders."""
    save(model(external("w.bin")), folder)
    sequence = SequenceProto(elem_type=SequenceProto.TENSOR, tensor_values=[external("w.bin")] * 2)
    ExternalData(DataFolder(folder)).fill(sequence)
    assert [numpy_helper.to_array(tensor).tolist() for tensor in sequence.tensor_values] == [VALUES.tolist()] * 2
    sparse = SparseTensorProto(values=external("w.bin"), indices=external("w.bin", dims=(2,), length=8), dims=[4])
    ExternalData(DataFolder(folder)).fill(sparse)
    assert sparse.values.raw_data == VALUES.tobytes() and sparse.indices.raw_data == VALUES[:2].tobytes()
    for message in (external("/etc/passwd"), SparseTensorProto(values=external("/etc/passwd"))):
        with pytest.raises(InvalidGraph, match="not in the model's folder"):
            ExternalData(DataFolder(folder)).fill(message)


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts handles in /proc")
def test_a_file_is_opened_once_for_all_of_its_tensors(folder: Path) -> None:
    many = 200
    tensors = [external("big.bin", dims=(4096,), offset=16384 * n) for n in range(many)]
    for n, tensor in enumerate(tensors):
        tensor.name = f"w{n}"
    made = model(external("w.bin"))
    made.graph.initializer.extend(tensors)
    (folder / "big.bin").write_bytes(np.arange(4096 * many, dtype=np.float32).tobytes())
    before = len(list(Path("/proc/self/fd").iterdir()))
    loaded = load_model(save(made, folder))
    arrays = {name: value.const_value.numpy() for name, value in loaded.model.graph.initializers.items()}
    assert [arrays[f"w{n}"][0] for n in range(many)] == [4096 * n for n in range(many)]
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2


@pytest.mark.parametrize("shape", [[2**33], [2**33, 0]])
def test_tensors_that_no_page_can_hold(folder: Path, shape: list[int]) -> None:
    """The file is sparse: it takes no room on the disk."""
    with (folder / "w.bin").open("wb") as file:
        file.truncate(int(np.prod(shape)))
    w = TensorProto(name="w", data_type=TensorProto.INT8, dims=shape, data_location=TensorProto.EXTERNAL)
    w.external_data.add(key="location", value="w.bin")
    ends = [helper.make_tensor_value_info("i", TensorProto.INT64, [1]), ValueInfoProto(name="y")]
    graph = helper.make_graph([helper.make_node("Gather", ["w", "i"], ["y"])], "g", ends[:1], ends[1:], [w])
    (folder / "model.onnx").write_bytes(helper.make_model(graph, ir_version=9).SerializeToString())
    with pytest.raises(OutOfMemory, match=r"constant 'w' of shape \[8589934592(, 0)?\] has \d+ bytes"):
        compile_model(folder / "model.onnx", providers=["wasm"])
