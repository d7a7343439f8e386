"""Two files of one name: each run says which it read, and nothing of the other file is taken for it."""

from __future__ import annotations

from drugood_kit import content, write

from harness.engine import EngineOptions
from harness.report import make_report, render
from harness.run.collect import collect
from harness.run.execute import execute
from harness.run.find import find_run
from harness.run.session import Options, open_session
from harness.store import Store

SUITE = """bench: 1
name: editions
seeds: [1]
train: {epochs: 1}
datasets: {EC50-assay: {use: drugood}}
methods: {ERM: {baseline: erm}}
"""


def run(folder, release):
    """A run on the small file, said to be of a ChEMBL release."""
    data = content()
    data["cfg"]["path"]["source_root"] = f"chembl_{release}.db"
    write(folder, data)
    suite = folder / "editions.yaml"
    suite.write_text(SUITE)
    options = Options(store=folder / "store", data_dir=folder)
    return execute(open_session(str(suite), options), EngineOptions("inline"), lambda _: None)


def test_a_replaced_file_is_read_anew_and_each_table_says_which_it_is(tmp_path):
    first, second = run(tmp_path, 29), run(tmp_path, 30)
    editions = [outcome.results.dataset("EC50-assay") for outcome in (first, second)]
    assert editions[0].version.startswith("ChEMBL 29, file ")
    assert editions[1].version.startswith("ChEMBL 30, file ")
    assert len({edition.fingerprint for edition in editions}) == 2
    assert first.record.prepared != second.record.prepared
    stored = Store(tmp_path / "store")
    for outcome, edition in zip((first, second), editions, strict=True):
        text = render(make_report(collect(find_run(outcome.record.id, stored), stored)), "plain")
        assert f"EC50-assay ({edition.version})" in text
