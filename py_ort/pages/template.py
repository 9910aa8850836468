"""Putting a page together. Whatever comes from a model is hostile: text is escaped, and only our own script may run.

A report is one file: a template, JSON and one script of the assets. Scripts write `textContent` and canvases only; the
page's policy lets nothing run but that script, by its hash, and nothing be fetched. A page that runs a model has its
script beside it.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import platform
import re
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from py_ort.browser.browser_options import without_secrets
from py_ort.exceptions import EngineError
from py_ort.folders import ASSETS

_FOLDER = Path(__file__).parent


def render(name: str, title: str, data: Any = None, **context: Any) -> str:
    """Return a page.

    Args:
        name: The page's name: `NAME.html.j2` here, and `report_NAME.js` among the built assets.
        title: Its title.
        data: For its script, as JSON.
        context: For its template.

    Raises:
        EngineError: The page's script was not built.
    """
    from markupsafe import Markup

    script = _script(f"report_{name}.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    # Even if a text of the model became markup, nothing but this script would run, and nothing be fetched.
    policy = f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'"
    command = command_line(sys.argv[1:])
    made = f"{_versions()}, {_cpu()}{f', by: {command}' if command else ''}"
    return _render(name, title, data, policy=policy, script=Markup(script), versions=made, **context)


def render_beside(module: str, name: str, title: str, data: Any = None, **context: Any) -> str:
    """Return a page whose script lies beside it, and that may load what its own server has.

    Args:
        module: The script's URL.
        name: The page's name: `NAME.html.j2` here.
        title: Its title.
        data: For its script, as JSON.
        context: For its template.
    """
    policy = (
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; "
        "connect-src 'self'; img-src blob: data:"
    )
    return _render(name, title, data, policy=policy, module=module, versions=_versions(), **context)


def command_line(arguments: Sequence[str]) -> str:
    """Return the command line of `py-ort`, without secrets in URLs; "" in another program."""
    if click.get_current_context(silent=True) is None:
        return ""
    return shlex.join(["py-ort", *(without_secrets(each) if "//" in each else each for each in arguments)])


def _cpu() -> str:
    """Return the processor's name and the number of CPUs."""
    try:
        found = re.search(r"^model name\s*: (.+)", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    except OSError:
        found = None
    name = found[1] if found else platform.processor()
    return ", ".join(filter(None, (name, f"{os.cpu_count()} CPUs")))


def _versions() -> str:
    from py_ort import __version__

    system = f"{platform.system()} {platform.machine()}, on {time.strftime('%Y-%m-%d at %H:%M')}"
    return f"py_ort {__version__}, Python {platform.python_version()}, {system}"


def _render(name: str, title: str, data: Any, **context: Any) -> str:
    import jinja2
    from markupsafe import Markup

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_FOLDER), autoescape=True, trim_blocks=True, lstrip_blocks=True
    )
    return environment.get_template(f"{name}.html.j2").render(
        title=title,
        style=Markup((_FOLDER / "style.css").read_text()),
        data=Markup(_json(data)),
        **context,
    )


def _script(name: str) -> str:
    try:
        return (ASSETS / name).read_text(encoding="utf-8").strip()
    except OSError:
        raise EngineError(
            f"{name} is not in {ASSETS}: run `make build` in the repository, or install a wheel, which carries it"
        ) from None


def _json(data: Any) -> str:
    """JSON that may stand inside a script element."""
    text = json.dumps(data, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
