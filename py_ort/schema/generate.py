"""Generate the Python, TypeScript and C++ code of the schema with flatc (Debian: flatbuffers-compiler), of the
scalar functions, the internal dialect, the operands' contracts, and the providers' options.

It is not in git: builds and installations make it, and after an edit of a .fbs file, or in a fresh tree that is not
built, `python -m py_ort.schema.generate` does, in a moment. Nothing but Python and flatc is needed for it.
"""

from __future__ import annotations

import runpy
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

SCHEMA = Path(__file__).parent
ROOT = SCHEMA.parent.parent
FOLDERS = PYTHON, TYPESCRIPT, CPP = SCHEMA / "gen", ROOT / "web/src/schema", ROOT / "wasm_build/include/py_ort/gen"


def generate(out: Path) -> dict[Path, Path]:
    """Write the generated code below `out`; return folder made -> folder it belongs in."""
    sources = sorted(str(p) for p in SCHEMA.glob("*.fbs"))
    for args in (["--python", "--gen-object-api"], ["--ts", "--gen-object-api"], ["--cpp", "--scoped-enums"]):
        subprocess.run(["flatc", *args, "-o", str(out / args[0][2:]), *sources], check=True)
    python, typescript = out / "python/py_ort/schema/gen", out / "ts/py-ort/schema/gen"
    for file in python.glob("*.py"):
        # A table that holds itself names its own module, which it does not import.
        own = f"py_ort.schema.gen.{file.stem}.{file.stem}T"
        file.write_text(file.read_text().replace(own, f"{file.stem}T"))
    for file in typescript.glob("*.ts"):
        text = file.read_text().replace("../../../py-ort/schema/gen/", "./")
        file.write_text("// @ts-nocheck\n" + text)
    index = [f"export * from './{file.stem}';\n" for file in sorted(typescript.glob("*.ts"))]
    (typescript / "index.ts").write_text("// automatically generated, do not modify\n" + "".join(index))
    folders = {python: PYTHON, typescript: TYPESCRIPT, out / "cpp": CPP}
    made_for = {target: made for made, target in folders.items()}
    contracts = runpy.run_path(str(SCHEMA / "operand_code.py"))["cpp"]()
    (made_for[CPP] / "operand_contracts.h").write_text(contracts)
    dialect = runpy.run_path(str(SCHEMA / "dialect_code.py"))
    (made_for[TYPESCRIPT] / "dialect.ts").write_text(dialect["typescript"]())
    (made_for[CPP] / "dialect.h").write_text(dialect["cpp"]())
    for file, code in runpy.run_path(str(SCHEMA / "scalar_code.py"))["code"]().items():
        (made_for[file.parent] / file.name).write_text(code)
    sys.path.insert(0, str(ROOT))  # builds run this before the package is installed
    options = runpy.run_module("py_ort.providers.option_code")
    (made_for[TYPESCRIPT] / "provider_options.ts").write_text(options["typescript"]())
    (made_for[TYPESCRIPT] / "providers.json").write_text(options["ranks"]())
    for name, code in options["c"]().items():
        (made_for[CPP] / name).write_text(code)
    return folders


def update(made: Path, target: Path) -> None:
    """Make `target` the same as `made`. Files that are so already keep their time: what was made of them stays good."""
    target.mkdir(parents=True, exist_ok=True)
    for old in target.iterdir():
        if old.is_file() and not (made / old.name).exists():
            old.unlink()
    for new in made.iterdir():
        kept = target / new.name
        if new.is_file() and not (kept.exists() and kept.read_bytes() == new.read_bytes()):
            shutil.copyfile(new, kept)


def main() -> int:
    if shutil.which("flatc") is None:
        print("flatc is not installed (Debian: apt-get install flatbuffers-compiler)", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as tmp:
        for made, target in generate(Path(tmp)).items():
            update(made, target)
    return 0


if __name__ == "__main__":
    sys.exit(main())
