"""The check of the floors of web/src and of the core (.ci/floors.py), and circles in py_ort."""

import copy
from pathlib import Path

import grimp
import pytest
from ci_programs import ci_program

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def floors():
    return ci_program("floors")


SOUND = {
    "session/run.ts": "import type { A } from '../device/session';\nimport { b } from '../errors';\n",
    "device/session.ts": "",
    "providers/webgpu/device.ts": "import {\n  a,\n} from '../../schema';\n// import { c } from '../../page/page';\n",
    "providers/webgpu/index.ts": "export * from './device';\n",
    "errors.ts": "",
}


@pytest.mark.parametrize(
    ("added", "fault"),
    [
        ({}, None),
        (
            {"providers/webgpu/up.ts": "import type { X } from '../../session/run';"},
            "providers/webgpu/up.ts imports session/run.ts",
        ),
        ({"core/up.ts": "const x = await import(\n  '../session/run'\n);"}, "core/up.ts imports session/run.ts"),
        (
            {"providers/webgpu/kernels/a.ts": "import { x } from '../../../jsep/b';", "jsep/b.ts": ""},
            "providers/webgpu/kernels/a.ts imports jsep/b.ts",
        ),
        ({"errors.ts": "export type { X } from './device/session';"}, "errors.ts imports device/session.ts"),
        (
            {"session/a.ts": "import type { X } from '../providers/webgpu/device';"},
            "session/a.ts imports providers/webgpu/device.ts: a provider's alone",
        ),
        (
            {"providers/mirror/index.ts": "import { x } from '../webgpu/device';"},
            "providers/mirror/index.ts imports providers/webgpu/device.ts: a provider's alone",
        ),
        (
            {"providers/webgpu/a.ts": "import './b';", "providers/webgpu/b.ts": "import {\n  type A,\n} from './a';"},
            "a cycle: providers/webgpu/",
        ),
        ({"new/a.ts": ""}, "new: in no floor"),
    ],
    ids=["sound", "type", "dynamic", "sideways", "file", "provider", "of another", "cycle", "unknown"],
)
def test_faults(floors, tmp_path, added, fault):
    for name, text in {**SOUND, **added}.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = floors.faults(tmp_path)
    assert [fault in each for each in found] == ([] if fault is None else [True])


@pytest.mark.parametrize(
    ("name", "text", "fault"),
    [
        ("ep/a.cc", '#include "core/b.h"\n', None),
        ("core/a.cc", '#include "ep/b.h"\n', "core/a.cc includes ep"),
        ("kernels/a/b.cc", '#include <map>\n#include "abi/c.h"\n', "kernels/a/b.cc includes abi"),
        ("new/a.h", "", "new/a.h: in no floor"),
    ],
    ids=["down", "up", "sideways", "unknown"],
)
def test_core_faults(floors, tmp_path, name, text, fault):
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_text(text)
    found = floors.core_faults(tmp_path)
    assert [fault in each for each in found] == ([] if fault is None else [True])


def test_ours(floors):
    assert floors.faults(ROOT / "web/src") == []
    assert floors.core_faults(ROOT / "wasm_build/src") == []


@pytest.fixture(scope="module")
def imports():
    return grimp.build_graph("py_ort", exclude_type_checking_imports=False, cache_dir=None)


@pytest.mark.parametrize("folder", ["browser", "runtime", "wire"])
def test_no_circles(imports, folder):
    """The import linter's contract leaves out imports for type checkers; this does not."""
    packages = [f"py_ort.{folder}"]
    for package in packages:
        packages += imports.find_children(package)
        assert not imports.nominate_cycle_breakers(package), package


def test_a_circle_is_found(imports):
    changed = copy.deepcopy(imports)
    changed.add_import(importer="py_ort.runtime.values.feeds", imported="py_ort.runtime.inference_session")
    assert changed.nominate_cycle_breakers("py_ort.runtime")
