"""Refuses lines of more than 120 columns, also where no formatter breaks them: WGSL in templates, comments, prose.

And files of code of more than 400 lines, and a map of the house (docs/internals.md) of more than 2,500 words. Rows of a
Markdown table are excepted, which cannot be broken, and files that nobody writes by hand.
"""

import re
import subprocess
import sys
from pathlib import Path

WIDTH = 120
HEIGHT = 400
CODE = (".py", ".ts", ".mjs", ".cjs", ".js", ".css", ".cc", ".h")
MAP, WORDS = "docs/internals.md", 2500
#: Its generated tables, which do not count.
TABLES = re.compile(r"<!-- written by .*?<!-- end -->", re.DOTALL)
WRITTEN_BY_HAND = (*CODE, ".md")
GENERATED = re.compile(r"docs/operators\.md|web/src/schema/|.*/gen/")


def files(root: Path) -> list[Path]:
    """Return the files that git tracks or would track; in a copy without git, all files."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"], cwd=root, capture_output=True, text=True
    )
    if listed.returncode == 0:
        return [root / name for name in listed.stdout.splitlines() if (root / name).is_file()]
    folders = ("py_ort", "tests", "web/src", "web/test", "wasm_build", "docs")
    return [path for folder in folders for path in (root / folder).rglob("*") if path.is_file()]


def too_wide(path: Path, lines: list[str]) -> list[int]:
    return [
        i
        for i, line in enumerate(lines, 1)
        if len(line) > WIDTH and not (path.suffix == ".md" and line.startswith("|"))
    ]


def main() -> int:
    root = Path(__file__).parent.parent
    found = 0
    for path in files(root):
        name = path.relative_to(root).as_posix()
        if path.suffix in WRITTEN_BY_HAND and not GENERATED.match(name):
            lines = path.read_text("utf-8").splitlines()
            for line in too_wide(path, lines):
                print(f"{name}:{line}: more than {WIDTH} columns")
                found += 1
            if path.suffix in CODE and len(lines) > HEIGHT:
                print(f"{name}: {len(lines)} lines, more than {HEIGHT}")
                found += 1
            if name == MAP and (words := len(TABLES.sub("", "\n".join(lines)).split())) > WORDS:
                print(f"{name}: {words} words, more than {WORDS}: what is true of one module stands at its head")
                found += 1
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
