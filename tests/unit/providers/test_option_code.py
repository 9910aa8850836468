"""Everything generated from a provider's options follows from its folder: code, docs, and a browser's start."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from py_ort.browser.browser_options import BrowserOptions
from py_ort.providers import PROVIDERS, Option, Provider, option_code
from py_ort.providers.needs import Needs
from py_ort.providers.option import Enumeration
from py_ort.providers.provider_options import check_options

CHOICES = Enumeration("Finish", {"matt": "no light comes back", "high-gloss": "all of it does"})
OPTIONS = (
    Option("polishDepth", "number", "how deep to polish"),
    Option("finish", "choice", "how it looks", "matt", CHOICES),
    Option("frameNames", "text", "names", "", compiles="force_cpu_node_names"),
)
NEEDS = Needs({"software": ("--mirror",)}, ("dom.mirror.enabled",), {"firefox": "a mirror for Firefox"})


@pytest.fixture(autouse=True)
def mirror(monkeypatch: pytest.MonkeyPatch) -> Provider:
    provider = Provider("mirror", ("MirrorExecutionProvider",), 5, options=OPTIONS, c_name="Mirror", needs=NEEDS)
    monkeypatch.setitem(PROVIDERS, "mirror", provider)
    return provider


def test_options_are_checked(mirror: Provider) -> None:
    given = {"ep.mirrorexecutionprovider.polishDepth": 2, "finish": "high-gloss", "frameNames": ["a", "b"]}
    checked, _ = check_options("mirror", given)
    assert checked == {"polishDepth": "2", "finish": "high-gloss", "frameNames": "a\nb"}
    assert mirror.for_page(checked) == {"polishDepth": "2", "finish": "high-gloss"}
    assert mirror.for_compiler(checked) == {"force_cpu_node_names": ("a", "b")}


def test_types_of_typescript() -> None:
    text = option_code.typescript()
    assert '"prefix": "ep.mirrorexecutionprovider."' in text
    declared = re.search(r"interface MirrorOptions \{(.*?)^\}", text, re.DOTALL | re.MULTILINE)
    assert declared
    assert re.findall(r"readonly (.*);", declared[1]) == [
        "polishDepth?: number | string",
        "finish?: 'matt' | 'high-gloss'",
        "frameNames?: readonly string[] | string",
    ]


@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_types_of_c(tmp_path: Path) -> None:
    for name, text in option_code.c().items():
        (tmp_path / name).write_text(text)
    (tmp_path / "use.c").write_text(
        "#include <stdint.h>\n"
        '#include "mirror_options_generated.h"\n'
        "OrtMirrorProviderOptions options = {1, ORT_MIRROR_FINISH_HIGH_GLOSS, 0};\n"
        "const char** names = &options.frame_names;\n"
    )
    command = ["cc", "-std=c11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", str(tmp_path / "use.c")]
    subprocess.run(command, check=True, timeout=60)


def test_page_of_the_docs() -> None:
    text = option_code.page()
    assert "## mirror" in text and "| `finish` | `matt`, `high-gloss` | how it looks |" in text
    assert "- `high-gloss`: all of it does" in text


def test_browsers_are_started_for_it() -> None:
    from py_ort.browser.launchers import firefox

    software, off = (BrowserOptions(webgpu=kind) for kind in ("software", "off"))
    assert "--mirror" in software.command_line() and "--mirror" not in off.command_line()
    assert firefox.devices(software)["dom.mirror.enabled"] is True
    assert firefox.devices(off)["dom.mirror.enabled"] is False
    assert BrowserOptions("firefox").no_adapter_hint("mirror") == "a mirror for Firefox"
    assert BrowserOptions("chromium").no_adapter_hint("mirror") == "another browser"
