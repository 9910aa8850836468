"""Write the C++ of operand_contracts.py, a table of contracts for the core; `generate.py` calls it."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

#: The language and the table, by their paths: the build runs this before the package can be imported.
_SOURCES = ("operand_contracts", "operands")


def cpp() -> str:
    """Return the header that has all contracts for the core."""
    contracts, language = (runpy.run_path(str(Path(__file__).with_name(f"{name}.py"))) for name in _SOURCES)
    quoted = json.dumps
    rows, symbols, operands = [], 0, 0
    arrays = []
    for number, ((domain, op_type), text) in enumerate(contracts["CONTRACTS"].items()):
        made = language["compiled"](text)
        symbols, operands = max(symbols, len(made.symbols)), max(operands, len(made.operands))
        lists = {
            "code": ("int16_t", [str(int(word)) for word in made.code]),
            "clauses": ("std::string_view", [quoted(each) for each in made.clauses]),
            "operands": ("std::string_view", [quoted(each) for each in made.operands]),
            "symbols": ("std::string_view", [quoted(each) for each in made.symbols]),
            "texts": ("std::string_view", [quoted(each) for each in made.texts]),
            "attributes": (
                "ContractAttribute",
                [
                    f"{{{quoted(name)}, {value if isinstance(value, int) else 0}, "
                    f"{quoted(value if isinstance(value, str) else '')}}}"
                    for name, value in made.attributes.items()
                ],
            ),
        }
        spans = []
        for name, (kind, items) in lists.items():
            if items:
                arrays.append(f"inline constexpr {kind} k{name.title()}{number}[] = {{{', '.join(items)}}};")
            spans.append(f"k{name.title()}{number}" if items else "{}")
        rows.append(f"    {{{quoted(domain)}, {quoted(op_type)}, {', '.join(spans)}}},")
    instructions = [
        f"kContract{instruction.name.title().replace('_', '')} = {int(instruction)}"
        for instruction in language["Instruction"]
    ]
    return "\n".join(
        [
            "// automatically generated of py_ort/schema/operand_contracts.py, do not modify",
            "#pragma once",
            "#include <cstdint>",
            "#include <span>",
            "#include <string_view>",
            "namespace py_ort::schema::gen {",
            f"enum : int16_t {{ {', '.join(instructions)} }};",
            "// The most that a contract has.",
            f"inline constexpr int kContractSymbols = {symbols}, kContractOperands = {operands};",
            "struct ContractAttribute { std::string_view name; int64_t number; std::string_view text; };",
            "struct ContractRow {",
            "  std::string_view domain, op_type;",
            "  std::span<const int16_t> code;",
            "  std::span<const std::string_view> clauses, operands, symbols, texts;",
            "  std::span<const ContractAttribute> attributes;",
            "};",
            *arrays,
            "inline constexpr ContractRow kContracts[] = {",
            *rows,
            "};",
            "}  // namespace py_ort::schema::gen",
            "",
        ]
    )
