"""The check of how we write (.ci/english.py)."""

from __future__ import annotations

import subprocess

import pytest
from ci_programs import ci_program

LONG = "It has " + "word " * 40 + "here."


@pytest.fixture(scope="module")
def english():
    return ci_program("english")


@pytest.fixture
def repository(english, tmp_path, monkeypatch):
    """A branch of a repository whose main has one page with an avoided word."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    (tmp_path / "docs").mkdir()
    terms = (
        "# Terms\n\n## Words to avoid\n| a | b |\n|---|---|\n| goes on, lies | x |\n| word (of a decoder) | token |\n"
    )
    (tmp_path / "docs/terms.md").write_text(terms)
    (tmp_path / "page.md").write_text("It goes on.\n")
    for arguments in (["init", "-q", "-b", "main"], ["add", "."], ["commit", "-qm", "a"], ["checkout", "-qb", "b"]):
        subprocess.run([*git, *arguments], cwd=tmp_path, check=True)
    monkeypatch.setattr(english, "ROOT", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("a.md", "Short. " * 50, ""),
        ("a.md", LONG, "a.md:1: a sentence of 43 words"),
        ("a.md", f"# A page\n\nA line\n\n- {LONG}\n", "a.md:5: a sentence"),
        ("a.md", f"| a | {LONG} |\n", "a.md:1: a sentence"),
        ("a.md", f"A line:\n\n    {LONG}\n\n```\n{LONG}\n```\n`{LONG}`\n", ""),
        ("a.md", "A value lies here, and 'word' does not.\n", "a.md:1: 'lies'"),
        ("a.md", 'The message "it goes on" and the option `lies`.\n', ""),
        ("a.py", '"""What it does."""\n', "a.py:1: a docstring or comment begins with 'What'"),
        ("a.py", "def a():\n    '''Whether it is.'''\n", "a.py:2: a docstring or comment begins with 'Whether'"),
        ("a.py", "x = 1  #: That one.\n", "a.py:1: a docstring or comment begins with 'That'"),
        ("a.py", "# A comment.\n# What follows belongs to it.\nx = 'goes on'\n", ""),
        ("a.py", "x = 1  # goes on\n", "a.py:1: 'goes on'"),
        ("a.ts", "/** Those of a page. */\n", "a.ts:1: a docstring or comment begins with 'Those'"),
        ("a.cc", "// Whoever asks.\n", "a.cc:1: a docstring or comment begins with 'Whoever'"),
        ("a.ts", "/**\n * A page.\n * What is more.\n */\n", ""),
        ("a.py", "# what it does\n", "a.py:1: a docstring or comment begins with 'what'"),
        ("a.py", "x = 1  # one\ny = 2  # Whether it is\n", "a.py:2: a docstring or comment begins with 'Whether'"),
        ("a.py", "x = 1\n'''What it is.'''\n", "a.py:2: a docstring or comment begins with 'What'"),
        ("a.py", "'''A.\n\nArgs:\n    *a: Whether.\n'''\n", "a.py:4: a docstring or comment begins with 'Whether'"),
        ("a.py", "'''A.\n\nReturns:\n    That one.\n'''\n", "a.py:4: a docstring or comment begins with 'That'"),
        ("a.py", "'''A line.\n\nIt goes on\n'''\n", "a.py:3: 'goes on'"),
        ("a.py", "x = '''A line.\n\nIt goes on\n'''\n", ""),
        ("a.ts", "x = 1; // Whether it is\n", "a.ts:1: a docstring or comment begins with 'Whether'"),
        ("a.ts", "x = 'a // what' + \"https://that\"; // goes on\n", "a.ts:1: 'goes on'"),
        (
            "a.ts",
            "/**\n * A page.\n *\n * @param a that\n * @returns b\n */\n",
            "a.ts:4: a docstring or comment begins",
        ),
        ("a.ts", "x = 1 * that;\nlies = 2; /* a comment\n goes */\n", ""),
        ("a.fbs", "table A { a: int; /* what */ }\n", "a.fbs:1: a docstring or comment begins with 'what'"),
        ("a.c", "int a;  // Those\n", "a.c:1: a docstring or comment begins with 'Those'"),
        ("a.html", "<p>What <!-- it goes on -->\n", "a.html:1: 'goes on'"),
        ("a.toml", "a = 1 # What\n", "a.toml:1: a docstring or comment begins with 'What'"),
        ("Makefile", "a:  # b\n\techo What $# # that\n", "Makefile:2: a docstring or comment begins with 'that'"),
    ],
)
def test_faults_are_found(english, repository, name, text, fault):
    (repository / name).parent.mkdir(exist_ok=True)
    (repository / name).write_text(text)
    subprocess.run(["git", "add", "."], cwd=repository, check=True)
    found = [*english.faults()]
    assert len(found) == bool(fault) and all(fault in each for each in found), found


@pytest.mark.parametrize("main", ["absent", "beyond the history"])
def test_a_clone_without_main_has_no_new_lines(english, repository, tmp_path, monkeypatch, main):
    """Continuous integration clones one commit, on a branch of any name."""
    git = ["git", "-c", "user.name=a", "-c", "user.email=a@example.com"]
    (repository / "page.md").write_text("It goes on, and lies.\n")
    subprocess.run([*git, "commit", "-qam", "b"], cwd=repository, check=True)
    clone = tmp_path / "clone"
    source = f"file://{repository}"
    subprocess.run([*git, "clone", "-q", "--depth=1", "--branch=b", source, clone], cwd=tmp_path, check=True)
    if main == "beyond the history":
        subprocess.run([*git, "fetch", "-q", "--depth=1", "origin", "main:main"], cwd=clone, check=True)
    monkeypatch.setattr(english, "ROOT", clone)
    assert [*english.faults()] == []
