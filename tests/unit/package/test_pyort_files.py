"""`.pyort` files: reading returns what was compiled, weights are stored once, damage is reported."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import random
import re
import struct
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
import small_models

import py_ort
from py_ort.compiler import CompileOptions, compile_model
from py_ort.compiler.package.format import PREFIX, VERSION, Form, Header, PartEntry, PlanEntry, begins, read_header
from py_ort.compiler.package.read import Package
from py_ort.exceptions import InvalidArgument, InvalidProtobuf, NoSuchFile, NotImplemented
from py_ort.wire.parts import LazyPart, Part

WEBGPU, WASM = ["webgpu", "wasm"], ["wasm"]
_WORDS = [0, 1, 2, 4, 8, 100, 0x7F, 0xFFFF, 0x10000, 1 << 28, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFC, 0xFFFFFFFF]


@pytest.fixture(scope="module")
def exported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("exported") / "net.pyort"
    assert py_ort.export(small_models.two_products(), file, shapes=[{"x": [2, 4, 8, 8]}]) == [file]
    return file


def blob(parts: Sequence[Part]) -> bytes:
    return b"".join(bytes(p.make()) if isinstance(p, LazyPart) else bytes(p) for p in parts)


@pytest.mark.parametrize("shapes", [{}, {"x": [2, 4, 8, 8]}], ids=["any shape", "one shape"])
@pytest.mark.parametrize("providers", [WEBGPU, WASM], ids=lambda names: names[0])
def test_is_what_was_compiled(exported: Path, providers: list[str], shapes: dict[str, list[int]]) -> None:
    found = Package(exported).planned(providers, shapes)
    compiled = compile_model(
        small_models.two_products(), providers=providers, options=CompileOptions(input_shapes=shapes)
    )
    assert blob(found.parts()) == blob(compiled.parts())
    assert [(str(i), str(o)) for i, o in zip(found.inputs, found.outputs, strict=True)] == [
        ("NodeArg(name='x', type='tensor(float)', shape=['N', 4, 8, 8])",
         "NodeArg(name='y', type='tensor(float)', shape=['N', 7])")
    ]  # fmt: skip
    assert found.placement.to_json() == compiled.placement.to_json()
    assert found.metadata == compiled.metadata


def test_weights_are_there_once(exported: Path) -> None:
    header, _ = read_header(exported.read_bytes())
    weights = sum(array.nbytes for array in small_models.WEIGHTS.values())
    places = {place[:2] for plan in header.plans for place in plan.weights if place[1]}
    assert sum(size for _, size in places) < 1.1 * weights
    assert {form for plan in header.plans for _, _, form, *_ in plan.weights} >= {Form.AS_IS, Form.MATRIX, Form.SLICES}
    assert exported.stat().st_size < weights + sum(plan.size + plan.placement[1] + 3000 for plan in header.plans)


def test_integers_are_there_once(tmp_path: Path) -> None:
    (file,) = py_ort.export(small_models.integer_products(), tmp_path / "net.pyort")
    header, _ = read_header(file.read_bytes())
    wasm = next(plan for plan in header.plans if plan.providers == WASM)
    forms = [tuple(parameters) for _, _, form, *parameters in wasm.weights if form == Form.INTEGERS]
    assert sorted(forms) == [(5, 9, 0), (13, 0, 1)]
    found, compiled = Package(file).planned(WASM, {}), compile_model(small_models.integer_products(), providers=WASM)
    assert blob(found.parts()) == blob(compiled.parts())


@pytest.mark.parametrize("parameters", [(), (4, 9, 0), (5, 9), (5, 8, 0), (5, -9, 0), (0, 9, 0), (90, 0, 0)])
def test_damaged_integers(tmp_path: Path, parameters: Sequence[int]) -> None:
    (file,) = py_ort.export(small_models.integer_products(), tmp_path / "net.pyort")

    def change(told: dict) -> None:
        (plan,) = [plan for plan in told["plans"] if plan["providers"] == WASM]
        weights = plan["weights"]
        at = next(i for i, (_, _, *form) in enumerate(weights) if form == [Form.INTEGERS, 5, 9, 0])
        weights[at] = [*weights[at][:3], *parameters]

    with pytest.raises(InvalidProtobuf):
        Package(changed(file, change)).planned(WASM, {})


def test_in_parts(tmp_path: Path) -> None:
    files = py_ort.export(small_models.two_products(), tmp_path / "net.pyort", part_size=4096)
    assert [file.name for file in files[:3]] == ["net.pyort", "net.pyort.1", "net.pyort.2"]
    assert all(file.stat().st_size == 4096 for file in files[1:-1])
    assert blob(Package(files[0]).planned(WASM, {}).parts()) == blob(
        compile_model(small_models.two_products(), providers=WASM).parts()
    )
    with pytest.raises(NoSuchFile, match=r"net\.pyort\.1.*by its path"):
        Package(files[0].read_bytes())
    fewer = py_ort.export(small_models.two_products(), tmp_path / "net.pyort")
    assert sorted(tmp_path.iterdir()) == fewer, "parts of an earlier file are left"


def test_from_bytes(exported: Path) -> None:
    assert Package(exported.read_bytes()).planned(WASM, {}).plan == Package(exported).planned(WASM, {}).plan


def test_no_such_plan(exported: Path, tmp_path: Path) -> None:
    with pytest.raises(NotImplemented, match=r"no plan for wasm for the shapes \{'x': \[3, 4, 8, 8\]\}"):
        Package(exported).planned(WASM, {"x": [3, 4, 8, 8]})
    (file,) = py_ort.export(small_models.two_products(), tmp_path / "wasm.pyort", providers=["wasm"])
    with pytest.raises(NotImplemented, match="no plan for webgpu, wasm, but for: wasm"):
        Package(file).planned(WEBGPU, {})


def changed(file: Path | bytes, change: Callable[[dict], object]) -> bytes:
    """Return the file with another header and a correct checksum."""
    data = file if isinstance(file, bytes) else file.read_bytes()
    magic, size, _ = PREFIX.unpack_from(data)
    told = json.loads(data[PREFIX.size : PREFIX.size + size])
    change(told)
    text = json.dumps(told).encode()
    return PREFIX.pack(magic, len(text), zlib.crc32(text)) + text + data[PREFIX.size + size :]


def test_of_other_versions(exported: Path) -> None:
    with pytest.raises(NotImplemented, match=rf"is of version {VERSION + 1}, written by py_ort .*export the model"):
        Package(changed(exported, lambda told: told.update(version=VERSION + 1)))
    with pytest.raises(NotImplemented, match=r"plans of version 99, written by py_ort .*export the model again"):
        Package(changed(exported, lambda told: told.update(plan_version=99)))


def sliced(told: dict) -> list[int]:
    """A weight that is stored in slices."""
    return next(place for place in told["plans"][2]["weights"] if place[2] == Form.SLICES)


@pytest.mark.parametrize(
    "change",
    [
        lambda told: told["plans"][0].update(offset=-64),
        lambda told: told["plans"][0].update(size=2**60),
        lambda told: told["plans"][2]["weights"].__setitem__(0, [2**50, 4, 0]),
        lambda told: told["plans"][2]["weights"].pop(),
        lambda told: told["plans"][2].update(weights=[[0, 4, 7] for _ in told["plans"][2]["weights"]]),
        lambda told: told["plans"][2].update(weights=[[0, 64, 1] for _ in told["plans"][2]["weights"]]),
        lambda told: told.pop("inputs"),
        lambda told: told.update(size="many"),
        lambda told: told.update(size=told["size"] + 64),
        lambda told: told.update(plans={}),
        lambda told: told["checksums"].pop(0),
        lambda told: sliced(told).__setitem__(3, 7),
        lambda told: sliced(told).__setitem__(3, -4),
        lambda told: told.update(plans=[{**plan, "providers": WASM} for plan in told["plans"]]),
    ],
)
def test_damaged(exported: Path, change: Callable[[dict], object]) -> None:
    with pytest.raises(InvalidProtobuf):
        Package(changed(exported, change)).planned(WASM, {})


def test_cut_off_or_spoilt(exported: Path) -> None:
    data = exported.read_bytes()
    for spoilt in (data[:10], data[:200], data[:-1], data[:40] + b"?" + data[41:]):
        with pytest.raises(InvalidProtobuf):
            Package(spoilt)
    assert not begins(small_models.two_products())


@pytest.mark.parametrize("providers", [WEBGPU, WASM], ids=lambda names: names[0])
def test_damaged_contents(exported: Path, tmp_path: Path, providers: list[str]) -> None:
    """A different bit in anything that a plan reads is noticed, and nothing else is read."""
    header, start = read_header(exported.read_bytes())
    entry = next(plan for plan in header.plans if plan.providers == providers and not plan.shapes)
    file = tmp_path / "damaged.pyort"
    read = {(entry.offset, entry.size), entry.placement, *(place[:2] for place in entry.weights if place[1])}
    for offset, size in {(offset, header.size) for offset, _ in header.checksums} | read:
        data = bytearray(exported.read_bytes())
        data[start + offset + (size - 1 if (offset, size) in read else 0)] ^= 0x80
        file.write_bytes(data)
        used = any(offset == at for at, _ in read)
        try:
            blob(Package(file).planned(providers, {}).parts())
        except InvalidProtobuf as e:
            assert used
            assert re.search(
                rf"damaged\.pyort' is damaged: its \d+ bytes of data from {offset} on .*Copy it again", str(e)
            )
        else:
            assert not used


def test_damaged_part(tmp_path: Path) -> None:
    files = py_ort.export(small_models.two_products(), tmp_path / "net.pyort", part_size=4096)
    data = bytearray(files[2].read_bytes())
    data[100] ^= 1
    files[2].write_bytes(data)
    with pytest.raises(InvalidProtobuf, match=r"'net\.pyort\.2' is damaged"):
        blob(Package(files[0]).planned(WASM, {}).parts())


def test_of_the_first_version(exported: Path) -> None:
    """This version had no checksums."""
    old = changed(exported, lambda told: (told.update(version=1), told.pop("checksums")))
    with pytest.raises(NotImplemented, match=r"is of version 1, .*py-ort export MODEL"):
        Package(old)


def _mutate(told: dict, seed: int) -> None:
    """Replace a random part of plain data."""
    draw = random.Random(seed)
    places: list[tuple[Any, Any]] = []

    def walk(within: Any) -> None:
        for key in list(within) if isinstance(within, dict) else range(len(within)):
            places.append((within, key))
            if isinstance(within[key], (dict, list)):
                walk(within[key])

    walk(told)
    within, key = draw.choice(places)
    others = [None, True, -1, 0, 0.5, 7, 2**53, 2**70, "x", "", [], {}, [[]], [1, 2, 3], [within[key]]]
    if draw.random() < 0.1:
        del within[key]
    else:
        within[key] = draw.choice(others)


@pytest.mark.parametrize("seeds", [range(i, i + 100) for i in range(0, 600, 100)], ids=str)
def test_headers_of_strangers(exported: Path, seeds: range) -> None:
    for seed in seeds:
        with contextlib.suppress(InvalidProtobuf, NotImplemented, NoSuchFile):
            blob(Package(changed(exported, lambda told, seed=seed: _mutate(told, seed))).planned(WASM, {}).parts())


@pytest.mark.parametrize("seeds", [range(i, i + 100) for i in range(0, 600, 100)], ids=str)
def test_plans_of_strangers(exported: Path, seeds: range) -> None:
    header, start = read_header(exported.read_bytes())
    entry = next(plan for plan in header.plans if plan.providers == WASM and not plan.shapes)
    at = start + entry.offset
    for seed in seeds:
        draw, data = random.Random(seed), bytearray(exported.read_bytes())
        for _ in range(draw.choice([1, 1, 2, 8])):
            struct.pack_into("<I", data, at + 4 * draw.randrange(entry.size // 4), draw.choice(_WORDS))
        sums = {entry.offset: zlib.crc32(data[at : at + entry.size])}

        def repair(told: dict, sums: dict = sums) -> None:
            told["checksums"] = [[offset, sums.get(offset, crc)] for offset, crc in told["checksums"]]

        with contextlib.suppress(InvalidProtobuf):
            blob(Package(changed(bytes(data), repair)).planned(WASM, {}).parts())


def test_pages_know_the_same_header() -> None:
    text = (Path(__file__).parents[3] / "web/src/package/header.ts").read_text()
    for kind in (Header, PlanEntry, PartEntry):
        (body,) = re.findall(rf"interface {kind.__name__} {{\n(.*?)\n}}", text, re.DOTALL)
        assert re.findall(r"readonly (\w+)\??:", body) == [field.name for field in dataclasses.fields(kind)]


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "sub/part"])
def test_parts_lie_beside_the_file(exported: Path, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret").write_bytes(bytes(64))
    (tmp_path / "inner").mkdir()
    file = tmp_path / "inner/net.pyort"
    file.write_bytes(changed(exported, lambda told: told.update(parts=[{"name": name, "size": 64}])))
    with pytest.raises(NoSuchFile, match="cannot be opened"):
        Package(file)


def test_arguments(tmp_path: Path) -> None:
    file = tmp_path / "x.pyort"
    for arguments in ({"providers": []}, {"providers": "webgpu"}, {"providers": ["cuda"]}, {"part_size": 100}):
        with pytest.raises(InvalidArgument):
            py_ort.export(small_models.two_products(), file, **arguments)
    with pytest.raises(NoSuchFile):
        py_ort.export(tmp_path / "none.onnx", file)
    with pytest.raises(InvalidArgument):
        py_ort.export(small_models.two_products(), file, shapes=[{"x": [2, 4]}])
    assert not list(tmp_path.iterdir()), "nothing is left of what failed"
