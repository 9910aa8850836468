"""The first programs in README.md and the docs run as they are written."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def programs(file: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (ROOT / file).read_text(encoding="utf-8"), re.DOTALL)


PROGRAM = programs("README.md")[0]


def test_the_first_program(monkeypatch, capsys):
    monkeypatch.chdir(ROOT)
    names: dict = {}
    exec(compile(PROGRAM, "README.md", "exec"), names)
    with names["session"]:
        assert capsys.readouterr().out.strip() == PROGRAM.rpartition("# ")[2].strip()


def test_the_start_page(monkeypatch, capsys, tmp_path, py_ort_command) -> None:
    """Its model, its program, and the commands that need no other browser."""
    monkeypatch.chdir(tmp_path)
    for program in programs("docs/index.md"):
        exec(compile(program, "index.md", "exec"), {})
    assert "[[0.25 0.25 0.25 0.25]]" in (said := capsys.readouterr().out) and "Softmax" in said
    commands = re.findall(r"^py-ort (.*?)(?: +#.*)?$", (ROOT / "docs/index.md").read_text(), re.MULTILINE)
    ran = [command for command in commands if "model.onnx" in command]
    assert [command.split()[0] for command in ran] == ["run", "check", "placement", "compare"]
    for command in ran:
        assert py_ort_command(*command.split())[0] == 0
