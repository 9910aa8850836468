"""A hook of mkdocs: pages and a script that lie outside of docs/, and links out of it.

A file of the repository is no page of the site, so a link to one becomes its path, as code; one that is not there is
an error.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
#: Pages of the site that are files elsewhere, which have a place of their own in the repository.
ELSEWHERE = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "karma_compat/README.md": "karma_compat.md",
}
#: With which the search of a page that is read from a folder does without a worker: the npm package iframe-worker.
SHIM = ROOT / "web/node_modules/iframe-worker/shim/index.js"
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?![a-z]+:|#)([^)#\s]+)(#[^)]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages from elsewhere, and the scripts that `extra.polyfills` of mkdocs.yml names."""
    for script in config.extra["polyfills"]:
        files.append(File.generated(config, script, abs_src_path=str(SHIM)))
    for source, page in ELSEWHERE.items():
        content = _relinked((ROOT / source).read_text(encoding="utf-8"), ROOT / source, page)
        files.append(File.generated(config, page, content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Follow the links of a page of docs/."""
    source = page.file.abs_src_path
    return _relinked(markdown, Path(source), page.file.src_uri) if source else markdown


def _relinked(markdown: str, source: Path, page: str) -> str:
    def relinked(found: re.Match[str]) -> str:
        text, link, anchor = found.groups()
        to = Path(os.path.normpath(source.parent / link))
        if not to.exists():
            raise PluginError(f"{source.relative_to(ROOT)}: no file {link}")
        inside = ELSEWHERE.get(to.relative_to(ROOT).as_posix())
        if inside is None and to.is_relative_to(DOCS):
            inside = to.relative_to(DOCS).as_posix()
        if inside is None:
            path = to.relative_to(ROOT).as_posix()
            return f"`{path}`" if text.strip("`") in (path, link, to.name) else f"{text} (`{path}`)"
        return f"[{text}]({os.path.relpath(inside, Path(page).parent)}{anchor or ''})"

    return _LINK.sub(relinked, markdown)
