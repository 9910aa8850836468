"""Refuses English that readers stumble over; CONTRIBUTING.md, "How we write", has the rules.

- Sentences of more than 40 words in pages of the documentation.
- Docstrings and comments that begin with What, Whether, That, Those or Whoever.
- Words to avoid (the last table of docs/terms.md) in the lines that this branch adds to pages, docstrings and comments.
"""

from __future__ import annotations

import ast
import io
import re
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

from lines import files

ROOT = Path(__file__).parents[1]
LONGEST = 40
TERMS = "docs/terms.md"
CODE = (".py", ".ts", ".mjs", ".cjs", ".js", ".cc", ".h", ".css")
GENERATED = re.compile(r".*/gen/|web/src/schema/")
FIRST_WORD = re.compile(r"(What|Whether|That|Those|Whoever)\b(?!')")
_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"`[^`]*`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_QUOTE = re.compile(r"\"[^\"]*\"|“[^”]*”")
_SENTENCE = re.compile(r"(?<=[.!?])[)*_]*\s+(?=[^a-z\s])")
_BLOCK = re.compile(r"^\s*(?:[-*] |\d+\. |#+ |\||<|:::|$)")
_WITH_DOCSTRING = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_SLASHES = re.compile(r"^\s*(?://[/!]?|/\*\*?|\*)\s?(.*)$")


def plain(markdown: str) -> str:
    """Return the text with code as one word, and links as their words."""
    return _LINK.sub(r"\1", _CODE_SPAN.sub("Code", markdown))


def paragraphs(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield each paragraph, list item and table cell with its first line's number."""
    blank = _FENCE.sub(lambda found: "\n" * found[0].count("\n"), markdown)
    begin, block = 1, ""
    for number, line in enumerate([*blank.splitlines(), ""], 1):
        if new := bool(_BLOCK.match(line)) or not block:
            yield begin, block
            begin, block = number, ""
        if line.startswith("|"):
            yield from ((number, cell) for cell in plain(line).split("|"))
        elif line.startswith("#"):
            yield number, line
        elif not line.lstrip().startswith("<") and not (new and line.startswith("    ") and not _BLOCK.match(line)):
            block = f"{block} {line}".strip()


def long_sentences(markdown: str) -> Iterator[tuple[int, str]]:
    """Yield the faults of a page."""
    for number, block in paragraphs(markdown):
        for sentence in _SENTENCE.split(plain(block).strip()):
            if (words := len(re.findall(r"[\w'’-]+", sentence))) > LONGEST:
                yield number, f"a sentence of {words} words, more than {LONGEST}: {sentence[:60]}…"


def comments(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield each docstring and each block of comments with its first line's number."""
    if path.suffix != ".py":
        last = -1
        for number, line in enumerate(text.splitlines(), 1):
            found = _SLASHES.match(line)
            if found and found[1].strip("/* "):
                if last != number - 1:
                    yield number, found[1]
                last = number
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, _WITH_DOCSTRING) and (docstring := ast.get_docstring(node)):
            yield node.body[0].lineno, docstring
    last = -1
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            if last != token.start[0] - 1:
                yield token.start[0], token.string.lstrip("#: ")
            last = token.start[0]


def words_to_avoid() -> re.Pattern[str]:
    """Return a pattern of the words in the last table of docs/terms.md."""
    table = (ROOT / TERMS).read_text("utf-8").split("\n## Words to avoid\n")[1]
    cells = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")][2:]
    words = [word for cell in cells if "(" not in cell for word in cell.split(", ")]
    return re.compile(rf"\b({'|'.join(map(re.escape, words))})\b", re.IGNORECASE)


def new_lines() -> Iterator[tuple[str, int, str]]:
    """Yield the lines that this branch and the work tree add to main: file, number, text."""
    base = git("merge-base", "HEAD", "main") or "HEAD"
    written = [f"*{suffix}" for suffix in (*CODE, ".md")]
    name, number = "", 0
    for line in git("diff", "--unified=0", "--no-renames", base, "--", *written).split("\n"):
        if line.startswith("+++ "):
            name = line[6:]
        elif found := re.match(r"@@ -\S+ \+(\d+)", line):
            number = int(found[1])
        elif line.startswith("+"):
            yield name, number, line[1:]
            number += 1


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def edited(name: str) -> bool:
    return name != TERMS and not GENERATED.match(name)


def faults() -> Iterator[str]:
    for path in files(ROOT):
        name = path.relative_to(ROOT).as_posix()
        if not edited(name) or path.suffix not in (*CODE, ".md"):
            continue
        text = path.read_text("utf-8")
        if path.suffix == ".md":
            yield from (f"{name}:{line}: {said}" for line, said in long_sentences(text))
        else:
            for line, comment in comments(path, text):
                if found := FIRST_WORD.match(comment):
                    yield f"{name}:{line}: a docstring or comment begins with {found[1]!r}"
    avoided = words_to_avoid()
    for name, line, text in new_lines():
        prose = name.endswith(".md") or re.search(r"#|//|^\s*\*", text)
        if edited(name) and prose and (found := avoided.search(_QUOTE.sub("", plain(text)))):
            yield f"{name}:{line}: {found[1]!r} is among the words to avoid ({TERMS})"


def main() -> int:
    found = [*faults()]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
