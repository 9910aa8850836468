"""The npm package by webpack 5 and Rollup, in a page and in a worker; by Next.js; by Vite under a policy."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from static_site import ISOLATED, StaticSite, browsing
from usual_script import PAGE, checked, visit

pytestmark = pytest.mark.browser
WEBPACK = "5.113.0"
ROLLUP = "4.68.8"
RESOLVE = "16.0.3"
VITE = "8.3.8"
NEXT = "16.4.6"
#: Sessions in the runtime's worker, then in the current thread.
BOTH = f"""import * as ort from 'py-ort-web';
{PAGE}
const both = async () => {{
  await start(ort, 'webgpu');
  ort.env.wasm.proxy = false;
  await start(ort, 'webgpu');
}};
await both();
"""
MAIN = f"{BOTH}new Worker(new URL('./worker.js', import.meta.url), {{ type: 'module' }});\n"


def write_sources(project: Path) -> None:
    (project / "main.js").write_text(MAIN)
    (project / "worker.js").write_text(BOTH)
    (project / "index.html").write_text('<!doctype html><script type="module" src="out/main.js"></script>\n')


def visit_all(served: StaticSite, times: int = 4) -> None:
    """A page's two sessions, and the two of its worker, if it has one."""
    with browsing("chromium", f"{served.origin}/"):
        for _ in range(times):
            assert checked(served.told())["providers"][0] == "webgpu"


@pytest.mark.parametrize("url", [True, "relative"], ids=["URLs", "paths"])
def test_webpack(
    project: Path, site: Callable[..., StaticSite], of_npm: Callable[[str, str], Path], url: bool | str
) -> None:
    """Next.js makes it turn the URLs of files into paths, which have no origin."""
    write_sources(project)
    config = {
        "mode": "production",
        "entry": "./main.js",
        "output": {"path": str(project / "out"), "filename": "main.js", "publicPath": "/out/"},
        "module": {"parser": {"javascript": {"url": url}}},
        "optimization": {"minimize": False},
        "performance": {"hints": False},
    }
    script = f"""
    import webpack from '{of_npm("webpack", WEBPACK)}/lib/index.js';
    webpack({json.dumps(config)}, (error, stats) => {{
      if (error) throw error;
      console.log(JSON.stringify(stats.toJson({{ all: false, warnings: true, errors: true }})));
    }});
    """
    (project / "build.mjs").write_text(script)
    built = subprocess.run(["node", "build.mjs"], cwd=project, capture_output=True, text=True, check=True)
    assert json.loads(built.stdout) == {"errors": [], "warnings": []}
    visit_all(site())


def test_rollup(project: Path, site: Callable[..., StaticSite], of_npm: Callable[[str, str], Path]) -> None:
    """It copies no files: they are put next to the bundle, as the README says."""
    write_sources(project)
    resolve = of_npm("@rollup/plugin-node-resolve", RESOLVE)
    script = f"""
    import {{ rollup }} from '{of_npm("rollup", ROLLUP)}/dist/es/rollup.js';
    import resolve from '{resolve}/dist/es/index.js';
    const onwarn = (warning) => {{ throw new Error(warning.message); }};
    const bundle = await rollup({{ input: ['main.js', 'worker.js'], plugins: [resolve({{ browser: true }})], onwarn }});
    await bundle.write({{ dir: 'out', format: 'es' }});
    """
    (project / "build.mjs").write_text(script)
    subprocess.run(["node", "build.mjs"], cwd=project, check=True)
    shutil.copytree(project / "node_modules/py-ort-web/dist", project / "out", dirs_exist_ok=True)
    visit_all(site())


@pytest.mark.parametrize("flag", [[], ["--webpack"]], ids=["Turbopack", "webpack"])
def test_next(
    project: Path, site: Callable[..., StaticSite], of_npm: Callable[[str, str], Path], flag: list[str]
) -> None:
    """Its app router prerenders the page in Node, and turns the URLs of files into paths."""
    shutil.copytree(of_npm("next", NEXT).parent, project / "node_modules", dirs_exist_ok=True, symlinks=True)
    (project / "package.json").write_text('{ "private": true }')
    (project / "next.config.mjs").write_text("export default { output: 'export' };")
    (project / "app").mkdir()
    layout = "export default ({ children }) => <html><body>{children}</body></html>;"
    (project / "app/layout.js").write_text(layout)
    component = f"""'use client';
    import {{ useEffect }} from 'react';
    import * as ort from 'py-ort-web';
    async function work() {{
      {PAGE}
      await start(ort, 'webgpu');
      ort.env.wasm.proxy = false;
      await start(ort, 'webgpu');
    }}
    export default function Page() {{
      useEffect(() => void work(), []);
      return <p>Models</p>;
    }}
    """
    (project / "app/page.js").write_text(component)
    command = ["node", "node_modules/next/dist/bin/next", "build", *flag]
    env = {**os.environ, "NEXT_TELEMETRY_DISABLED": "1"}
    built = subprocess.run(command, cwd=project, env=env, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    visit_all(site(project / "out"), 2)


def test_vite_under_a_policy(
    project: Path, site: Callable[..., StaticSite], of_npm: Callable[[str, str], Path]
) -> None:
    """Threads are workers of the site, not of a data: URL, into which Vite turns small files."""
    (project / "main.js").write_text(f"import * as ort from 'py-ort-web';\n{PAGE} start(ort, 'wasm');")
    policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'"
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
    html = f'<!doctype html><meta charset="utf-8">{meta}<script type="module" src="main.js"></script>'
    (project / "index.html").write_text(html)
    vite = ["node", str(of_npm("vite", VITE) / "bin/vite.js"), "build"]
    built = subprocess.run(vite, cwd=project, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stdout + built.stderr
    served = site(project / "dist", ISOLATED)
    assert visit(served)["isolated"]
    assert any("microkernel_worker" in path for path in served.asked)
