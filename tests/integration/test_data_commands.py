"""``bench data``: list, fetch, verify, describe, path, as a user types them, against a server in this process."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Event, Thread

import pytest
import yaml
from integration_kit import HERE, Workshop, command_line

from harness.cli.main import main
from harness.engine import EngineOptions
from harness.run.execute import execute
from harness.run.session import Options, open_session
from harness.store import data_root

TABLE = "size,y,domain,split\n" + "".join(
    f"{size},{size % 2},{size % 3 % 2},{split}\n"
    for split, sizes in (("train", [4, 5, 6, 7, 12, 30]), ("val", [5, 8, 9]), ("test", [40, 41, 43]))
    for size in sizes
)
TABLE += "x,0,0,train\n"
PLUGIN = ("--plugin", "web_plugin.py")
Bench = Callable[..., tuple[str, str]]


class Slow(SimpleHTTPRequestHandler):
    """Serves a folder; ``slow.csv`` stops in the middle until the server is closed."""

    closing = Event()

    def do_GET(self) -> None:
        if self.path != "/slow.csv":
            super().do_GET()
            return
        self.send_response(200)
        self.send_header("Content-Length", "200000")
        self.end_headers()
        self.wfile.write(bytes(100_000))
        self.wfile.flush()
        self.closing.wait(60)

    def log_message(self, *_: object) -> None:
        """Silent."""


@pytest.fixture
def address(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Of a server that has ``three.csv``."""
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path_factory.mktemp("www")
    (folder / "three.csv").write_text(TABLE)
    handler = type("Handler", (Slow,), {"closing": Event()})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    handler.closing.set()
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def bench(workshop: Workshop, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Bench:
    """Runs ``bench data`` in this process; gives output and error stream, after checking the exit code."""
    monkeypatch.setenv("BENCH_STORE", str(workshop.store))
    monkeypatch.setenv("BENCH_DATA", str(workshop.folder / "data"))
    monkeypatch.delenv("BENCH_OFFLINE", raising=False)
    monkeypatch.chdir(workshop.folder)
    (workshop.folder / "data").mkdir()
    workshop.write((HERE / "web_plugin.py").read_text(encoding="utf-8"), "web_plugin.py")

    def call(*words: str, code: int = 0) -> tuple[str, str]:
        with pytest.raises(SystemExit) as ended:
            main(["data", *words])
        told = capsys.readouterr()
        assert int(ended.value.code or 0) == code, told.err
        assert "Traceback" not in told.err
        return told.out, told.err

    return call


def put(workshop: Workshop, name: str = "three", text: str = TABLE) -> Path:
    path = workshop.folder / "data" / "rings" / f"{name}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def test_list_says_what_is_there_and_how_to_get_the_rest(bench: Bench, workshop: Workshop) -> None:
    put(workshop)
    out, _ = bench("list", *PLUGIN)
    rows = {tuple(line.split()[:3]): line for line in out.splitlines()}
    assert str(workshop.folder / "data") in out.splitlines()[0]
    assert "rings/three.csv" in rows["rings", "of=three", "present"]
    assert out.splitlines()[-1].startswith("to get what is missing, for example: `bench data fetch ")
    assert "by hand" in rows["rings", "of=four", "missing"]
    assert "smiles-csv" in out
    listed = json.loads(bench("list", "--json", *PLUGIN)[0])
    states = {(item["dataset"], item["settings"].get("of")): item for item in listed["datasets"]}
    assert states["rings", "three"]["bytes"] == len(TABLE)
    assert states["rings", "four"]["downloads"][0]["path"] == str(workshop.folder / "data" / "rings" / "four.csv")
    assert states["spmotif", None]["state"] == "generated"


def test_fetch_then_everything_else_finds_it(bench: Bench, workshop: Workshop, address: str) -> None:
    settings = ("--set", f"address={address}/three.csv")
    out, err = bench("fetch", "rings", *settings, *PLUGIN)
    target = workshop.folder / "data" / "rings" / "three.csv"
    assert out == f"fetched {target}\n"
    assert "fetching three.csv (" in err
    assert target.read_text() == TABLE
    assert bench("fetch", "rings", *settings, *PLUGIN)[0] == f"already there: {target}\n"
    assert bench("path", "rings", *PLUGIN)[0] == f"{target}\n"
    assert "readable, no digest known" in bench("verify", "rings", *PLUGIN)[0]
    target.write_text("")
    out, _ = bench("verify", "rings", *PLUGIN, code=1)
    assert str(target) in out
    verdict = json.loads(bench("verify", "rings", "--json", *PLUGIN, code=1)[0])
    assert verdict["sound"] is False
    assert verdict["datasets"][0]["problems"]


def test_a_run_tells_licence_and_citation_of_its_data(workshop: Workshop) -> None:
    put(workshop)
    (workshop.folder / "web_plugin.py").write_text((HERE / "web_plugin.py").read_text(encoding="utf-8"))
    suite = workshop.write(
        "bench: 1\nplugins: [web_plugin.py]\nseeds: [1]\ntrain: {epochs: 1}\n"
        "datasets: {Rings: {use: rings}}\nmethods: {ERM: {baseline: erm}}\n"
    )
    options = Options(store=workshop.store, data_dir=workshop.folder / "data")
    outcome = execute(open_session(str(suite), options), EngineOptions("inline"), lambda _: None)
    record = json.loads((outcome.folder / "run.json").read_text(encoding="utf-8"))
    (told,) = record["results"]["datasets"]
    assert (told["licence"], told["citation"]) == ("CC0", "Ring Maker, 2024")
    page = (outcome.folder / "report.html").read_text(encoding="utf-8")
    provenance = page[page.index('id="provenance"') :]
    assert "<dt>licence</dt><dd>CC0</dd>" in provenance
    assert "<dt>citation</dt><dd>Ring Maker, 2024</dd>" in provenance


def test_without_a_folder_the_default_one_is_used_by_all(
    bench: Bench, workshop: Workshop, address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BENCH_DATA")
    for module in ("harness.store.folders", "harness.downloads.files"):
        monkeypatch.setattr(f"{module}.data_root", lambda: workshop.folder / "cache" / "data")
    assert bench("path")[0] == f"{workshop.folder / 'cache' / 'data'}\n"
    assert json.loads(bench("path", "--json")[0]) == {
        "folder": str(workshop.folder / "cache" / "data"),
        "exists": False,
    }
    _, err = bench("path", "rings", *PLUGIN, code=2)
    assert "`bench data fetch rings`" in err
    bench("fetch", "rings", "--set", f"address={address}/three.csv", *PLUGIN)
    target = workshop.folder / "cache" / "data" / "rings" / "three.csv"
    assert bench("path", "rings", *PLUGIN)[0] == f"{target}\n"
    assert "1 file sound" in bench("verify", "rings", *PLUGIN)[0]


@pytest.mark.parametrize("how", ["option", "variable"])
def test_offline_says_what_to_put_where(
    bench: Bench, workshop: Workshop, address: str, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    if how == "variable":
        monkeypatch.setenv("BENCH_OFFLINE", "1")
    words = ("--offline",) if how == "option" else ()
    _, err = bench("fetch", "rings", "--set", f"address={address}/three.csv", *words, *PLUGIN, code=2)
    for text in (
        str(workshop.folder / "data" / "rings" / "three.csv"),
        f"{address}/three.csv",
        "ring maker",
        "bench data verify",
    ):
        assert text in err


def test_faults_of_a_fetch(bench: Bench, address: str) -> None:
    _, err = bench("fetch", "rings", "--set", f"address={address}/nothing.csv", *PLUGIN, code=2)
    assert err.count("error:") == 1
    assert "404" in err
    _, err = bench("fetch", "rings", "--set", "address=file:///etc/passwd", *PLUGIN, code=2)
    assert "file:///etc/passwd" in err
    _, err = bench("fetch", "rings", *PLUGIN, code=2)
    assert "only a person can fetch it" in err


def test_ctrl_c_exits_130_and_keeps_the_part(bench: Bench, workshop: Workshop, address: str) -> None:  # noqa: ARG001
    words = command_line("data", "fetch", "rings", "--set", f"address={address}/slow.csv", *PLUGIN)
    environment = workshop.environment(BENCH_DATA=str(workshop.folder / "data"))
    process = subprocess.Popen(
        words, cwd=workshop.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    part = workshop.folder / "data" / "rings" / "three.csv.part"
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and not (part.exists() and part.stat().st_size):
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert out == ""
    assert err.splitlines()[-1].startswith("interrupted; what has arrived is kept: `bench data fetch rings")
    assert part.stat().st_size > 0
    assert not part.with_suffix("").exists()


def test_generated_and_own_data_have_nothing_to_fetch(bench: Bench) -> None:
    assert "generated" in bench("fetch", "two-piece")[0]
    assert "your own" in bench("fetch", "smiles-csv")[0]
    assert bench("path", "two-piece")[0] == ""
    assert "generated" in bench("verify", "two-piece")[0]


@pytest.mark.parametrize("verb", ["fetch", "verify", "describe", "path"])
def test_slips_of_names(bench: Bench, verb: str) -> None:
    assert "did you mean 'two-piece'" in bench(verb, "twopiece", code=2)[1]
    assert "did you mean 'dataset'" in bench(verb, "ogb", "--set", "datset=bace", code=2)[1]


def test_verify_without_a_name_checks_what_is_there(bench: Bench, workshop: Workshop) -> None:
    assert "no data files" in bench("verify")[0]
    put(workshop)
    put(workshop, "four", "")
    out, _ = bench("verify", *PLUGIN, code=1)
    assert "rings of=three: 1 file sound (readable, no digest known)" in out
    assert "four.csv: the file is empty" in out
    assert "--set" in bench("verify", "--set", "of=three", *PLUGIN, code=2)[1]


def test_describe_tells_all_but_what_is_sealed(bench: Bench, workshop: Workshop) -> None:
    path = put(workshop)
    out, err = bench("describe", "rings", *PLUGIN)
    assert "preparing" in err
    told = json.loads(bench("describe", "rings", "--json", *PLUGIN)[0])
    assert yaml.safe_load(out) == told, "text and JSON say the same"
    assert told["files"] == [str(path)]
    assert told["version"] == "edition 7"
    assert told["notes"][:2] == ["Rings are round.", "6 rings are in train."]
    assert told["facts"]["roundness"] == 1.0
    assert bench("describe", "rings", *PLUGIN)[1] == "", "from the store"
    splits = told["splits"]
    assert splits["train"]["labels"] == {"classes": [4, 2]}
    assert splits["train"]["environments"] == {"0": 4, "1": 2}
    assert splits["test"] == {
        "role": "test",
        "graphs": 3,
        "nodes": {"min": 40, "mean": 41.33, "max": 43},
        "edges": {"min": 40, "mean": 41.33, "max": 43},
        "sizes": splits["test"]["sizes"],
        "labels": "sealed",
        "environments": "sealed",
    }
    assert sum(splits["test"]["sizes"]) == 3
    assert len(told["fingerprint"]) == 64
    assert told["skipped"] == ["line 14: size 'x'"]


def test_describe_counts_no_environment_of_graphs_without_an_environment(bench: Bench, workshop: Workshop) -> None:
    put(
        workshop,
        text=TABLE.replace("5,1,0,train", "5,1,-1,train").replace(",1,val", ",-1,val").replace(",0,val", ",-1,val"),
    )
    told = json.loads(bench("describe", "rings", "--json", *PLUGIN)[0])
    assert told["own_environments"] == 2
    assert told["splits"]["val"]["environments"] == {"-1": 3}


def test_describe_counts_labels_by_task(bench: Bench, workshop: Workshop) -> None:
    put(workshop)
    told = json.loads(bench("describe", "rings", "--set", "tasks=2", "--json", *PLUGIN)[0])
    assert told["splits"]["train"]["labels"] == {"labelled": [6, 0], "positive": [2, 0]}


def test_describe_without_the_files_says_how_to_get_them(bench: Bench, workshop: Workshop) -> None:
    _, err = bench("describe", "rings", *PLUGIN, code=2)
    assert str(workshop.folder / "data" / "rings" / "three.csv") in err
    assert "`bench data fetch rings` tells how to get it" in err


def test_the_default_data_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("BENCH_CACHE", str(tmp_path))
    monkeypatch.delenv("BENCH_DATA", raising=False)
    assert data_root() == tmp_path / "data"
    monkeypatch.setenv("BENCH_DATA", "relative")
    assert data_root() == Path.cwd() / "relative"
