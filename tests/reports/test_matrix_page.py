"""The page of `py-ort conformance --html`: runs against operators, models and cases."""

from __future__ import annotations

from typing import Any

import click
import pytest
from hostile_names import HOSTILE, HUGE
from page_checks import background, column, fits

from py_ort.pages.template import command_line
from py_ort.testing.changes import changes
from py_ort.testing.results import FAILED, PASSED, SKIPPED, Expectation, Outcome, Results
from py_ort.testing.results_table import page

WHY = "wrong output: y: 1 of 2 elements differ"
GROUPS = {"relu_1": "Relu", "relu_2": "Relu", "add": "Add"}


def run(browser: str, provider: str, error: str = "", known: tuple[str, ...] = (), **cases: Outcome) -> Results:
    adapter = "google swiftshader" if provider == "webgpu" else ""
    expected = {name: Expectation("rounds twice") for name in known}
    return Results(cases, (provider,), f"{browser} 156.0", adapter, browser, "py_ort", error, expected, 2.5)


def passed(seconds: float, **providers: int) -> Outcome:
    return Outcome(PASSED, "", seconds, providers)


RUNS = [
    run(
        *("chromium", "webgpu"),
        known=("add",),
        relu_1=passed(0.01, webgpu=1, wasm=0),
        relu_2=Outcome(FAILED, WHY, 0.2),
        add=Outcome(FAILED, WHY, 0.1),
        model=Outcome(SKIPPED, "no data"),
    ),
    run("firefox", "wasm", relu_1=passed(0.02), relu_2=passed(0.3), add=passed(0.01), model=passed(1.5)),
    run(
        *("webkit", "webgpu"),
        error="NoAdapter: WebKitGTK has no WebGPU",
        **{
            name: Outcome(FAILED, "NoAdapter: WebKitGTK has no WebGPU") for name in ("relu_1", "relu_2", "add", "model")
        },
    ),
]


def cells(shown: Any, table: str) -> dict[str, list[str]]:
    rows = shown.locator(f"{table} tbody tr:not(.why)").all()
    return {row.locator("td").first.inner_text(): row.locator("td").all_inner_texts()[1:] for row in rows}


def test_runs_operators_and_cases(open_page):
    shown = open_page(page(RUNS, "all of it", GROUPS))
    runs = shown.locator("table.runs")
    assert column(runs, "where") == ["chromium webgpu", "firefox wasm", "webkit webgpu"]
    assert column(runs, "failed")[:2] == ["1", "0"] and column(runs, "known failures")[:2] == ["1", "0"]
    assert column(runs, "version")[0] == "156.0" and "swiftshader" in column(runs, "adapter")[0]
    assert "WebKitGTK has no WebGPU" in runs.inner_text()
    assert cells(shown, "#groups table") == {"Add": ["0/1", "1/1", "0/1"], "Relu": ["1/2", "2/2", "0/2"]}
    shown.locator("#show").select_option("all")
    missing = "✗ NoAdapter: WebKitGTK has no WebGPU"  # there is room for reasons
    assert cells(shown, "#cases") == {
        "add": ["(✗)", "✓ 10", missing],
        "model": ["–", "✓ 1500", missing],
        "relu_1": ["✓ 10", "✓ 20", missing],
        "relu_2": ["✗ wrong output: y: 1 of 2 elements differ", "✓ 300", missing],
    }
    assert (
        runs.locator(".shares").first.locator("i").count() == 4 and "engine" not in runs.locator("thead").inner_text()
    )


def test_filters(open_page):
    shown = open_page(page(RUNS[:2], "all of it", GROUPS))
    names = lambda: list(cells(shown, "#cases"))  # noqa: E731
    assert names() == ["add", "relu_2"]  # at first, the failures
    shown.locator("#show").select_option("unlike")
    assert names() == ["add", "relu_2"] and "2 of 4" in shown.locator("#count").inner_text()
    shown.locator("#show").select_option("slow")
    assert names() == ["model", "relu_2", "add", "relu_1"]
    for text, found in (("RELU", ["relu_2", "relu_1"]), ("rounds twice", ["add"]), ("nothing", [])):
        shown.locator("#text").fill(text)
        assert names() == found
    shown.get_by_role("button", name="Relu", exact=True).click()
    assert names() == ["relu_1", "relu_2"]


def test_what_a_browser_cannot_run_is_no_difference(open_page):
    """One without WebGPU skips all cases: the page says why, and goes on comparing the others."""
    why = "no execution provider can run here"
    without = run("webkit", "webgpu", **{name: Outcome(SKIPPED, why) for name in ("relu_1", "relu_2", "add", "model")})
    shown = open_page(page([*RUNS[:2], without], "all of it", GROUPS))
    assert "2 differ between the runs" in shown.locator("p").first.inner_text()
    assert column(shown.locator("table.runs"), "trouble") == ["", "", f"skipped: {why}"]
    shown.locator("#show").select_option("unlike")
    assert list(cells(shown, "#cases")) == ["add", "relu_2"]


def test_names_are_broken_between_words(open_page):
    name = "test_attention_4d_attn_mask_causal_bf16_expanded"
    shown = open_page(
        page([run("chromium", "wasm", **{name: passed(0.01)})], "one", {name: "FlexAttention"}), width=390
    )
    texts = shown.evaluate("[...document.querySelectorAll('.matrix button')].map(e => e.innerHTML)")
    assert texts == ["Flex<wbr>Attention", name.replace("_", "<wbr>_")]
    assert list(cells(shown, "#cases")) == [name]


def test_a_case_tells_its_reasons(open_page):
    shown = open_page(page(RUNS, "all of it", GROUPS))
    button = shown.get_by_role("button", name="add", exact=True)
    button.click()
    said = shown.locator("tr.why").inner_text()
    for text in (f"{WHY} (known: rounds twice)", "firefox wasm: ✓, 10 ms", "operator: Add"):
        assert text in said
    button.click()
    assert shown.locator("tr.why").count() == 0
    shown.locator("#show").select_option("all")
    shown.get_by_role("button", name="relu_1", exact=True).click()
    assert "chromium webgpu: ✓, 10 ms, 1 webgpu" in shown.locator("tr.why").inner_text()


@pytest.mark.parametrize("width", [390, 1200])
def test_reasons_are_in_sight(open_page, width):
    failed = Outcome(FAILED, "wrong output: " + "some words " * 20)
    shown = open_page(page([run(name, "wasm", one=failed) for name in ("chromium", "firefox")], "all", {}), width=width)
    assert shown.locator("#cases").evaluate("table => table.offsetWidth <= table.parentElement.clientWidth")


def test_a_failure_has_a_command_to_copy(open_page):
    command = "py-ort compare 'a b.onnx' --provider wasm"
    failed = Outcome(FAILED, WHY, 0.2, commands=[command])
    shown = open_page(
        page([run("chromium", "wasm", relu_1=failed), run("firefox", "wasm", relu_1=passed(1))], "all", {})
    )
    shown.get_by_role("button", name="relu_1", exact=True).click()
    assert shown.locator("tr.why code").all_inner_texts() == [command]
    shown.get_by_role("button", name="Copy").click()
    shown.get_by_role("button", name="Copied").wait_for()
    shown.locator("#text").press("Control+V")
    assert shown.locator("#text").input_value() == command


def test_what_changed(open_page):
    before = [run.as_run() for run in RUNS]
    before[1]["cases"]["add"] = {"status": "failed", "reason": "Fail: x"}
    before[1]["adapter"] = before[1]["browser_version"] = ""
    html = page(RUNS, "all of it", GROUPS, changes(RUNS, before))
    table = open_page(html).locator("table.changes")
    assert table.locator("tbody tr").all_inner_texts() == ["firefox wasm\tadd\tnow passes\t"]
    assert "Nothing." in open_page(page(RUNS, "all", GROUPS, [])).locator("body").inner_text()


def test_many_cases_come_in_steps(open_page):
    many = {f"case_{number:04}": passed(0.001) for number in range(450)}
    shown = open_page(page([run("chromium", "wasm", **many)], "many", {}))
    assert shown.locator("#cases tbody tr").count() == 200 and not shown.locator("#groups").is_visible()
    for wanted in (400, 450):
        shown.locator("#more").click()
        assert shown.locator("#cases tbody tr").count() == wanted
    assert not shown.locator("#more").is_visible()


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [390, 1200])
def test_light_dark_and_a_phone(open_page, tmp_path, width, dark):
    """Nothing sticks out, text has contrast, and all six columns of six runs can be seen on a phone."""
    from io import BytesIO

    from PIL import Image

    six = [*RUNS, *(run("firefox", "webgpu", relu_1=passed(0.01)) for _ in range(3))]
    shown = open_page(page(six, "all of it", GROUPS), dark=dark, width=width)
    assert fits(shown) and (background(shown) < 200) is dark
    shown.locator("#cases button").first.click()
    wide = shown.locator("#cases")
    assert wide.bounding_box()["width"] <= max(width * 1.6, 600)
    image = Image.open(BytesIO(shown.screenshot(full_page=True))).convert("L")
    levels = image.histogram()
    paper = sum(levels[:64] if dark else levels[192:]) / sum(levels)
    ink = sum(levels[160:] if dark else levels[:96]) / sum(levels)
    assert paper > 0.8 and 0.003 < ink < 0.2
    smallest = shown.evaluate(
        "Math.min(...[...document.querySelectorAll('td, th, p')].filter(e => e.textContent.trim())"
        ".map(e => parseFloat(getComputedStyle(e).fontSize)))"
    )
    assert smallest >= 12


@pytest.mark.parametrize("name", [HOSTILE, HUGE], ids=["hostile", "huge"])
def test_names_are_only_text(open_page, name):
    results = run(name[:300], "wasm", **{name: Outcome(FAILED, f"Fail: {name}")})
    html = page([results], name, {name: name}, changes([results], []))
    shown = open_page(html, width=390)
    assert fits(shown) and shown.locator("img").count() == 0


def test_the_command(py_ort_command, tmp_path, open_page):
    options = ("--provider", "wasm", "--filter", "^test_relu$", "--jobs", 1, "--html", tmp_path / "c.html")
    assert py_ort_command("conformance", "onnx-node", *options)[0] == 0
    shown = open_page((tmp_path / "c.html").read_text(encoding="utf-8"))
    assert column(shown.locator("table.runs"), "passed") == ["1"]
    made = shown.locator("p").first.inner_text()
    assert "by: py-ort conformance onnx-node --provider wasm --filter '^test_relu$'" in made and " CPUs" in made
    assert list(cells(shown, "#cases")) == ["test_relu"]


def test_a_page_keeps_no_secret_of_its_command():
    arguments = ("--browser", "playwright:wss://me:word@grid.example/run?token=abc", "a?.onnx")
    assert command_line(arguments) == ""  # this is no command
    with click.Context(click.Command("any")):
        assert command_line(arguments) == "py-ort --browser playwright:wss://grid.example/run 'a?.onnx'"
