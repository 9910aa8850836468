"""Wrong command lines: status 2 and one line, or a model's own error and status 1; never a traceback."""

import random

import pytest
import small_models

from py_ort.cli import cli

JUNK = ("", "-1", "0", "nope", "x=", "=", "x=1x", "x=-1", "N=x", "1e9", "/no/such/file", "/", "\u00e9", "9" * 14)
#: Options that would do as they are told: print a page of help, wait for a browser, or serve until Ctrl-C.
LEFT_OUT = {"help", "verbose", "browser", "launcher", "webgpu", "watch", "clear"}


@pytest.fixture
def model(tmp_path):
    file = tmp_path / "add.onnx"
    file.write_bytes(small_models.add())
    return file


@pytest.mark.parametrize("command", sorted(set(cli.commands) - {"browsers", "cache"}))
def test_every_option_with_wrong_values(py_ort_command, tmp_path, monkeypatch, command):
    """Any value of an option is refused, or the missing model is, before a browser starts."""
    monkeypatch.chdir(tmp_path)
    for parameter in cli.commands[command].params:
        if parameter.name in LEFT_OUT or parameter.param_type_name == "argument":
            continue
        for value in [()] if parameter.is_flag else [(value,) for value in JUNK]:
            status, out, err = py_ort_command(command, "/no/such/model", parameter.opts[0], *value)
            what = parameter.opts[0], value, err
            assert status in (1, 2) and "Traceback" not in err and "bug" not in err, what
            assert "py-ort" in err.splitlines()[-1] or "http" in out, what
            if status == 2:
                assert len(err.splitlines()) == 1 and not out, what


@pytest.mark.parametrize("seed", range(40))
def test_random_options_of_commands_without_a_browser(py_ort_command, model, tmp_path, monkeypatch, seed):
    monkeypatch.setenv("PY_ORT_CACHE", "1")
    monkeypatch.setenv("PY_ORT_CACHE_DIR", str(tmp_path / "plans"))
    monkeypatch.chdir(tmp_path)
    drawn = random.Random(seed)
    command = drawn.choice(["check", "passes", "cache"])
    arguments: list[str] = [] if command == "cache" else [str(drawn.choice([model, tmp_path, "/no/such", __file__]))]
    for parameter in drawn.sample(cli.commands[command].params, 2):
        if parameter.param_type_name == "argument" or parameter.name == "help":
            continue
        arguments += [parameter.opts[0]] + ([] if parameter.is_flag else [drawn.choice(JUNK)])
    status, _, err = py_ort_command(command, *arguments)
    assert status in (0, 1, 2) and "Traceback" not in err and "bug" not in err, (arguments, err)
    if status == 2:
        assert len(err.splitlines()) == 1, (arguments, err)


@pytest.mark.parametrize(
    "arguments, words",
    [
        (("run", "MODEL", "--provider", "webgup"), "Unknown Provider Type: webgup (did you mean 'webgpu'?)"),
        (("run", "MODEL", "--runs", "0"), "--runs"),
        (("profile", "MODEL", "--html", "/no/such/folder/a.html"), "no folder"),
        (("bench", "MODEL", "--json", "/"), "is a folder"),
        (("check", "--json", "MODEL", "MODEL"), "is a model: give another file, or - for stdout"),
        (("bench",), "--bridge"),
        (("run", "MODEL", "--kernels", "BROKEN"), "ZeroDivisionError"),
        (("nope",), "nope"),
        (("run",), "MODEL"),
        (("conformance", "onnx-node", "--filter", "("), "regular expression"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_said(py_ort_command, model, tmp_path, arguments, words):
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0\n")
    given = [{"MODEL": model, "BROKEN": broken}.get(argument, argument) for argument in arguments]
    status, out, err = py_ort_command(*given)
    assert status == 2 and not out and len(err.splitlines()) == 1 and words in err, err
    assert "--help" in err


def test_summaries_are_whole(py_ort_command):
    status, out, _ = py_ort_command("--help")
    commands = out.partition("Commands:")[2].splitlines()
    assert status == 0 and len(commands) > 14 and not any(line.endswith("...") for line in commands)


def test_advice_is_in_flags(py_ort_command, model):
    status, _, err = py_ort_command("run", model, "--random", "--provider", "webgpu", "--webgpu", "off")
    assert status == 1 and "--webgpu software" in err and "--provider wasm" in err
    assert "BrowserOptions" not in err.split("NoAdapter")[1] and "providers=" not in err
    status, _, err = py_ort_command("run", model, "--browser", "/no/such")
    assert status == 1 and "give --browser" in err


def test_no_command_and_none_of_that_name(py_ort_command):
    status, _, said = py_ort_command()
    assert status == 2 and said.startswith("Usage: py-ort")
    status, _, said = py_ort_command("chek")
    assert status == 2 and said.startswith("py-ort: No such command 'chek' (did you mean 'check'?).")
