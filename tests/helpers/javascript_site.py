"""The folder for the cases of tests/page/javascript_api.mjs: modules, models and the runtime, all static."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import numpy as np
import small_models
from graphs import parse
from native import native_session
from onnx import TensorProto, helper
from pictures import SMOOTH, by_pillow, decoder, saved

import py_ort
from py_ort.exporting.runtime_files import copy_runtime

_PAGES = Path(__file__).resolve().parents[1] / "page"


def strings() -> bytes:
    """y = x + x of floats, t = the strings s, which only the CPU supports."""
    text = [helper.make_tensor_value_info(name, TensorProto.STRING, ["N"]) for name in ("s", "t")]
    return small_models.model(
        [helper.make_node("Add", ["x", "x"], ["y"]), helper.make_node("Identity", ["s"], ["t"])],
        [small_models.floats("x", [4]), text[0]],
        [small_models.floats("y", [4]), text[1]],
    )


def forms() -> bytes:
    """Elements with another form on the GPU: read there, made there, and both only on the CPU."""
    types = {"b": TensorProto.BOOL, "i": TensorProto.INT64, "u": TensorProto.UINT64, "c": TensorProto.INT64}
    made = {
        "not_b": TensorProto.BOOL,
        "i_float": TensorProto.FLOAT,
        "u_float": TensorProto.FLOAT,
        "largest": TensorProto.INT64,
        "c_twice": TensorProto.INT64,
    }
    nodes = [
        helper.make_node("Not", ["b"], ["not_b"]),
        helper.make_node("Cast", ["i"], ["i_float"], to=TensorProto.FLOAT),
        helper.make_node("Cast", ["u"], ["u_float"], to=TensorProto.FLOAT),
        helper.make_node("ArgMax", ["i_float"], ["largest"], axis=0),
        helper.make_node("Add", ["c", "c"], ["c_twice"]),
    ]
    values = {
        name: helper.make_tensor_value_info(name, kind, [1 if name == "largest" else 3])
        for name, kind in {**types, **made}.items()
    }
    return small_models.model(nodes, [values[name] for name in types], [values[name] for name in made])


def labels() -> bytes:
    """Maps, as at the end of scikit-learn's classifiers."""
    zipped = helper.make_node("ZipMap", ["x"], ["y"], domain="ai.onnx.ml", classlabels_strings=["cat", "dog"])
    maps = helper.make_sequence_type_proto(
        helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    )
    return small_models.model(
        [zipped], [small_models.floats("x", ["N", 2])], [helper.make_value_info("y", maps)], domains=["ai.onnx.ml"]
    )


def odd_names() -> bytes:
    """Values with the names of members of every JavaScript object, and of options of runs."""
    names = ("constructor", "__proto__", "toString", "tag", "signal")
    one, other, made, tag, signal = (small_models.floats(name, [2]) for name in names)
    return small_models.model(
        [
            helper.make_node("Add", ["constructor", "__proto__"], ["toString"]),
            helper.make_node("Neg", ["constructor"], ["tag"]),
            helper.make_node("Abs", ["tag"], ["signal"]),
        ],
        [one, other],
        [made, tag, signal],
    )


def case_names() -> list[str]:
    """The names in `cases` of javascript_api.mjs."""
    files = [_PAGES / f"javascript_{part}.mjs" for part in ("damaged_files", "errors", "gpu", "sessions")]
    found = (re.findall(r"""^  (?:'(.+)'|"(.+)"): async""", file.read_text(), re.MULTILINE) for file in files)
    return [single or double for names in found for single, double in names]


def lay_out_mutated(folder: Path) -> None:
    """Write the models with damaged files, each with a feed x and the output y for it."""
    for name in ("integer_products", "windows"):
        model = getattr(small_models, name)()
        py_ort.export(model, folder / f"{name}.pyort")
        x = np.random.default_rng(2).standard_normal((2, 4, 8, 8)).astype(np.float32)
        (y,) = native_session(model).run(None, {"x": x})
        told = {"dims": x.shape, "x": x.ravel().tolist(), "y": y.ravel().tolist()}
        (folder / f"{name}.json").write_text(json.dumps(told))


def lay_out(folder: Path) -> None:
    """Write it."""
    copy_runtime(folder)
    for file in (*_PAGES.glob("javascript_*.mjs"), *_PAGES.glob("javascript_*.html")):
        shutil.copy(file, folder)
    small = {
        "add": small_models.add(),
        "strings": strings(),
        "forms": forms(),
        "odd_names": odd_names(),
        "labels": labels(),
    }
    small["endless"] = small_models.endless_loop()
    small["integers"] = small_models.add(TensorProto.INT64)
    small["clip"] = parse("g (float[a] x, float low) => (float[a] y) { y = Clip(x, low) }").SerializeToString()
    for name, model in small.items():
        py_ort.export(model, folder / f"{name}.pyort")
    for provider in ("wasm", "webgl"):
        py_ort.export(small_models.add(), folder / f"{provider}.pyort", providers=[provider])
    lay_out_mutated(folder)
    py_ort.export(small_models.two_products(), folder / "parted.pyort", part_size=2048)
    py_ort.export(small_models.two_products(4), folder / "100% #1?.pyort", part_size=2048)
    for damaged, name in enumerate(("spoilt", "cut_off")):
        (folder / name).mkdir()
        # With other weights: those that a session in the page has already are not read.
        other = small_models.two_products(2 + damaged)
        (_, _, last, *_) = py_ort.export(other, folder / name / "parted.pyort", part_size=2048)
        data = bytearray(last.read_bytes())
        data[700] ^= 0x10
        last.write_bytes(data[: len(data) - 100 * damaged])
    (folder / "add.onnx").write_bytes(small_models.add())
    py_ort.export(decoder(), folder / "decoder.pyort")
    for name in ("bmp", "png", "jpeg", "webp"):
        data = saved(SMOOTH, name)
        (folder / f"picture.{name}").write_bytes(data)
        (folder / f"picture.{name}.pixels").write_bytes(by_pillow(data).tobytes())
    page = folder / "index.html"
    if not page.exists():
        page.write_text("<!doctype html><title>No model</title>")
