"""Files, commands and options that the documentation names are there; docstrings tell of what the API takes."""

from __future__ import annotations

import enum
import importlib
import inspect
import json
import re
import tomllib
from pathlib import Path

import pytest

import py_ort
from py_ort.cli import cli

ROOT = Path(__file__).parents[2]
PAGES = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "web/README.md", ROOT / "karma_compat/README.md"]
)
#: Modules from which users import.
PUBLIC = [
    f"py_ort.{name}" for name in ("exceptions", "jsep", "options", "plan", "providers", "session", "user_kernels")
]
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
_COMMAND = re.compile(r"py-ort(?: -v+)? ([a-z-]+)([^`\n]*)")
_OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]+")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_and_commands(page):
    text = page.read_text(encoding="utf-8")
    gone = [link for link in _LINK.findall(text) if not (page.parent / link).exists()]
    assert not gone, f"links lead nowhere: {gone}"
    for name, rest in _COMMAND.findall(text):
        command = cli.commands.get(name)
        if command is None:
            continue  # "py-ort needs …" is a sentence
        known = {option for parameter in command.params for option in parameter.opts}
        unknown = set(_OPTION.findall(rest)) - known
        assert not unknown, f"py-ort {name} has no {', '.join(sorted(unknown))}"


def test_every_command_is_in_the_readme():
    named = {name for name, _ in _COMMAND.findall((ROOT / "README.md").read_text(encoding="utf-8"))}
    assert set(cli.commands) <= named


def test_every_dependency_has_a_reason():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    web = json.loads((ROOT / "web/package.json").read_text(encoding="utf-8"))
    optional = [each for extra in project["optional-dependencies"].values() for each in extra]
    asked = [*project["dependencies"], *optional]
    names = {*(re.split(r"[<>=!~;\[ ]", each)[0] for each in asked), *web["dependencies"], *web["devDependencies"]}
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    page = text.partition("\n## Dependencies\n")[2].partition("\n## ")[0]
    rows = [row.split("|") for row in page.splitlines() if row.startswith("|")]
    told = {name.strip() for _, packages, why, *_ in rows if why.strip() for name in packages.split(",")}
    assert names <= told, f"CONTRIBUTING.md has no reason for {', '.join(sorted(names - told))}"


def _callables():
    """Every public callable: (its name, the callable, the docstring with its arguments)."""
    for module in (py_ort, *map(importlib.import_module, PUBLIC)):
        for name in module.__all__:
            found = getattr(module, name)
            if inspect.isclass(found):
                yield from _of_class(name, found)
            elif callable(found):
                yield name, found, inspect.getdoc(found)


def _of_class(name, found):
    if not issubclass(found, enum.Enum):
        made_by = next(cls for cls in found.__mro__ if "__init__" in vars(cls))
        yield name, found, inspect.getdoc(made_by)
    for member, method in inspect.getmembers(found, callable):
        ours = str(getattr(method, "__module__", "")).startswith("py_ort.")
        if ours and not member.startswith("_"):
            yield f"{name}.{member}", method, inspect.getdoc(method)


def _parameters(called):
    parameters = inspect.signature(called).parameters.values()
    return [p.name for p in parameters if p.name not in ("self", "cls")]


_MANY = {name: (name, called, doc) for name, called, doc in _callables() if len(_parameters(called)) >= 3}


@pytest.mark.parametrize(("name", "called", "doc"), _MANY.values(), ids=_MANY)
def test_docstrings_tell_of_every_argument(name, called, doc):
    sections = r"Args|Attributes" if inspect.isclass(called) else "Args"
    told = "".join(re.findall(rf"^(?:{sections}):((?:\n    .*)+)", doc or "", re.MULTILINE))
    missing = [p for p in _parameters(called) if not re.search(rf"^    {p}: \S", told, re.MULTILINE)]
    assert not missing, f"{name}: its docstring has no section Args that names {', '.join(missing)}"


def test_the_api_is_looked_through():
    found = {
        "InferenceSession",
        "InferenceSession.run",
        "OrtValue.ortvalue_from_numpy",
        "BrowserOptions",
        "compile_model",
    }
    assert found <= set(_MANY)


def test_the_reference_has_every_public_name() -> None:
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    named = set(re.findall(r"^::: py_ort\.(\w+)$", page, re.MULTILINE))
    assert named - {"exceptions"} == set(py_ort.__all__) - {"PyOrtError"}  # these are among them
    fixtures = {"ort_session", "ort_browser", "ort_target", "assert_matches_reference"}
    assert all(name in page for name in fixtures)


def test_the_site_has_every_page() -> None:
    listed = set(re.findall(r": ([\w/]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.MULTILINE))
    pages = {page.relative_to(ROOT / "docs").as_posix() for page in ROOT.glob("docs/**/*.md")}
    assert pages <= listed and listed - pages == {"changelog.md", "contributing.md", "karma_compat.md"}
