"""From a mode to its cases: operator files, models, and what suite-test-list.jsonc names for a backend."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import onnx

from karma_compat.arguments import Arguments
from py_ort.exceptions import InvalidArgument
from py_ort.testing.case import Case
from py_ort.testing.sources import model_folder, onnx_node, ort_web


@dataclass(frozen=True)
class Group:
    """Cases under one heading, and tests that should be there but are `missing`: (name, reason)."""

    title: str
    cases: Sequence[Case] = ()
    missing: Sequence[tuple[str, str]] = ()


def groups(arguments: Arguments, backend: str, platform: str) -> list[Group]:
    """Return the cases of a mode on a backend.

    Args:
        arguments: The command line.
        backend: One of its backends.
        platform: The browser and system, which a test's `platformCondition` is matched with.

    Raises:
        InvalidArgument: A file is missing, or two rules of the list name one test.
    """
    data = Path(arguments.test_data)
    if arguments.mode == "op":
        file = operator_file(arguments.param, data)
        return [Group(f"#OpTest - {file.name}", ort_web.cases(file))]
    if arguments.mode == "model":
        return [Group("#ModelTest", _models(arguments.param))]
    listed = _read_list(data).get(backend) or {}
    return [
        node_group(listed.get("node", ()), data, platform),
        _model_group(listed.get("onnx", ()), data),
        *_operator_groups(listed.get("ops", ()), data, platform),
    ]


def operator_file(param: str, data: Path) -> Path:
    """Return an operator file from its path, its name or its stem."""
    name = param if param.endswith(".jsonc") else f"{param}.jsonc"
    places = [Path(param), Path(name), *(folder / name for folder in _folders(data, "ops"))]
    tried = list(dict.fromkeys(places))
    for path in tried:
        if path.is_file():
            return path
    raise InvalidArgument(f"there is no operator test {param!r}: looked for {', '.join(map(str, tried))}")


def node_group(rules: Iterable[Any], data: Path, platform: str) -> Group:
    """Return the node tests that the rules name: of the data's folders node/opsetN, else those of the onnx package."""
    found = _node_tests(data)
    where = f"{data} has not" if _node_folders(data) else f"onnx {onnx.__version__} has not, nor has {data} node tests"
    chosen: dict[str, Case] = {}
    missing = []
    for rule in rules:
        name, condition = _rule(rule)
        matching = [case for folder, case in found.items() if matches(name, folder)]
        if not matching:
            missing.append((name, f"the suite's list names it, {where}"))
        for case in matching:
            if case.id in chosen:
                raise InvalidArgument(f"two rules of the suite's list name {case.id}; the second is {name!r}")
            chosen[case.id] = case if re.search(condition, platform) else _skipped(case.id, f"not on {platform}")
    return Group("#NodeTest", list(chosen.values()), missing)


def matches(rule: str, folder: str) -> bool:
    """Return True if a rule names a folder "opsetN/test": "test", "opset{7,8}/test" or "!(opset14)/test"."""
    opset, _, test = rule.rpartition("/")
    own_opset, _, own_test = folder.partition("/")
    if test != own_test:
        return False
    if opset.startswith("!("):
        return own_opset not in opset[2:-1].split("|")
    if found := re.fullmatch(r"opset\{([\d,]+)\}", opset):
        return own_opset.removeprefix("opset") in found[1].split(",")
    return opset in ("", "*", own_opset)


def _node_tests(data: Path) -> dict[str, Case]:
    """By "opsetN/test"; read once for all backends."""
    return _read_node_tests(_node_folders(data))


def _node_folders(data: Path) -> tuple[Path, ...]:
    return tuple(folder for folder in _folders(data, "node") if folder.is_dir())


@cache
def _read_node_tests(folders: tuple[Path, ...]) -> dict[str, Case]:
    if folders:
        tests = {case.id: case for folder in folders for case in model_folder.cases(folder)}
    else:
        tests = {f"opset{onnx.defs.onnx_opset_version()}/{case.id}": case for case in onnx_node.cases()}
    return {name: replace(case, id=name, tolerance=ort_web.TOLERANCE) for name, case in tests.items()}


def _operator_groups(rules: Iterable[Any], data: Path, platform: str) -> list[Group]:
    listed = dict(_rule(rule) for rule in rules)
    files = {file.name: file for folder in _folders(data, "ops") for file in sorted(folder.glob("*.jsonc"))}
    result = []
    for name, file in files.items():
        cases = ort_web.cases(file)
        if name not in listed:
            cases = [_skipped(case.id, "not in the suite's list") for case in cases]
        elif not re.search(listed[name], platform):
            cases = [_skipped(case.id, f"not on {platform}") for case in cases]
        result.append(Group(f"#OpTest - {name}", cases))
    if missing := sorted(listed.keys() - files.keys()):
        result.append(
            Group("#OpTest", missing=[(name, f"the suite's list names it, {data} has not") for name in missing])
        )
    return result


def _models(param: str) -> list[Case]:
    paths = [Path(param)] if Path(param).exists() else sorted(Path().glob(param))
    cases = [
        replace(case, tolerance=ort_web.TOLERANCE, id=case.id if len(paths) == 1 else f"{path.as_posix()}: {case.id}")
        for path in paths
        for case in model_folder.cases(path)
    ]
    if not cases:
        raise InvalidArgument(f"no model with test_data_set folders at {param!r}")
    return cases


def _model_group(rules: Iterable[Any], data: Path) -> Group:
    cases: list[Case] = []
    missing = []
    for name, _ in map(_rule, rules):
        if folder := next((found for each in _folders(data, "models") for found in each.rglob(name)), None):
            cases += _models(str(folder))
        else:
            missing.append((name, f"the suite's list names it, {data} has no such model"))
    return Group("#ModelTest", cases, missing)


def _folders(data: Path, kind: str) -> list[Path]:
    return [data / "data" / kind, data / kind]


def _read_list(data: Path) -> Mapping[str, Any]:
    file = data / "suite-test-list.jsonc"
    if not file.is_file():
        raise InvalidArgument(f"there is no {file}: --test-data names the folder it is in (js/web/test in onnxruntime)")
    return dict(ort_web.read_jsonc(file))


def _rule(rule: Any) -> tuple[str, str]:
    """Return a rule's name and its condition on the platform."""
    return (rule, "") if isinstance(rule, str) else (rule["name"], rule.get("platformCondition", ""))


def _skipped(name: str, reason: str) -> Case:
    return Case(name, b"", (), ort_web.TOLERANCE, skip=reason)
