"""Plans on disk: found by contents, options and version; shared by processes; limited; damaged ones are ignored."""

from __future__ import annotations

import logging
import os
import stat
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import onnx
import pytest
import small_models
from alarm import within
from click.testing import CliRunner
from forged_plans import HEADERS, forge
from graphs import parse
from onnx import TensorProto, helper

from py_ort.cli import cli
from py_ort.compiler.compile_options import CompileOptions
from py_ort.compiler.load.digest import FileStamp, file_digest
from py_ort.compiler.plan.cache import CacheEntry, PlanCache
from py_ort.compiler.plan.cached import CachedModel
from py_ort.exceptions import InvalidArgument
from py_ort.runtime.planning import Planner
from py_ort.runtime.session_model import Origin

PROVIDERS = ["webgpu", "wasm"]


def planned(source, cache, providers=PROVIDERS, **options):
    planner = Planner(Origin(source), None, cache)
    found = planner.plan(providers, CompileOptions(**options))
    planner.store()
    if cache is not None:
        cache.flush()
    return found


def blob(planned) -> bytes:
    return b"".join(bytes(part.make() if hasattr(part, "make") else part) for part in planned.parts())


def external_model(folder, values) -> str:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[len(values)], data_location=TensorProto.EXTERNAL)
    for key, value in (("location", "w.bin"), ("offset", 0), ("length", 4 * len(values))):
        tensor.external_data.add(key=key, value=str(value))
    (folder / "w.bin").write_bytes(np.asarray(values, np.float32).tobytes())
    nodes = [helper.make_node("Mul", ["x", "w"], ["y"])]
    ends = [small_models.floats(name, [len(values)]) for name in "xy"]
    path = folder / "model.onnx"
    path.write_bytes(small_models.model(nodes, ends[:1], ends[1:], [tensor]))
    return str(path)


@pytest.fixture
def cache(tmp_path):
    return PlanCache(tmp_path / "plans")


@pytest.mark.parametrize("how", ["bytes", "path"])
def test_a_second_plan_comes_from_the_cache(cache, tmp_path, how):
    source = small_models.add()
    if how == "path":
        (tmp_path / "add.onnx").write_bytes(source)
        source = tmp_path / "add.onnx"
    first, second = planned(source, cache), planned(source, cache)
    assert not isinstance(first, CachedModel) and isinstance(second, CachedModel)
    assert second.plan == first.plan and blob(second) == blob(first)
    for field in ("inputs", "outputs", "overridable", "metadata", "placement"):
        assert getattr(second, field) == getattr(first, field)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"providers": ["wasm"]}, id="providers"),
        pytest.param({"graph_optimization_level": "basic"}, id="level"),
        pytest.param({"free_dimension_overrides": {"N": 4}}, id="free dimension"),
        pytest.param({"input_shapes": {"x": (2, 3)}}, id="shapes"),
    ],
)
def test_other_options_are_another_plan(cache, other):
    planned(small_models.add(), cache)
    assert not isinstance(planned(small_models.add(), cache, **other), CachedModel)
    assert len(cache.entries()) == 2


def test_external_data_is_part_of_the_key(cache, tmp_path):
    path = external_model(tmp_path, [1, 2, 3])
    planned(path, cache)
    found = planned(path, cache)
    assert isinstance(found, CachedModel) and blob(found)[:12] == np.float32([1, 2, 3]).tobytes()
    external_model(tmp_path, [4, 5, 6])
    found = planned(path, cache)
    assert not isinstance(found, CachedModel) and blob(found)[:12] == np.float32([4, 5, 6]).tobytes()
    (tmp_path / "other").mkdir()
    other = external_model(tmp_path / "other", [7, 8, 9])
    assert blob(planned(other, cache))[:12] == np.float32([7, 8, 9]).tobytes()
    assert blob(planned(path, cache))[:12] == np.float32([4, 5, 6]).tobytes()


def _cut(data: bytes) -> bytes:
    return data[: len(data) // 2]


def _flip(data: bytes) -> bytes:
    return data[:200] + bytes([data[200] ^ 1]) + data[201:]


@pytest.mark.parametrize("damage", [_cut, _flip, lambda data: b"", lambda data: b"nonsense" * 20], ids=range(4))
def test_damaged_files_are_passed_over_with_a_warning(cache, damage, caplog):
    planned(small_models.add(), cache)
    (entry,) = cache.entries()
    entry.path.write_bytes(damage(entry.path.read_bytes()))
    with caplog.at_level(logging.WARNING, "py_ort"):
        assert not isinstance(planned(small_models.add(), cache), CachedModel)
    assert "is not used" in caplog.text
    assert isinstance(planned(small_models.add(), cache), CachedModel)  # written again


def _swapped(data: bytes) -> bytes:
    return data[:-12296] + data[-8200:-4104] + data[-12296:-8200] + data[-4104:]


@pytest.mark.parametrize("damage", [lambda data: data[:-9] + b"!" + data[-8:], _swapped], ids=["last byte", "blocks"])
def test_damaged_weights_are_noticed(cache, damage, caplog):
    graph = "g (float[1,64] x) => (float[1,67] y) { y = MatMul(x, w) }"
    model = parse(graph, {"w": np.random.default_rng(0).standard_normal((64, 67)).astype(np.float32)})
    first = planned(model.SerializeToString(), cache)
    (entry,) = cache.entries()
    entry.path.write_bytes(damage(entry.path.read_bytes()))
    with caplog.at_level(logging.WARNING, "py_ort"):
        assert blob(planned(model.SerializeToString(), cache)) == blob(first)
    assert "checksum of its weights" in caplog.text
    assert isinstance(planned(model.SerializeToString(), cache), CachedModel)


@pytest.mark.parametrize(
    "damage", [_cut, lambda data: bytes(64), lambda data: b"\x9d" * 64], ids=["cut", "zeros", "text"]
)
def test_damaged_notes_are_passed_over(cache, tmp_path, damage, monkeypatch):
    path = external_model(tmp_path, [1, 2, 3])
    monkeypatch.setattr(FileStamp, "settled", lambda stamp: True)
    noted = file_digest(Path(path), cache.notes)
    (note,) = cache.notes.iterdir()
    note.write_bytes(damage(note.read_bytes()))
    assert file_digest(Path(path), cache.notes) == noted


@pytest.mark.parametrize("wrong", HEADERS)
def test_forged_headers_are_passed_over_and_replaced(cache, wrong, caplog):
    first = planned(small_models.add(), cache)
    (entry,) = cache.entries()
    forge(entry.path, HEADERS[wrong])
    assert isinstance(CacheEntry(entry.path, 0, 0).about().model, str)
    with caplog.at_level(logging.WARNING, "py_ort"):
        found = planned(small_models.add(), cache)
    assert not isinstance(found, CachedModel) and found.plan == first.plan
    assert "is not used" in caplog.text
    assert isinstance(planned(small_models.add(), cache), CachedModel)


def test_a_forged_entry_reads_nothing_outside_the_models_folder(cache, tmp_path):
    secret, folder = tmp_path / "secret", tmp_path / "model"
    secret.write_bytes(b"secret" * 100)
    folder.mkdir()
    path = external_model(folder, [1, 2, 3])
    first = planned(path, cache)
    (entry,) = cache.entries()
    stamp = FileStamp.of(secret).to_json()
    forge(entry.path, lambda header: header | {"external": {"../secret": stamp}, "pieces": [["../secret", 0, 64]]})
    found = planned(path, cache)
    assert not isinstance(found, CachedModel) and blob(found) == blob(first)


NO_FILES = ["pipe", "folder", "full folder", "device", "dangling link", "link to a pipe", "link to itself"]


@pytest.mark.parametrize("what", NO_FILES)
def test_what_is_no_file_is_passed_over_and_replaced(cache, tmp_path, what, caplog):
    planned(small_models.add(), cache)
    (entry,) = cache.entries()
    entry.path.unlink()
    put(what, entry.path, tmp_path)
    with within(60), caplog.at_level(logging.WARNING, "py_ort"):
        assert [entry.about().model for entry in cache.entries()] in ([], [""])
        assert not isinstance(planned(small_models.add(), cache), CachedModel)
        assert "is not used" in caplog.text or what == "dangling link"
        assert isinstance(planned(small_models.add(), cache), CachedModel)
        put(what, cache.folder / f"{'0' * 64}.plan", tmp_path)
        put(what, cache.notes / "note", tmp_path)
        cache.clear()
    assert [path for path in cache.folder.rglob("*") if path != cache.notes] == []


def put(what: str, path: Path, elsewhere: Path) -> None:
    path.parent.mkdir(exist_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif "folder" in what:
        path.mkdir()
        if what == "full folder":
            (path / "file").write_text("")
    elif what == "link to a pipe":
        target = elsewhere / f"pipe of {path.name}"
        os.mkfifo(target)
        path.symlink_to(target)
    else:
        path.symlink_to({"device": "/dev/zero", "dangling link": "nothing"}.get(what, path.name))


@pytest.mark.parametrize("what", [what for what in NO_FILES if "folder" not in what])
def test_notes_that_are_no_files_are_passed_over_and_replaced(cache, tmp_path, what, monkeypatch):
    path = external_model(tmp_path, [1, 2, 3])
    monkeypatch.setattr(FileStamp, "settled", lambda stamp: True)
    noted = file_digest(Path(path), cache.notes)
    (note,) = cache.notes.iterdir()
    note.unlink()
    put(what, note, tmp_path)
    with within(60):
        assert [file_digest(Path(path), cache.notes) for _ in range(2)] == [noted] * 2
    assert list(cache.notes.iterdir()) == [note] and note.read_text() == noted


@pytest.mark.parametrize("first", ["plan", "note"])
def test_the_folder_is_its_owners_alone_whoever_makes_it(tmp_path, first, monkeypatch):
    monkeypatch.setattr(FileStamp, "settled", lambda stamp: True)
    cache, path = PlanCache(tmp_path / "new" / "plans"), external_model(tmp_path, [1, 2, 3])
    before = os.umask(0)
    try:
        if first == "note":
            file_digest(Path(path), cache.notes)
        planned(small_models.add(), cache)
        planned(path, cache)
    finally:
        os.umask(before)
    made = {item: stat.S_IMODE(item.stat().st_mode) for item in [cache.folder, *cache.folder.rglob("*")]}
    assert sum(item.suffix == ".plan" for item in made) == 2 and len(list(cache.notes.iterdir())) == 1
    assert {mode for item, mode in made.items() if item.is_dir()} == {0o700}
    assert {mode for item, mode in made.items() if item.is_file()} == {0o600}


def test_a_file_in_the_place_of_the_folder(tmp_path, caplog):
    (cache := PlanCache(tmp_path / "plans")).folder.write_text("")
    with caplog.at_level(logging.WARNING, "py_ort"):
        assert not any(isinstance(planned(small_models.add(), cache), CachedModel) for _ in range(2))
    assert len(caplog.messages) == 1 and "the plan was not stored" in caplog.text


def test_the_least_recently_used_go(tmp_path):
    def model(n: int) -> bytes:
        weights = onnx.numpy_helper.from_array(np.full(5000, n, np.float32) + np.arange(5000, dtype=np.float32), "w")
        ends = [small_models.floats(name, [5000]) for name in "xy"]
        return small_models.model([helper.make_node("Mul", ["x", "w"], ["y"])], ends[:1], ends[1:], [weights])

    cache = PlanCache(tmp_path, max_bytes=50_000)
    for n in range(3):
        planned(model(n), cache)
        for entry in cache.entries():  # file systems' clocks are coarse
            os.utime(entry.path, (entry.used - 10, entry.used - 10))
        if n == 1:
            assert isinstance(planned(model(0), cache), CachedModel)  # used again: now the other one is older
    assert [cache_has(cache, model(n)) for n in range(3)] == [True, False, True]


def cache_has(cache, source) -> bool:
    return isinstance(Planner(Origin(source), None, cache).plan(PROVIDERS, CompileOptions()), CachedModel)


def test_two_processes_share_a_folder(tmp_path):
    (tmp_path / "add.onnx").write_bytes(small_models.add())
    script = textwrap.dedent("""
        import sys
        from pathlib import Path
        from py_ort.compiler.plan.cache import PlanCache
        from py_ort.compiler.compile_options import CompileOptions
        from py_ort.runtime.session_model import Origin
        from py_ort.runtime.planning import Planner
        cache = PlanCache(Path(sys.argv[1]) / "plans")
        for n in range(6):
            planner = Planner(Origin(Path(sys.argv[1]) / "add.onnx"), None, cache)
            planned = planner.plan(["wasm"], CompileOptions(free_dimension_overrides={"N": n}))
            planner.store()
            assert planned.plan[4:8] == b"PORT"
        cache.flush()
    """)
    both = [subprocess.Popen([sys.executable, "-W", "error", "-c", script, str(tmp_path)], stderr=-1) for _ in range(2)]
    for process in both:
        assert process.communicate(timeout=100)[1] == b"" and process.returncode == 0
    cache = PlanCache(tmp_path / "plans")
    assert len(cache.entries()) == 6 and not list(cache.folder.glob("*.part"))
    # A process that compiles nothing needs no compiler.
    script = script.replace("range(6)", "range(3)") + "assert 'onnx' not in sys.modules, 'onnx was imported'"
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, timeout=100)


def test_variables(monkeypatch, tmp_path):
    monkeypatch.setenv("PY_ORT_CACHE", "1")
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(tmp_path))
    monkeypatch.setenv("PY_ORT_CACHE_MB", "7")
    assert (PlanCache.default().folder, PlanCache.default().max_bytes) == (tmp_path, 7 << 20)
    for size in ("much", "²", "", "-1", "1e3", " 7", "٧", "9" * 5000):
        monkeypatch.setenv("PY_ORT_CACHE_MB", size)
        with pytest.raises(InvalidArgument, match="megabytes"):
            PlanCache.default()
    monkeypatch.delenv("PY_ORT_CACHE_MB")
    monkeypatch.setenv("PY_ORT_CACHE", "0")
    assert PlanCache.default() is None


def test_users_without_a_home_have_no_cache(monkeypatch, caplog):
    monkeypatch.setenv("PY_ORT_CACHE", "1")
    for name in ("PY_ORT_CACHE_DIR", "XDG_CACHE_HOME", "PY_ORT_CACHE_MB"):
        monkeypatch.delenv(name, raising=False)

    def homeless() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr(Path, "home", homeless)
    assert PlanCache.default() is None
    assert "PY_ORT_CACHE_DIR" in caplog.text


def test_command_line(cache, monkeypatch):
    monkeypatch.setenv("PY_ORT_CACHE", "1")
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(cache.folder))
    planned(small_models.add(), cache)
    run = lambda *arguments: CliRunner().invoke(cli, ["cache", *arguments], catch_exceptions=False).output  # noqa: E731
    assert "1 plans" in run() and "small" in run() and '"model": "small"' in run("--json", "-")
    planned(small_models.gather(), cache)
    assert "… and 1 older plans (--top 0 lists all)" in run("--top", "1")
    assert "2 plans removed" in run("--clear") and cache.entries() == []


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="gives files away, as root may")
def test_files_of_other_users_are_passed_over(cache, tmp_path, monkeypatch, caplog):
    """A folder set by the user may be one where others can write."""
    path = external_model(tmp_path, [1, 2, 3])
    planned(path, cache)
    (entry,) = cache.entries()
    os.chown(entry.path, 65534, 65534)
    with caplog.at_level(logging.WARNING, "py_ort"):
        assert not isinstance(planned(path, cache), CachedModel)
    assert "belongs to another user" in caplog.text
    assert entry.path.stat().st_uid == 0 and isinstance(planned(path, cache), CachedModel)

    monkeypatch.setattr(FileStamp, "settled", lambda stamp: True)
    noted = file_digest(Path(path), cache.notes)
    (note,) = cache.notes.iterdir()
    note.write_text("0" * 64)
    os.chown(note, 65534, 65534)
    assert file_digest(Path(path), cache.notes) == noted


def test_an_entry_under_the_name_of_another_is_passed_over(cache, caplog):
    planned(small_models.add(), cache)
    (first,) = cache.entries()
    planned(small_models.gather(), cache)
    (second,) = [entry for entry in cache.entries() if entry.path != first.path]
    first.path.write_bytes(second.path.read_bytes())
    assert not isinstance(planned(small_models.add(), cache), CachedModel)
    assert "the plan of another model" in caplog.text


def test_weights_that_change_in_their_place_are_noticed(cache, caplog):
    graph = "g (float[1,64] x) => (float[1,67] y) { y = MatMul(x, w) }"
    model = parse(graph, {"w": np.random.default_rng(1).standard_normal((64, 67)).astype(np.float32)})
    first = planned(model.SerializeToString(), cache)
    assert isinstance(planned(model.SerializeToString(), cache), CachedModel)  # validated once
    (entry,) = cache.entries()
    with entry.path.open("r+b") as file:
        file.seek(-2000, os.SEEK_END)
        file.write(b"nonsense")
    assert blob(planned(model.SerializeToString(), cache)) == blob(first)
    assert "checksum of its weights" in caplog.text


@pytest.mark.skipif(os.name != "posix", reason="has no such rights")
def test_the_users_folder_is_closed(tmp_path, monkeypatch):
    """Even if an earlier version, or a program that prepares homes, left it open; one set by the user stays open."""
    monkeypatch.delenv("PY_ORT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PY_ORT_CACHE", "1")
    monkeypatch.setattr(FileStamp, "settled", lambda stamp: True)
    path = external_model(tmp_path, [1, 2, 3])
    named = tmp_path / "named"
    for folder in (tmp_path / "py_ort" / "plans", named):
        for each in (folder, folder / "digests"):
            each.mkdir(parents=True)
            each.chmod(0o755)
    for cache in (PlanCache.default(), PlanCache(named)):
        planned(path, cache)
    modes = [stat.S_IMODE(f.stat().st_mode) for f in (tmp_path / "py_ort" / "plans", tmp_path / "py_ort/plans/digests")]
    assert modes == [0o700, 0o700]
    assert [stat.S_IMODE(f.stat().st_mode) for f in (named, named / "digests")] == [0o755, 0o700]
