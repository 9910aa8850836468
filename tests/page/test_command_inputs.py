"""--shape, --input and --dim: the same for all commands that know a model."""

import numpy as np
import onnx
import pytest
import small_models
from onnx import helper, numpy_helper

COMMANDS = ("run", "bench", "profile", "passes", "placement")
WASM = ("--provider", "wasm")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    "option, said",
    [
        (("--shape", "skale=3"), ["no input 'skale'", "did you mean 'scale'", "'x'"]),
        (("--dim", "NN=3"), ["no dimension with a name 'NN'", "did you mean 'N'"]),
        (("--shape", "x=axb"), ["--shape", "NAME=1x3x224x224"]),
        (("--dim", "N=-1"), ["--dim"]),
        (("--dim", "N"), ["--dim", "NAME=NUMBER"]),
        (("--dim", "N=99999999999"), ["--dim", "N=99999999999", "at most 2147483647"]),
        (("--dim", "N=1", "--dim", "N=2"), ["given twice"]),
        (("--input", "x=/no/such.npy"), ["--input", "No such file"]),
        (("--input", f"x={__file__}"), ["--input", "no .npy file"]),
    ],
)
def test_what_is_wrong_is_told_in_one_line(py_ort_command, add_file, command, option, said):
    status, out, err = py_ort_command(command, add_file, *WASM, *option)
    assert status == 2 and not out and "Traceback" not in err
    line = err.strip().splitlines()[-1]
    assert line.startswith("py-ort") or "--help" in line
    assert all(words in line for words in said), line


def test_an_input_that_is_not_there(py_ort_command, add_file, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((1, 3), np.float32))
    status, _, err = py_ort_command("run", add_file, *WASM, "--input", f"X={tmp_path / 'x.npy'}")
    assert status == 2 and "no input 'X'" in err and "'x', 'scale'" in err


def test_run(py_ort_json, add_file, tmp_path):
    x = np.array([[1, 2, 3]], np.float32)
    (tmp_path / "x.pb").write_bytes(numpy_helper.from_array(x).SerializeToString())
    options = ("--input", f"x={tmp_path / 'x.pb'}", "--shape", "scale=3", "--output-dir", tmp_path)
    status, said, err = py_ort_json("run", add_file, *WASM, *options)
    assert status == 0 and "scale: random float32 [3]" in err and "x: random" not in err
    assert said["outputs"][0]["shape"] == [1, 3]
    _, said, _ = py_ort_json("run", add_file, *WASM, "--random", "--dim", "N=4")
    assert said["outputs"][0]["shape"] == [4, 3]


def test_profile(py_ort_json, add_file):
    for option in (("--dim", "N=4"), ("--shape", "x=4x3")):
        _, said, _ = py_ort_json("profile", add_file, *WASM, "--runs", 1, *option)
        assert "x float32[4, 3]" in said["inputs"]


@pytest.mark.parametrize("option", [("--dim", "N=4"), ("--shape", "x=4x3"), ("--input", "x")])
def test_commands_that_only_compile(py_ort_json, tmp_path, option):
    """No text asks for sizes where these are known."""
    sizes = """<ir_version: 8, opset_import: ["": 17]> g (float[N,3] x) => (int64[2] y) {
        a = Shape(x)
        b = Add(a, a)
        y = Mul(b, b)
    }"""
    onnx.save(onnx.parser.parse_model(sizes), tmp_path / "size.onnx")
    np.save(tmp_path / "x.npy", np.ones((4, 3), np.float32))
    given = (option[0], f"x={tmp_path / 'x.npy'}") if option[0] == "--input" else option
    for command in ("passes", "placement"):
        counts = []
        for more in ((), given):
            status, said, err = py_ort_json(command, tmp_path / "size.onnx", *WASM, *more)
            assert status == 0, err
            counts.append(sum(said["nodes"].values()) if command == "passes" else len(said["nodes"]))
        assert counts == [3, 1], command


#: A product whose operands may not fit each other.
_PRODUCT = (
    [helper.make_node("MatMul", ["a", "b"], ["y"])],
    [small_models.floats("a", ["m", "k"]), small_models.floats("b", ["l", "n"])],
    [small_models.floats("y", None)],
)


def test_errors_of_random_inputs_say_how_to_give_others(py_ort_command, tmp_path):
    (tmp_path / "product.onnx").write_bytes(small_models.model(*_PRODUCT))
    status, _, err = py_ort_command("run", tmp_path / "product.onnx", *WASM, "--shape", "a=2x3", "--shape", "b=2x3")
    assert status == 1 and "fed were random numbers" in err and "--input a=FILE" in err
    (tmp_path / "gather.onnx").write_bytes(small_models.gather())
    np.save(tmp_path / "index.npy", np.array([9], np.int64))
    command = ("run", tmp_path / "gather.onnx", *WASM)
    status, _, err = py_ort_command(*command, "--input", f"index={tmp_path / 'index.npy'}")
    assert status == 1 and "--input" not in err
