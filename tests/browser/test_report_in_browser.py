"""The HTML report in headless Chromium."""

from __future__ import annotations

import statistics
from pathlib import Path
from random import Random

import pytest
from html_kit import HOSTILE, large_run, small_run, store_run

from harness.report.html.dialogs import curves, points
from harness.report.html.page import write_page
from harness.results.run_record import Finding, save_finding
from harness.safe_io import write_text
from harness.store import Store

pytestmark = pytest.mark.browser
FIGURE = '<svg xmlns="http://www.w3.org/2000/svg" width="500pt" height="200pt" viewBox="0 0 500 200"/>'
ERM, TUNED = "table[data-name=t1] a[href='#t1/A/ERM']", "table[data-name=t1] a[href='#t1/A/Tuned']"


@pytest.fixture(scope="module")
def report(tmp_path_factory) -> Path:
    store = Store(tmp_path_factory.mktemp("browser") / "store")
    record, run = store_run(small_run(), store, history=30)
    folder = store.runs / record.id / "analyses" / "01-cmd"
    rows = (("ERM", 0.25),)
    finding = Finding("Distances", "cmd", columns=("method", "CMD"), rows=rows, figures=("figure.svg",))
    save_finding(finding, folder)
    write_text(folder / "figure.svg", FIGURE)
    return write_page(record, run, store)


def methods(page) -> list[str]:
    found = page.locator("table.results tbody tr:visible th").all_inner_texts()
    return [text.partition("\n")[0].strip() for text in found]


def heading(page, text: str):
    return page.locator("table[data-name=t1] thead th", has_text=text)


def test_sorting_by_every_column(report, show) -> None:
    page = show(report)
    suite = methods(page)
    assert suite == ["ERM", "Tuned", HOSTILE]
    button = heading(page, "A (A-1)").locator("button")
    button.click()
    assert methods(page) == ["Tuned", "ERM", HOSTILE]
    assert heading(page, "A (A-1)").get_attribute("aria-sort") == "descending"
    button.click()
    assert methods(page) == [HOSTILE, "ERM", "Tuned"]
    assert heading(page, "A (A-1)").get_attribute("aria-sort") == "ascending"
    button.click()
    assert methods(page) == suite
    assert page.locator("[aria-sort]").count() == 0


def test_sorting_with_the_keyboard_and_what_is_missing_last(report, show) -> None:
    page = show(report)
    button = heading(page, "B (B-1)").locator("button")
    button.focus()
    for order in (["ERM", "Tuned", HOSTILE], ["Tuned", "ERM", HOSTILE]):
        page.keyboard.press("Enter")
        assert methods(page) == order
    assert page.locator("#said").inner_text() == "Sorted by B (B-1), ascending"
    heading(page, "Method").locator("button").press("Enter")
    assert methods(page)[1:] == ["ERM", "Tuned"]


def test_filtering(report, show) -> None:
    page = show(report)
    page.get_by_label("Filter rows").fill("random tun")
    assert methods(page) == ["Tuned"]
    assert page.locator("#said").inner_text() == "1 of 3 rows"
    page.get_by_label("Filter rows").fill("nothing like it")
    assert methods(page) == []
    page.get_by_label("Filter rows").fill("")
    assert len(methods(page)) == 3


def test_the_checkpoint_rule_is_a_switch_over_one_table(report, show) -> None:
    page = show(report)
    assert page.locator("table.results:visible").count() == 1
    heading(page, "A (A-1)").locator("button").click()
    page.get_by_label("Filter rows").fill("erm")
    page.get_by_role("radio", name="the last epoch").check()
    assert page.locator("#results h2:visible").all_inner_texts() == ["Results at the last epoch"]
    assert methods(page) == ["ERM"], "the other rule's table is filtered alike"
    page.get_by_label("Filter rows").fill("")
    assert methods(page) == ["Tuned", "ERM", HOSTILE], "and sorted alike"
    page.goto(report.as_uri() + "#t1-note-1")
    assert page.locator("#t1").is_visible()


def test_a_row_of_the_picture_opens_its_cell(report, show) -> None:
    page = show(report)
    row = page.locator("#t1 figure a").first
    row.focus()
    page.keyboard.press("Enter")
    assert page.locator("#cell").get_by_role("heading", level=2).inner_text() == "ERM on A"
    page.keyboard.press("Escape")
    page.locator("#t1 figure a").nth(1).click()
    assert page.evaluate("location.hash") == "#t1/A/Tuned"


def test_what_stands_behind_a_cell(report, show) -> None:
    page = show(report)
    page.click(TUNED)
    dialog = page.locator("#cell")
    assert dialog.get_by_role("heading", level=2).inner_text() == "Tuned on A"
    assert page.evaluate("location.hash") == "#t1/A/Tuned"
    seeds = dialog.get_by_role("region", name="Seeds").locator("tbody tr").all_inner_texts()
    assert [line.split()[:3] for line in seeds] == [
        ["1", "70.00", "80.00"],
        ["2", "71.00", "81.00"],
        ["3", "72.00", "82.00"],
    ]
    text = dialog.inner_text()
    for part in (
        "71.00 ± 1.00",
        "+19.00 ± 1.00",
        "random(2)",
        "x.c: a → b",
        "irm",
        "bench export",
        "Parameters",
        "1234",
    ):
        assert part in text
    searched = dialog.get_by_role("region", name="Configurations")
    assert "61.00" not in searched.inner_text(), "the test score of a configuration that was not selected"
    dialog.get_by_label("Show test scores").check()
    assert "61.00" in searched.inner_text()
    dialog.get_by_text("Everything that is set").click()
    assert "train.epochs" in dialog.inner_text()


def test_learning_curves_are_drawn(report, show) -> None:
    page = show(report)
    page.click(ERM)
    page.wait_for_selector("#cell canvas")
    names = [name.partition(",")[0] for name in page.locator("#cell figcaption").all_inner_texts()]
    assert names == ["Accuracy on val", "Training: erm", "Training: variance", "Training: weighted loss"]
    said = page.locator("#cell figure [role=img]").first.get_attribute("aria-label")
    assert "seed 1 from 50.0 to 79.0" in said
    inked = page.evaluate(
        "() => [...document.querySelectorAll('#cell canvas')].map(c => new Set(new Uint32Array("
        "c.getContext('2d').getImageData(0, 0, c.width, c.height).data.buffer)).size)"
    )
    assert len(inked) == 4
    assert min(inked) > 10


def test_a_cell_that_failed_says_why(report, show) -> None:
    page = show(report)
    page.locator("table[data-name=t1] td.is-failed a").first.click()
    text = page.locator("#cell").inner_text()
    assert HOSTILE in text
    assert "RuntimeError: </script><script>alert(2)</script>" in text
    assert "raise RuntimeError('<b>&')" in text
    assert page.locator("#cell img, #cell b").count() == 0


def test_a_cell_has_an_address_and_the_keyboard_leaves_it(report, show) -> None:
    page = show(report, "#t2/B/ERM")
    assert page.locator("#cell").get_by_role("heading", level=2).inner_text() == "ERM on B"
    page.keyboard.press("Escape")
    assert page.locator("#cell[open]").count() == 0
    assert "/" not in page.evaluate("location.hash")
    page.locator("td a[href='#t2/A/ERM']").focus()
    page.keyboard.press("Enter")
    assert page.locator("#cell[open]").count() == 1
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.getAttribute('href')") == "#t2/A/ERM"
    page.click("td a[href='#t2/A/Tuned']")
    page.go_back()
    page.wait_for_selector("#cell:not([open])", state="attached")


def test_an_address_that_leads_nowhere_opens_nothing(report, show) -> None:
    for address in ("#t1/A/Nobody", "#t9/A/ERM", "#t1/B", "#%"):
        assert show(report, address).locator("#cell[open]").count() == 0


def test_copying(report, show) -> None:
    page = show(report, permissions=["clipboard-read", "clipboard-write"])
    for style, part in (("LaTeX", r"\begin{tabular}"), ("Markdown", "| Method |"), ("CSV", "dataset,")):
        page.get_by_role("button", name=f"Copy as {style}").click()
        page.locator("#said", has_text=f"{style} copied").wait_for()
        assert part in page.evaluate("navigator.clipboard.readText()")


def test_copying_without_a_clipboard(report, show) -> None:
    page = show(report, script="Object.defineProperty(navigator, 'clipboard', { value: undefined });")
    page.get_by_role("button", name="Copy as LaTeX").click()
    page.wait_for_selector("#copy[open]")
    assert r"\toprule" in page.locator("#copy-text").input_value()
    assert page.evaluate("getSelection().toString()").startswith("%")
    page.get_by_role("button", name="Close").click()
    assert page.locator("#copy[open]").count() == 0


def test_a_browser_that_cannot_unpack_says_so(report, show) -> None:
    page = show(report, script="delete globalThis.DecompressionStream;")
    page.get_by_role("button", name="Copy as CSV").click()
    page.locator("#said", has_text="--format csv").wait_for()
    page.click(ERM)
    page.wait_for_selector("text=too old to unpack")


def test_a_phone(report, show) -> None:
    page = show(report, viewport={"width": 375, "height": 700}, has_touch=True)
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    box = page.locator(".scroll").first
    first = page.locator("table[data-name=t1] tbody th").first
    before = first.bounding_box()
    box.evaluate("node => { node.scrollLeft = 120; }")
    assert first.bounding_box()["x"] == before["x"]
    assert before["width"] < 200
    figure = page.locator("img.figure")
    assert figure.bounding_box()["width"] == pytest.approx(
        500 * 4 / 3, abs=1
    )  # as large as drawn, in a box that scrolls
    assert figure.locator("..").evaluate("node => node.scrollWidth > node.clientWidth")
    page.goto(report.as_uri() + "#t1/A/ERM")
    page.wait_for_selector("#cell canvas")
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    assert page.locator("#cell").evaluate("node => node.scrollWidth <= node.clientWidth")


def background(page) -> float:
    """Mean brightness of the page's background, 0 to 255."""
    red, green, blue = page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")[:3]
    return statistics.mean((red, green, blue))


def figures_are_dark(page) -> bool:
    """Whether figures, which are drawn dark on light, have their brightness turned over."""
    return "invert(1)" in page.locator("img.figure").evaluate("node => getComputedStyle(node).filter")


def test_dark_mode_by_the_system_and_by_the_button(report, show) -> None:
    page = show(report, color_scheme="dark")
    assert background(page) < 40
    assert figures_are_dark(page)
    button = page.locator("#theme")
    button.click()
    assert button.inner_text() == "Colours: light"
    assert background(page) > 240
    assert not figures_are_dark(page)
    button.click()
    assert background(page) < 40
    assert figures_are_dark(page)
    page.reload()
    assert button.inner_text() == "Colours: dark"
    assert background(show(report, color_scheme="light")) > 240


def test_print(report, show) -> None:
    page = show(report)
    page.emulate_media(media="print")
    assert not page.locator(".tools").first.is_visible()
    assert not page.locator("nav").is_visible()
    assert page.locator("table[data-name=t1]").is_visible()
    assert page.locator(".scroll").first.evaluate("node => getComputedStyle(node).overflowX") == "visible"
    page.emulate_media(media="print", color_scheme="dark")
    assert not figures_are_dark(page)


def test_folded_tables_are_printed_unfolded_and_fold_again(report, show) -> None:
    page = show(report)
    row = page.locator("#analyses table tbody tr")
    assert not row.is_visible()
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert row.is_visible()
    assert page.locator("#licences").get_attribute("open") is None
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert not row.is_visible()


def test_focus_is_seen_and_every_control_is_reached(report, show) -> None:
    page = show(report)
    seen = set()
    for _ in range(14):
        page.keyboard.press("Tab")
        seen.add(page.evaluate("document.activeElement.tagName"))
        width = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
        assert width == "3px"
    assert {"A", "BUTTON", "INPUT"} <= seen
    named = "node.labels?.length || node.innerText || node.ariaLabel || node.getAttribute('aria-labelledby')"
    assert page.evaluate(f"[...document.querySelectorAll('button, input, textarea')].every(node => {named})")


def test_without_scripts_the_tables_are_there(report, show) -> None:
    page = show(report, java_script_enabled=False)
    assert page.locator("table[data-name=t1] tbody tr").count() == 3
    assert not page.locator(".tools").first.is_visible()


def test_200_methods_on_15_datasets_open_in_a_second(tmp_path, show, busy, monkeypatch) -> None:
    noise = Random(1)
    history = [{"epoch": n, **{name: noise.random() for name in ("erm", "x", "loss", "score/val")}} for n in range(50)]
    drawn = curves(history, points(200 * 15 * 3))
    monkeypatch.setattr("harness.report.html.dialogs.Dialogs._read", lambda *_: drawn)
    store, run = Store(tmp_path / "store"), large_run()
    path = write_page(*store_run(run, store), store)
    assert path.stat().st_size < 5_000_000
    page = show(path)
    page.evaluate("new Promise(requestAnimationFrame)")
    assert page.locator("table[data-name=t1] tbody tr").count() == 200
    assert busy(page) < 1
