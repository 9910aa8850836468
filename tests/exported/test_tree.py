"""`py-ort export TREE`: folders mirrored, up-to-date models skipped, one table at the end."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import small_models
from onnx import helper, numpy_helper

import py_ort
from py_ort.compiler.load.digest import file_digest
from py_ort.compiler.package.format import is_package
from py_ort.exceptions import EngineError, InvalidArgument, InvalidProtobuf, PyOrtError, Timeout
from py_ort.exporting import ExportOptions, export_tree
from py_ort.exporting.compile_process import CompileProcess, Limits
from py_ort.exporting.tree import RECORD

WASM = ExportOptions(providers=("wasm",))


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    folder = tmp_path / "models"
    for name in ("bert/onnx/model.onnx", "add.onnx", ".hidden/x.onnx", "node_modules/y/z.onnx", "out/old.onnx"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(small_models.add())
    return folder


def statuses(tree: Path, output: Path, options: ExportOptions = WASM, **more: bool) -> dict[str, str]:
    rows = export_tree(tree, output, options=options, **more)
    return {row.file.relative_to(output).as_posix(): row.status for row in rows}


def test_folders_are_mirrored_and_what_is_up_to_date_is_skipped(tree: Path) -> None:
    output = tree / "out"  # within the tree, but not one of its models
    assert statuses(tree, output) == {"add.pyort": "exported", "bert/onnx/model.pyort": "exported"}
    assert {file.relative_to(output).as_posix() for file in output.rglob("*") if file.is_file()} == {
        *("add.pyort", "bert/onnx/model.pyort", "old.onnx", RECORD)
    }
    assert set(statuses(tree, output).values()) == {"up to date"}
    (tree / "add.onnx").write_bytes(small_models.gather())
    assert statuses(tree, output) == {"add.pyort": "exported", "bert/onnx/model.pyort": "up to date"}
    (output / "add.pyort").unlink()
    assert statuses(tree, output)["add.pyort"] == "exported"
    assert set(statuses(tree, output, force=True).values()) == {"exported"}
    other = ExportOptions(providers=("wasm",), shapes=({"x": [2, 3]},))
    assert statuses(tree / "bert", output / "bert", other) == {"onnx/model.pyort": "exported"}
    (output / RECORD).write_text("[1]")
    assert set(statuses(tree, output).values()) == {"exported"}


def test_json_of_the_command(tree: Path, tmp_path: Path, py_ort_command: Any) -> None:
    (tree / "bad.onnx").write_bytes(b"no model")
    arguments = ("export", tree, "-o", tmp_path / "out", "--provider", "wasm", "--json", "-")
    status, out, said = py_ort_command(*arguments)
    found = {Path(row["model"]).name: (row["status"], row["error"]) for row in json.loads(out)["models"]}
    bad, why = found.pop("bad.onnx")
    assert set(found) == {"add.onnx", "model.onnx", "old.onnx"} and set(found.values()) == {("exported", "")}
    assert bad == "failed" and "is not an ONNX model" in why
    assert all(row["sources"] == [row["model"]] for row in json.loads(out)["models"])
    assert status == 1 and "bad.onnx: InvalidProtobuf" in said


def test_names_are_kept(tree: Path, tmp_path: Path) -> None:
    output = tmp_path / "site"
    assert set(statuses(tree / "bert", output, keep_names=True)) == {"onnx/model.onnx"}
    assert is_package(output / "onnx/model.onnx")
    # An exported file is no model.
    with pytest.raises(InvalidArgument, match=r"no \.onnx file"):
        export_tree(output, tmp_path / "again", options=WASM)
    with pytest.raises(InvalidArgument, match="the place of the model itself"):
        export_tree(tree, tree, options=WASM, keep_names=True)
    assert not is_package(tree / "add.onnx")


def test_external_data_count(tmp_path: Path) -> None:
    weight = numpy_helper.from_array(np.arange(64, dtype=np.float32), "w")
    node = helper.make_node("Add", ["x", "w"], ["y"])
    values = [small_models.floats(name, [64]) for name in ("x", "y")]
    model = helper.make_model(helper.make_graph([node], "g", values[:1], values[1:], [weight]))
    onnx.save_model(model, tmp_path / "m.onnx", save_as_external_data=True, location="m.data", size_threshold=0)
    output = tmp_path / "out"
    sources = (tmp_path / "m.onnx", tmp_path / "m.data")
    for status in ("exported", "up to date"):
        (row,) = export_tree(tmp_path, output, options=WASM)
        assert (row.status, row.sources) == (status, sources)
    (tmp_path / "m.data").write_bytes(np.ones(64, np.float32).tobytes())
    assert statuses(tmp_path, output) == {"m.pyort": "exported"}
    assert statuses(tmp_path, output) == {"m.pyort": "up to date"}


def test_the_command(tree: Path, tmp_path: Path) -> None:
    (tree / "broken.onnx").write_bytes(b"no model")

    def export(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "py_ort.cli", "export", *arguments, "-o", str(tmp_path / "site")]
        return subprocess.run([*command, "--provider", "wasm"], capture_output=True, text=True, check=False)

    done = export(str(tree), "--jobs", "2")
    assert done.returncode == 1, done.stderr
    table = {line.split()[0]: line.split()[2:-1] for line in done.stdout.splitlines() if line.startswith(" ")}
    assert [table[name][0] for name in ("add.onnx", "broken.onnx")] == ["exported", "failed"]
    assert "InvalidProtobuf" in done.stdout
    (tree / "broken.onnx").unlink()
    assert export(str(tree)).stdout.count("up to date") == 3
    one = str(tree / "add.onnx")
    assert "up to date" in export(one, "--update").stdout
    assert export(one, "--keep-names").stdout.startswith(str(tmp_path / "site/add.onnx"))
    assert "for a folder" in export(one, "--jobs", "2").stderr
    assert "single model" in export(str(tree), "--check").stderr


def test_a_process_may_die(tmp_path: Path) -> None:
    """A model that takes too long, needs too much memory, or is killed is an error of that model only."""
    model, output = tmp_path / "m.onnx", tmp_path / "m.pyort"
    model.write_bytes(small_models.add())
    late = CompileProcess(WASM, Limits(seconds=0.001))
    with pytest.raises(Timeout, match=r"m\.onnx took longer to compile than 0\.001 s"):
        late.export(model, output)
    small = CompileProcess(WASM, Limits(memory=64 << 20))
    with pytest.raises(PyOrtError, match=r"memory|ended with status"):
        small.export(model, output)
    process = CompileProcess(WASM)
    try:
        with pytest.raises(InvalidProtobuf):
            process.export(Path(__file__), output)
        assert process.export(model, output).files == [output]
    finally:
        process.end()
    with pytest.raises(EngineError, match="is ending"):
        process.export(model, output)


def test_export_needs_neither_browsers_nor_servers(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(small_models.add())
    script = (
        "import sys\nfor name in ('playwright', 'websockets', 'aiohttp', 'segno'): sys.modules[name] = None\n"
        f"sys.argv = ['py-ort', 'export', {str(tmp_path / 'm.onnx')!r}, '-o', {str(tmp_path)!r}]\n"
        "from py_ort.cli import main\nmain()\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)
    assert is_package(tmp_path / "m.pyort")


def test_without_playwright_sessions_say_so(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom importlib import util\nfind = util.find_spec\n"
        "util.find_spec = lambda name, *more: None if name == 'playwright' else find(name, *more)\n"
        "import py_ort\ntry: py_ort.InferenceSession('m.onnx')\nexcept py_ort.PyOrtError as e: print(e)\n"
    )
    (tmp_path / "m.onnx").write_bytes(small_models.add())
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "Playwright is not installed (`pip install playwright`); launcher='process'" in done.stdout


def test_the_record_is_readable(tree: Path, tmp_path: Path) -> None:
    export_tree(tree, tmp_path / "out", options=WASM)
    record = json.loads((tmp_path / "out" / RECORD).read_text())
    assert record["add.pyort"]["files"] == {"add.pyort": file_digest(tmp_path / "out/add.pyort")}


def test_other_contents_of_the_same_size_are_replaced(tmp_path: Path) -> None:
    """A plain export of another model to the same name, and a damaged part."""
    files = [tmp_path / "a/m.onnx", tmp_path / "b/m.onnx"]
    for file, number in zip(files, (1, 2), strict=True):
        file.parent.mkdir()
        file.write_bytes(constant_sum(number))
    output, exported = tmp_path / "out", tmp_path / "out/m.pyort"
    split = ExportOptions(providers=("wasm",), part_size=1 << 12)
    (row,) = export_tree(files[0], output, options=split)
    first = exported.read_bytes()
    py_ort.export(files[1], exported, providers=["wasm"], part_size=1 << 12)
    assert exported.stat().st_size == len(first) and exported.read_bytes() != first
    assert statuses(files[0], output, split) == {"m.pyort": "exported"}
    assert exported.read_bytes() == first
    part = output / "m.pyort.1"
    assert sum(file.stat().st_size for file in output.glob("m.pyort*")) == row.size
    part.write_bytes(bytes(part.stat().st_size))
    assert statuses(files[0], output, split) == {"m.pyort": "exported"}
    assert any(part.read_bytes())
    assert statuses(files[0], output, split) == {"m.pyort": "up to date"}


def constant_sum(number: int) -> bytes:
    """Return a model that adds a weight of 8 kB."""
    weight = numpy_helper.from_array(np.full(2048, number, np.float32), "w")
    values = [small_models.floats(name, [2048]) for name in ("x", "y")]
    node = helper.make_node("Add", ["x", "w"], ["y"])
    return helper.make_model(helper.make_graph([node], "g", values[:1], values[1:], [weight])).SerializeToString()
