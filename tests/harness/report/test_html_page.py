"""The HTML report as text: nothing in it can run or load anything, and it is written where it should be."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import re
import zlib

import pytest
from html_kit import HOSTILE, Reader, page_path, small_run, store_run

from harness.errors import UserError
from harness.report.html.page import asset, content_policy, packed, render_page, script_json, write_page
from harness.report.html.view import build_page
from harness.results.run_record import Finding, save_finding
from harness.run.record import leave_page
from harness.safe_io import write_text


@pytest.fixture
def text(store):
    record, run = store_run(small_run(), store, history=3)
    figure = store.runs / record.id / "analyses" / "01-x"
    table = {"columns": ("Method", "CMD"), "rows": ((HOSTILE, 0.25),), "notes": (HOSTILE,), "figures": ("figure.svg",)}
    save_finding(Finding(HOSTILE, "x", **table), figure)
    write_text(figure / "figure.svg", '<svg xmlns="http://www.w3.org/2000/svg"><script>alert(3)</script></svg>')
    return render_page(build_page(record, run, store))


def test_hostile_names_are_text(text) -> None:
    page = Reader(text)
    assert [tag for tag, _ in page.elements if tag in ("iframe", "object", "embed", "link", "base")] == []
    assert [attrs for tag, attrs in page.elements if tag == "img"] == [
        {
            "class": "figure",
            "src": page_figure(page),
            "alt": f"Figure of the analysis {HOSTILE} [x]; the table below has its numbers.",
        }
    ]
    assert sum(tag == "script" for tag, _ in page.elements) == 6
    assert not [name for _, attrs in page.elements for name in attrs if name.startswith("on") or name == "style"]
    assert HOSTILE in page.words
    assert "<img src=x" not in text


def page_figure(page: Reader) -> str | None:
    return next(attrs["src"] for tag, attrs in page.elements if tag == "img")


def test_figures_are_images_and_not_part_of_the_page(text) -> None:
    source = page_figure(Reader(text))
    assert source is not None
    assert source.startswith("data:image/svg+xml;base64,")
    assert b"alert(3)" in base64.b64decode(source.partition(",")[2])


def test_the_page_can_load_nothing(text) -> None:
    page = Reader(text)
    policy = next(attrs["content"] for tag, attrs in page.elements if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    run = [body for kind, body in page.raw if kind == "style"]
    run += [body for kind, body in page.raw if kind == "script"][-2:]
    for body in run:
        digest = base64.b64encode(hashlib.sha256(body.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe" not in policy
    urls = [value for _, attrs in page.elements for name, value in attrs.items() if name in ("src", "href", "action")]
    assert [url for url in urls if url and not url.startswith(("#", "data:image/"))] == []


def test_ids_are_unique_and_links_lead_somewhere(text) -> None:
    page = Reader(text)
    ids = [attrs["id"] for _, attrs in page.elements if "id" in attrs]
    assert len(ids) == len(set(ids))
    links = {value for tag, attrs in page.elements for value in [attrs.get("href")] if tag == "a" and value}
    plain = {link[1:] for link in links if link.count("/") == 0}
    assert plain <= set(ids)
    for name in ("aria-labelledby", "aria-describedby"):
        assert {attrs[name] for _, attrs in page.elements if name in attrs} <= {*ids, "cell-title"}


def test_everything_is_labelled(text) -> None:
    page = Reader(text)
    assert ("html", {"lang": "en"}) in page.elements
    tags = [tag for tag, _ in page.elements]
    assert tags.count("h1") == tags.count("main") == tags.count("header") == tags.count("footer") == 1
    regions = [attrs for _, attrs in page.elements if attrs.get("role") == "region"]
    assert regions
    assert all(attrs.get("tabindex") == "0" and attrs.keys() & {"aria-label", "aria-labelledby"} for attrs in regions)
    assert all("scope" in attrs for tag, attrs in page.elements if tag == "th")


def test_data_survive_the_script_element(text) -> None:
    blocks = dict(re.findall(r'<script type="application/[a-z-]+" id="([^"]+)">(.*?)</script>', text, re.DOTALL))
    data = json.loads(blocks["data"])
    assert HOSTILE in data["methods"]
    assert any("</script>" in line for line in data["texts"])
    curves = json.loads(zlib.decompress(base64.b64decode(blocks["curves"])))
    assert curves["0"]["epochs"] == [0, 1, 2]
    copies = json.loads(zlib.decompress(base64.b64decode(blocks["copies-1"])))
    assert set(copies) == {"latex", "markdown", "csv"}


@pytest.mark.parametrize("hostile", ["</script>", "<!--<script>", "\u2028\u2029", "&amp;", "]]>", '"\\'])
def test_script_json_holds_anything(hostile) -> None:
    made = script_json({hostile: [hostile, math_nan()]})
    assert json.loads(made) == {hostile: [hostile, None]}
    assert not set(made) & set("<>&\u2028\u2029")


def math_nan() -> float:
    return float("nan")


def test_packed_is_base64_of_zlib() -> None:
    assert json.loads(zlib.decompress(base64.b64decode(packed({"a": "é"})))) == {"a": "é"}


def test_assets_can_stand_in_their_elements() -> None:
    for name in ("vendor/uPlot.iife.min.js", "report.js"):
        assert "</script" not in asset(name).lower()
        assert "<!--" not in asset(name)
    for name in ("vendor/uPlot.min.css", "style.css"):
        assert "</style" not in asset(name).lower()
        assert "url(" not in asset(name)
        assert "@import" not in asset(name)
    assert "\r" not in "".join(map(asset, ("vendor/uPlot.iife.min.js", "report.js", "style.css")))
    assert content_policy(["a"], ["b"]).count("sha256-") == 2
    assert "Leon Sorokin" in asset("vendor/LICENSE")


def luminance(colour: str) -> float:
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The ratio of WCAG 2.2."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", [0, 1], ids=["light", "dark"])
def test_contrast(theme) -> None:
    found = re.findall(r"--([a-z0-9-]+): light-dark\((#[0-9a-f]{6}), (#[0-9a-f]{6})\)", asset("style.css"))
    colours = {name: pair[theme] for name, *pair in found}
    for back in ("back", "raised"):
        for name in ("text", "muted", "link", "good", "warn", "bad"):
            assert contrast(colours[name], colours[back]) >= 4.5, (name, back)
        for name in ("control", *(f"line-{i}" for i in range(1, 6))):
            assert contrast(colours[name], colours[back]) >= 3, (name, back)


def test_written_to_the_run_folder_or_where_it_is_asked(store, tmp_path) -> None:
    record, run = store_run(small_run(), store)
    theirs = tmp_path / "theirs"
    page_path(store, run).symlink_to(theirs)  # whoever may write in a shared store
    assert write_page(record, run, store) == page_path(store, run)
    assert not theirs.exists()
    other = write_page(record, run, store, tmp_path / "deep" / "x.html")
    assert other.read_text(encoding="utf-8").endswith("</html>\n")
    with pytest.raises(UserError, match="cannot write"):
        write_page(record, run, store, tmp_path / "deep" / "x.html" / "y.html")


def test_a_page_that_cannot_be_made_is_one_warning(store, monkeypatch, caplog) -> None:
    def broken(*_args, **_kwargs):
        raise RuntimeError("first line\nsecond line")

    monkeypatch.setattr("harness.report.html.page.write_page", broken)
    record, run = store_run(small_run(), store)
    with caplog.at_level(logging.WARNING):
        assert leave_page(record, run, store) is None
    assert caplog.messages == ["no HTML report was written (RuntimeError: first line)"]


def test_where_nothing_was_run_an_earlier_page_that_shows_the_same_is_kept(store) -> None:
    first, run = store_run(small_run(), store)
    page = leave_page(first, run, store, anew=False)
    assert page == page_path(store, run)
    for folder in ("20260101-000001-demo-0001", "20260101-000002-demo-0002"):
        later, again = store_run(small_run_named(folder), store)
        for run_id in (first.id, later.id):
            write_text(store.runs / run_id / "results.csv", "same")
        assert leave_page(later, again, store, anew=False) == page
    write_text(store.runs / later.id / "results.csv", "other")
    assert leave_page(later, again, store, anew=False) == store.runs / later.id / "report.html"
    assert leave_page(first, run, store) == page


def small_run_named(name: str):
    from dataclasses import replace

    return replace(small_run(), run=name)
