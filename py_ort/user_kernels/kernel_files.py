"""Kernels from files: WGSL with a header of comments, or a Python module that registers them."""

from __future__ import annotations

import ast
import importlib.util
import os
import re
from pathlib import Path
from typing import Any

from py_ort.exceptions import InvalidArgument, NoSuchFile
from py_ort.user_kernels.kernel import UserKernel, required
from py_ort.user_kernels.registry import register_kernel, registered_kernels, set_kernel_file

_LINE = re.compile(r"\s*//\s*(\w+)(?:\s+(\w+))?\s*:\s*(.*?)\s*$")
_LISTS = ("inputs", "outputs", "host")
#: Header words with a name ("attribute alpha: 1.0") -> the field to which they add.
_NAMED = {
    **{"attribute": "attributes", "uniform": "uniforms", "constant": "constants", "example": "example"},
    **{"type": "types", "dtype": "dtypes", "shape": "shape"},
}
_TEXTS = ("doc", "functions", "threads", "shape")
_KINDS = {"int": int, "float": float, "str": str}


def load_kernels(path: str | os.PathLike[str]) -> list[UserKernel]:
    """Register the kernels of a .wgsl or .py file; return them.

    A .wgsl file begins with comments that declare it, `// word: value` or `// word name: value`, and has a whole module
    (with `@compute`), or the body of one thread. A .py file is run; it registers kernels, or leaves `UserKernel`s in
    its globals.

    Raises:
        NoSuchFile, InvalidArgument: There is no such file, it has no kernel, or a kernel is declared wrongly.
    """
    file = Path(path)
    if not file.is_file():
        raise NoSuchFile(f"there is no file {file}")
    if file.suffix == ".wgsl":
        made = [read_wgsl(file.read_text(), str(file))]
        set_kernel_file(made[0], file)
        register_kernel(made[0])
    elif file.suffix == ".py":
        made = _run_python(file)
    else:
        raise InvalidArgument(f"{file}: kernels come in .wgsl and .py files")
    return made


def read_wgsl(text: str, where: str = "the kernel") -> UserKernel:
    """Return the kernel that a WGSL text with a header declares. Its line numbers are kept."""
    fields: dict[str, Any] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() and not line.lstrip().startswith("//"):
            break
        if found := _LINE.match(line):
            try:
                _take(fields, *found.groups())
            except (ValueError, SyntaxError) as e:
                raise InvalidArgument(f"{where}, line {number}: {line.strip()!r}: {e}") from None
    if "name" not in fields:
        raise InvalidArgument(f"{where} has no line '// kernel: domain::Operator' at its top")
    fields["wgsl" if "@compute" in text else "body"] = text
    return UserKernel(**fields)


def _take(fields: dict[str, Any], word: str, name: str | None, value: str) -> None:
    if name is not None and word in _NAMED:
        fields.setdefault(_NAMED[word], {})[name] = _named_value(word, value)
    elif name is not None:
        return  # a sentence with a colon in it
    elif word == "kernel":
        fields["name"] = value
    elif word == "types":
        fields[word] = value.replace(",", " ").split()
    elif word == "dtype":
        fields["dtypes"] = value
    elif word in _LISTS:
        fields[word] = [item.strip() for item in value.split(",")]
    elif word == "workgroups":
        parsed: Any = ast.parse(f"[{value}]", mode="eval").body
        fields[word] = [ast.unparse(item) for item in parsed.elts]
    elif word == "workgroup_size":
        fields[word] = int(value)
    elif word in _TEXTS:
        fields[word] = value


def _named_value(word: str, value: str) -> Any:
    if word == "attribute":
        kind = _KINDS.get(value.removeprefix("required ").strip())
        return required(kind) if value.startswith("required ") and kind else ast.literal_eval(value)
    if word == "example":
        return ast.literal_eval(f"({value},)") if value[:1] not in "([" else ast.literal_eval(value)
    if word == "type":
        types = value.replace(",", " ").split()
        return types[0] if len(types) == 1 else types
    return value


def _run_python(file: Path) -> list[UserKernel]:
    before = set(registered_kernels().values())
    spec = importlib.util.spec_from_file_location(f"py_ort_user_kernels_{file.stem}", file)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    # Bypasses the import system's cache of bytecode: a file may change twice within a tick of its clock.
    exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    for value in list(vars(module).values()):
        if isinstance(value, UserKernel) and value not in registered_kernels().values():
            set_kernel_file(value, file)
            register_kernel(value)
    made = [kernel for kernel in registered_kernels().values() if kernel not in before]
    if not made:
        raise InvalidArgument(f"{file} declares no kernel: call py_ort.register_kernel(…) in it")
    return made
