"""What the documentation names is there: files that it links to, commands and their options."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from py_ort.cli import cli

ROOT = Path(__file__).parents[2]
PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), ROOT / "web/README.md", ROOT / "karma_compat/README.md"])
_LINK = re.compile(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)")
_COMMAND = re.compile(r"py-ort(?: -v+)? ([a-z]+)([^`\n]*)")
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
