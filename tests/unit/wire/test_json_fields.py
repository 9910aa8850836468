"""JSON in messages has one type in Python and one in the page, with the same fields."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NotRequired, get_origin, get_type_hints, is_typeddict

import pytest

from py_ort.runtime.peer import json_fields as peer_json_fields
from py_ort.wire import json_fields

WEB = Path(__file__).parents[3] / "web"
#: The compiler's words for a field: if there is one, and if it is optional.
REQUIRED, OPTIONAL = "false", "true"


#: Python's declarations, and the page's files with theirs.
SIDES = {"page": json_fields, "peer": peer_json_fields}
FILES = {"page": ["page/json_fields", "providers/webgpu/json_fields"], "peer": ["peer/json_fields"]}


def types(side: str) -> Iterator[type]:
    """Return the types that Python declares."""
    module = SIDES[side]
    return (kind for kind in vars(module).values() if is_typeddict(kind) and kind.__module__ == module.__name__)


def _problems(folder: Path, side: str, fields: dict[str, dict[str, str]]) -> str:
    """Return TypeScript's errors if the page's types must have exactly these fields."""
    lines = [f"import type * as {alias} from {json.dumps(path)};" for alias, path in _files(side).items()]
    lines.append("type Fields<T> = { [K in keyof T]-?: {} extends Pick<T, K> ? true : false };")
    lines.append("type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;")
    for name, wanted in fields.items():
        members = " ".join(f"{field}: {optional};" for field, optional in wanted.items())
        alias = next((alias for alias, path in _files(side).items() if name in _exported(path)), "page0")
        lines.append(f"export const {name}: Same<Fields<{alias}.{name}>, {{ {members} }}> = true;")
    (folder / "fields.ts").write_text("\n".join(lines))
    config = {
        "extends": str(WEB / "tsconfig.json"),
        "compilerOptions": {"noEmit": True, "types": []},
        "files": [
            str(folder / "fields.ts"),
            str(WEB / "src/virtual.d.ts"),
            str(WEB / "node_modules/@webgpu/types/dist/index.d.ts"),
        ],
        "include": [],
    }
    (folder / "tsconfig.json").write_text(json.dumps(config))
    command = [WEB / "node_modules/.bin/tsc", "--project", folder]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _declared(side: str) -> dict[str, dict[str, str]]:
    return {kind.__name__: {field: _optional(kind, field) for field in get_type_hints(kind)} for kind in types(side)}


def _optional(kind: Any, field: str) -> str:
    left_out = get_origin(get_type_hints(kind, include_extras=True)[field]) is NotRequired
    return OPTIONAL if left_out or field in kind.__optional_keys__ else REQUIRED


def _files(side: str) -> dict[str, str]:
    return {f"page{i}": str(WEB / "src" / file) for i, file in enumerate(FILES[side])}


def _exported(path: str) -> set[str]:
    """Names of the types in one of the files."""
    text = Path(f"{path}.ts").read_text()
    lists = re.findall(r"^export type \{([^}]*)\}", text, re.MULTILINE)
    return {
        *re.findall(r"^export (?:type|interface) (\w+)", text, re.MULTILINE),
        *(name.strip() for names in lists for name in names.split(",")),
    }


@pytest.mark.parametrize("side", SIDES)
def test_both_sides_have_the_same_fields(tmp_path: Path, side: str) -> None:
    declared = _declared(side)
    assert declared.keys() == {name for path in _files(side).values() for name in _exported(path)}
    assert _problems(tmp_path, side, declared) == ""


@pytest.mark.parametrize("field", ["walked", "run_ms"], ids=["a field more", "one that may be missing"])
def test_a_difference_is_seen(tmp_path: Path, field: str) -> None:
    fields = _declared("page")
    fields["RunInfo"][field] = OPTIONAL
    line = 3 + len(FILES["page"]) + list(fields).index("RunInfo")
    assert f"fields.ts({line}," in _problems(tmp_path, "page", fields)
