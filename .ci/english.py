"""Refuses English that readers stumble over; CONTRIBUTING.md, "How we write", has the rules.

- Sentences of more than 40 words in pages of the documentation.
- Docstrings, their entries (Args, Returns) and comments that begin with What, Whether, That, Those or Whoever.
- Words to avoid (the last table of docs/terms.md) in the lines that this branch adds to pages, docstrings and comments.
"""

from __future__ import annotations

import ast
import inspect
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
GENERATED = re.compile(r".*/gen/|web/src/schema/|.*package-lock\.json")
FIRST_WORD = re.compile(
    r"(?:\A|^ +\*{0,2}\w+(?:, \*{0,2}\w+)*: |^ *(?:Returns|Yields): *\n? +|^@param \S+ (?:- )?|^@returns? )"
    r"(What|Whether|That|Those|Whoever)\b(?!')",
    re.IGNORECASE | re.MULTILINE,
)
_FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
_CODE_SPAN = re.compile(r"`[^`]*`")
_LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
_QUOTE = re.compile(r"\"[^\"]*\"|“[^”]*”")
_SENTENCE = re.compile(r"(?<=[.!?])[)*_]*\s+(?=[^a-z\s])")
_BLOCK = re.compile(r"^\s*(?:[-*] |\d+\. |#+ |\||<|:::|$)")
_CODE = r"""(?P<code>(?:[^"'`]|"[^"]*"|'[^']*'|`[^`]*`)*?\s|)"""
_SLASHES, _HASHES, _TAGS = (
    re.compile(rf"{_CODE}(?:{mark})(?:\s+(?P<text>.*)|$)")
    for mark in (r"//[/!<]*|/\*+|^\s*\*", r"#+", r"<!--|\{#|//|/\*")
)
#: Lines with a comment, by the file's suffix; Python has a tokenizer.
COMMENT = {
    **dict.fromkeys((".ts", ".mjs", ".cjs", ".js", ".cc", ".h", ".c", ".css", ".fbs", ".jsonc"), _SLASHES),
    **dict.fromkeys((".txt", ".toml", ".yml", ".cmake", ""), _HASHES),
    **dict.fromkeys((".html", ".j2"), _TAGS),
}


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


def comment_lines(path: Path, text: str) -> Iterator[tuple[int, int, str, str]]:
    """Yield the comment of each line: number, column, the code before it, text."""
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                (number, column), code = token.start, token.line[: token.start[1]]
                yield number, column, code, token.string.lstrip("#: ")
    else:
        for number, line in enumerate(text.splitlines(), 1):
            if found := COMMENT[path.suffix].match(line):
                said = re.sub(r"\s*(\*/|-->|#\})$", "", found["text"] or "")
                yield number, line.find(found[0].strip()[0], len(found["code"])), found["code"], said


def blocks(path: Path, text: str) -> Iterator[tuple[int, str]]:
    """Yield each docstring, and each block of comments, with its first line's number."""
    if path.suffix == ".py":
        source = text.splitlines()
        for node in ast.walk(ast.parse(text)):
            if (
                isinstance(node, ast.Expr)
                and isinstance(node.value, ast.Constant)
                and isinstance(node.value.value, str)
            ):
                lines = "\n".join(source[node.lineno - 1 : node.end_lineno])
                yield node.lineno, inspect.cleandoc(lines.strip().lstrip("rR").strip("\"'"))
    begin, last, block = 0, (0, 0), ""
    for number, column, code, said in comment_lines(path, text):
        if block and said and not code.strip() and number == last[0] + 1 and column - last[1] in (0, 1):
            block += f"\n{said}"
        else:
            yield begin, block
            begin, block = number, said
        last = number, column
    yield begin, block


def words_to_avoid() -> re.Pattern[str]:
    """Return a pattern of the words in the last table of docs/terms.md."""
    table = (ROOT / TERMS).read_text("utf-8").split("\n## Words to avoid\n")[1]
    cells = [line.split("|")[1].strip() for line in table.splitlines() if line.startswith("|")][2:]
    words = [word for cell in cells if "(" not in cell for word in cell.split(", ")]
    return re.compile(rf"\b({'|'.join(map(re.escape, words))})\b", re.IGNORECASE)


def new_lines() -> set[tuple[str, int]]:
    """Return the lines that this branch and the work tree add to main: file and number."""
    base = git("merge-base", "HEAD", "main") or "HEAD"
    name, found = "", set()
    for line in git("diff", "--unified=0", "--no-renames", base).split("\n"):
        if line.startswith("+++ "):
            name = line[6:]
        elif hunk := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            found |= {(name, int(hunk[1]) + i) for i in range(int(hunk[2] or 1))}
    return found


def git(*arguments: str) -> str:
    done = subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True)
    return done.stdout.strip() if done.returncode == 0 else ""


def faults() -> Iterator[str]:
    avoided, added = words_to_avoid(), new_lines()
    for path in files(ROOT):
        name = path.relative_to(ROOT).as_posix()
        page = path.suffix == ".md"
        if name == TERMS or GENERATED.match(name) or not (page or path.suffix in (".py", *COMMENT)):
            continue
        text = path.read_text("utf-8", "replace")
        if page:
            yield from (f"{name}:{line}: {said}" for line, said in long_sentences(text))
        for line, block in [(1, text)] if page else blocks(path, text):
            for found in [] if page else FIRST_WORD.finditer(block):
                at = line + block.count("\n", 0, found.start(1))
                yield f"{name}:{at}: a docstring or comment begins with {found[1]!r}"
            for number, part in enumerate(block.split("\n"), line):
                if (name, number) in added and (found := avoided.search(_QUOTE.sub("", plain(part)))):
                    yield f"{name}:{number}: {found[1]!r} is among the words to avoid ({TERMS})"


def main() -> int:
    found = [*faults()]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
