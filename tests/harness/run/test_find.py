"""Which run a file, a name and an id mean: one store serves all projects of a user."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from harness.errors import DataError, UserError
from harness.results.rows import RunResults
from harness.results.run_record import RunRecord
from harness.run.find import all_runs, find_run, runs_of
from harness.store import Store, hash_file
from harness.suite.files import Gathered, suites_folder
from harness.suite.tree import Problems

SUITE = "include: [base.yaml]\nplugins: [mine.py]\nname: same\n"


@pytest.fixture
def projects(tmp_path: Path) -> list[Path]:
    """Two suites of the same name in files of the same name."""
    paths = [tmp_path / folder / "suite.yaml" for folder in "ab"]
    for path in paths:
        path.parent.mkdir()
        path.write_text(SUITE, encoding="utf-8")
        for name in ("base.yaml", "mine.py"):
            (path.parent / name).write_text("", encoding="utf-8")
    return paths


def ran(
    store: Store,
    path: Path | str,
    day: int,
    suite: str = "same",
    installed: str = "",
    overrides: tuple[str, ...] = (),
    **more: object,
) -> str:
    """Leave the record of a run, as ``bench run`` does."""
    run = f"202601{day:02d}-000000-{suite}-aaaa"
    files = Gathered(path, Problems()).digests() if isinstance(path, Path) else {}
    results = RunResults(suite, run, "equad", (1,), (), (), (), overrides=overrides)
    folder = store.runs / run
    folder.mkdir(parents=True)
    made = RunRecord(run, str(path), results, (), {}, "", suite_files=files, installed=installed, **more)  # type: ignore[arg-type]
    made.save(folder)
    return run


def test_a_file_means_that_file_alone(
    store: Store, projects: list[Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run of another folder's ``suite.yaml`` was taken, as runs were told apart by the tail of the path."""
    mine, other = projects
    theirs = ran(store, other, 2)
    monkeypatch.chdir(mine.parent)
    for name in ("suite.yaml", "./suite.yaml", str(mine)):
        with pytest.raises(UserError, match=f"^no run of the file {mine} in "):
            find_run(name, store)
        assert runs_of(name, all_runs(store)) == []
    own = ran(store, mine, 1)
    for name in ("suite.yaml", "../a/suite.yaml", str(mine)):
        assert find_run(name, store).id == own
    (tmp_path / "link.yaml").symlink_to(mine)
    assert find_run(str(tmp_path / "link.yaml"), store).id == own
    assert find_run("../b/suite.yaml", store).id == theirs
    mine.unlink()
    assert find_run("suite.yaml", store).id == own, "the file of a run may be gone"


def test_a_name_of_several_suites_is_refused(store: Store, projects: list[Path]) -> None:
    ids = [ran(store, path, day) for day, path in enumerate(projects, start=1)]
    told = "; ".join(f"{path}, latest run {run}" for path, run in zip(projects, ids, strict=True))
    with pytest.raises(UserError) as caught:
        find_run("same", store)
    assert str(caught.value) == f"'same' is the name of several suites with runs; give the file or the run: {told}"
    assert [record.id for record in runs_of("same", all_runs(store))] == ids
    assert [find_run(run, store).id for run in ids] == ids
    projects[0].unlink()
    assert find_run("same", store).id == ids[1], "of a suite that was moved, the latest run counts"


def test_an_installed_suite_is_its_name_wherever_it_is_installed(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """``ablation`` also meant the runs of ``paper/ablation``."""
    monkeypatch.chdir(tmp_path)
    first = ran(store, "/elsewhere/suites/ablation.yaml", 1, "ablation", "ablation")
    paper = ran(store, suites_folder() / "paper/ablation.yaml", 2, "paper-ablation", "paper/ablation")
    for name in ("ablation", "suites/ablation.yaml", "ablation.yaml"):
        assert find_run(name, store).id == first
    for name in ("paper/ablation", "suites/paper/ablation.yaml", "paper-ablation"):
        assert find_run(name, store).id == paper
    (tmp_path / "ablation.yaml").write_text("", encoding="utf-8")
    with pytest.raises(UserError, match="no run of the file"):
        find_run("ablation.yaml", store)


def test_it_is_told_what_has_changed_since(store: Store, projects: list[Path]) -> None:
    own = projects[0]
    run, told = ran(store, own, 1, facts={"seconds": 1.0}), list[str]()
    find_run(str(own), store, told.append)
    (own.parent / "links").mkdir()
    link = own.parent / "links/link.yaml"
    link.symlink_to(own)
    find_run(str(link), store, told.append)
    assert told == []
    assert find_run(run, store).suite_files["suite.yaml"] == hash_file(own)
    own.write_text(f"{SUITE}# another\n", encoding="utf-8")
    (own.parent / "mine.py").unlink()
    find_run(str(own), store, told.append)
    find_run("same", store, told.append)
    assert told == [f"changed since run {run}: suite.yaml, mine.py"] * 2
    find_run(run, store, told.append)
    assert len(told) == 2, "an id means the run, whatever became of its suite"


def test_a_record_that_names_a_device_ends(store: Store, projects: list[Path]) -> None:
    run, told = ran(store, projects[0], 1, facts={"seconds": 1.0}), list[str]()
    replace(RunRecord.load(store.runs / run), suite_files={"/dev/zero": "0"}).save(store.runs / run)
    find_run("same", store, told.append)
    assert told == [f"changed since run {run}: /dev/zero"]


def test_a_suite_means_its_latest_run_with_all_of_it(store: Store, projects: list[Path]) -> None:
    """A subset, an interrupted run, a notebook's cell and a quick run took the place of the whole table, silently."""
    own, ended = projects[0], {"facts": {"seconds": 1.0}, "status": "finished"}
    quick = ran(store, own, 1, overrides=("--quick",), **ended)
    with pytest.raises(UserError, match=f"has only quick runs, which are shown by their id: {quick}"):
        find_run("same", store)
    assert find_run(quick, store).id == quick
    part, told = ran(store, own, 2, overrides=("--methods ERM",), **ended), list[str]()
    assert find_run("same", store, told.append).id == part
    assert told == [f"no run of the whole suite has ended; this is the latest, {part}: --methods ERM"]
    ran(store, projects[1], 3, **ended)
    whole = ran(store, own, 4, overrides=("--epochs 3",), **ended)
    cut = ran(store, own, 5, status="interrupted")
    cell = ran(store, own, 6, overrides=("cell 0a1b2c3d alone",), **ended)
    ran(store, own, 7, overrides=("--quick",), **ended)
    told.clear()
    assert find_run(str(own), store, told.append).id == whole
    (line,) = told
    assert line.endswith(f"shown by their id: {cut} (interrupted), {cell} (cell 0a1b2c3d alone)")


def test_a_path_that_no_file_can_have_is_not_readable(store: Store) -> None:
    run = ran(store, "/a\0b", 1)
    with pytest.raises(DataError, match="cannot be a file"):
        RunRecord.load(store.runs / run)
