"""Names that onnxruntime-web declares and a package lacks, by TypeScript's own judgment."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path

#: By an interface of onnxruntime-common: the type that must have the same members.
MEMBERS_OF = {
    "InferenceSession": "ort.InferenceSession",
    "InferenceSessionFactory": "typeof ort.InferenceSession",
    "InferenceSession.SessionOptions": "ort.InferenceSession.SessionOptions",
    "InferenceSession.RunOptions": "ort.InferenceSession.RunOptions",
    "InferenceSession.WebGpuExecutionProviderOption": "ort.InferenceSession.WebGpuExecutionProviderOption",
    "InferenceSession.TensorValueMetadata": "ort.InferenceSession.TensorValueMetadata",
    "InferenceSession.NonTensorValueMetadata": "ort.InferenceSession.NonTensorValueMetadata",
    "OnnxModelOptions": "ort.InferenceSession.SessionOptions",
    "TypedTensorBase": "ort.Tensor",
    "TypedTensorUtils": "ort.Tensor",
    "ConversionUtils": "ort.Tensor",
    "Properties": "ort.Tensor",
    "TensorFactory": "typeof ort.Tensor",
    "Tensor.DataTypeMap": "ort.Tensor.DataTypeMap",
    "Tensor.ElementTypeMap": "ort.Tensor.ElementTypeMap",
    "Env": "ort.Env",
    "Env.WasmFilePaths": "ort.Env.WasmFilePaths",
    "Env.WebAssemblyFlags": "ort.Env.WebAssemblyFlags",
    "Env.WebGLFlags": "ort.Env.WebGLFlags",
    "Env.WebGpuFlags": "ort.Env.WebGpuFlags",
    "Env.WebGpuProfilingDataV1": "ort.Env.WebGpuProfilingDataV1",
}
_HEAD = """import * as ort from 'PACKAGE';
type Known<T> = keyof { [K in keyof T as string extends K ? never : number extends K ? never : K]: T[K] };
"""
_NAME = r"(?:export )?(?:declare )?(?:interface|type|const|class|function|enum) (\w+)"
_MEMBER = re.compile(r"(?:readonly |get |set )*(?:(\w+)|'([\w-]+)')(?:<[^(]*>)?\??[(:]")


def declared(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield each name with a line of TypeScript that is an error if the name is missing.

    Args:
        folder: onnxruntime-common's dist/esm.
    """
    index = (folder / "index.d.ts").read_text()
    exported = set(re.findall(r"'\./(.+)\.js'", index))
    for file in sorted(folder.glob("*.d.ts")):
        text = re.sub(r"/\*.*?\*/", "", file.read_text(), flags=re.DOTALL)
        public = file.name.removesuffix(".d.ts") in exported
        yield from _of_file(text, public)


def _of_file(text: str, public: bool) -> Iterator[tuple[str, str]]:
    """Declarations begin in the first column, members four columns further in, those of namespaces eight."""
    outer = inner = ""
    for line in filter(str.strip, text.split("\n")):
        column, code = len(line) - len(line.lstrip()), line.strip()
        if column == 0:
            namespace = re.match(r"export declare namespace (\w+)", code)
            name = re.match(_NAME, code)
            outer, inner = (f"{namespace[1]}." if namespace else ""), name[1] if name else ""
            if public and name and code.startswith("export"):
                yield name[1], f"export {{ {name[1]} as NUMBER }} from 'PACKAGE';"
            for given in re.findall(r"^export \{ (\w+) \}", code) if public else []:
                yield given, f"export {{ {given} as NUMBER }} from 'PACKAGE';"
        elif column == 4 and outer:
            if name := re.match(_NAME, code):
                inner = name[1]
                yield f"{outer}{inner}", f"export type NUMBER = ort.{outer}{inner};"
        elif column == (8 if outer else 4) and outer + inner in MEMBERS_OF and (member := _MEMBER.match(code)):
            found, target = member[1] or member[2], MEMBERS_OF[outer + inner]
            yield f"{outer}{inner}.{found}", f"export const NUMBER: Known<{target}> = '{found}';"


def missing(names: Mapping[str, str], package: str, folder: Path, compiler: Path) -> set[str]:
    """Return the names that a package lacks.

    Args:
        names: From `declared`.
        package: Its name.
        folder: Its installation.
        compiler: TypeScript's tsc.
    """
    lines = [line.replace("NUMBER", f"n{i}").replace("PACKAGE", package) for i, line in enumerate(names.values())]
    text = _HEAD.replace("PACKAGE", package) + "\n".join(lines)
    (folder / "surface.ts").write_text(text)
    arguments = ["--noEmit", "--strict", "--module", "esnext", "--moduleResolution", "bundler", "--target", "es2022"]
    command = ["node", str(compiler), *arguments, "--lib", "es2023,dom", "--types", "", "surface.ts"]
    said = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False).stdout
    wrong = {int(line) for line in re.findall(r"^surface\.ts\((\d+),", said, re.MULTILINE)}
    assert len(wrong) == len(set(re.findall(r"^\S+\(\d+", said, re.MULTILINE))), said
    first = _HEAD.count("\n") + 1
    assert not {line for line in wrong if line < first}, said
    return {list(names)[line - first] for line in wrong}
