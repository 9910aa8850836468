"""Refuses imports of web/src, of types too, that go up or sideways between its floors, and files that form a cycle;
includes of the C++ core likewise.

What is in a provider's folder others know by virtual modules only (web/bundling.mjs).

For Python, `[tool.importlinter]` of pyproject.toml says the same.
"""

import re
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

#: From the top down: a folder, or a file of web/src itself, imports what is below it only. Those of one floor do not
#: know each other. A folder within another has a floor of its own where it is named; providers' are alike.
FLOORS = [
    {"bundlers", "dev_server", "model_page", "node", "page_bench", "virtual"},
    {"module"},
    {"index", "bare_bench", "peer", "report"},
    {"page", "api"},
    {"providers/*/generate"},
    {"generate"},
    {"session"},
    {"jsep"},
    {"providers/*"},
    {"providers/*/kernels", "providers/*/user_kernels"},
    {"providers/*/wgsl"},
    {"device"},
    {"core"},
    {"images", "package"},
    {"wire"},
    {"contract"},
    {"errors", "host", "timeline", "turn"},
    {"schema"},
]
GENERATED = "schema"
#: A provider that runs kernels of another one, and that one.
BORROWS = {"providers/webgl": "providers/webgpu"}
PROVIDER = re.compile(r"^providers/[^/]+")
#: Of wasm_build/src: a folder includes headers of those below it only. Among the kernels is a step of the walk.
CORE_FLOORS = [{"abi", "kernels"}, {"session"}, {"ep"}, {"plan"}, {"core"}]
INCLUDE = re.compile(r'^#include "([a-z_]+)/', re.MULTILINE)
IMPORT = re.compile(r"""(?:\bfrom|\bimport)\s*\(?\s*['"](\.{1,2}(?:/[^'"]*)?)['"]""")
COMMENT = re.compile(r"^\s*(?://|/?\*).*$", re.MULTILINE)


def imports(path: Path) -> Iterator[Path]:
    """The files that this one imports."""
    for name in IMPORT.findall(COMMENT.sub("", path.read_text("utf-8"))):
        at = (path.parent / name).resolve()
        file = at.with_name(f"{at.name}.ts")
        yield file if file.is_file() else at / "index.ts"


def faults(source: Path) -> list[str]:
    """Return the faults of this folder, in words.

    Args:
        source: web/src.
    """
    source = source.resolve()
    floor = {name: i for i, names in enumerate(FLOORS) for name in names}

    def room(path: Path) -> str:
        within = path.relative_to(source)
        parents = [PROVIDER.sub("providers/*", each.as_posix()) for each in within.parents]
        folders = [each for each in parents if each in floor]
        return folders[0] if folders else within.parts[0].partition(".")[0]

    def provider(path: Path) -> str | None:
        match = PROVIDER.match(path.relative_to(source).as_posix())
        return match and match[0]

    files = [path for path in sorted(source.rglob("*.ts")) if room(path) != GENERATED]
    found = [f"{name}: in no floor of .ci/floors.py" for name in sorted({room(path) for path in files} - set(floor))]
    if found:
        return found
    graph = {path: {other for other in imports(path) if room(other) != GENERATED} for path in files}
    for path, others in graph.items():
        for other in sorted(others):
            here, there = room(path), room(other)
            if provider(other) not in (None, provider(path), BORROWS.get(provider(path) or "")):
                found.append(f"{path.relative_to(source)} imports {other.relative_to(source)}: a provider's alone")
                continue
            if here != there and floor[here] >= floor[there]:
                found.append(f"{path.relative_to(source)} imports {other.relative_to(source)}, which is not below it")
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        found.append(f"a cycle: {' <- '.join(str(path.relative_to(source)) for path in error.args[1])}")
    return found


def core_faults(source: Path) -> list[str]:
    """Return the faults of this folder, in words.

    Args:
        source: wasm_build/src.
    """
    floor = {name: i for i, names in enumerate(CORE_FLOORS) for name in names}
    files = [path for path in sorted(source.rglob("*")) if path.suffix in (".cc", ".h")]
    found = []
    for path in files:
        within = path.relative_to(source)
        here = within.parts[0]
        if here not in floor:
            found.append(f"{within}: in no floor of .ci/floors.py")
            continue
        for there in INCLUDE.findall(path.read_text("utf-8")):
            if there in floor and here != there and floor[here] >= floor[there]:
                found.append(f"{within} includes {there}, which is not below it")
    return found


def main() -> int:
    root = Path(__file__).parents[1]
    found = [f"web/src: {fault}" for fault in faults(root / "web/src")]
    found += [f"wasm_build/src: {fault}" for fault in core_faults(root / "wasm_build/src")]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
