"""Batch systems without one: the job scripts, and a stand-in for SLURM's two commands that runs them here."""

from __future__ import annotations

import os
import signal
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if find_spec("dask_jobqueue") is None:
    pytest.skip("needs the extra `cluster`", allow_module_level=True)

from cluster_kit import HERE, ROOT, go
from toy import Recorder, ToyStore, stage, wait_until

from harness.engine import EngineOptions
from harness.engine.cluster import Profile, cluster_class, cluster_options, need, start_cluster
from harness.errors import UserError

COMMANDS = {"slurm": "sbatch", "pbs": "qsub", "lsf": "bsub"}


def script(name: str, folder: Path, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.fixture
def commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Commands that accept a job: copy its script, run it in a session of its own, and tell a number."""
    folder = tmp_path / "bin"
    folder.mkdir()
    run = 'cp "$1" "$1.job"; setsid sh "$1.job" >>"$0.out" 2>&1 </dev/null & echo "Submitted batch job $!"'
    for name in COMMANDS.values():
        script(name, folder, run)
    script("scancel", folder, 'echo "$1" >>"$0.out"; kill -- "-$1"')
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")
    return folder


@pytest.mark.usefixtures("commands")
@pytest.mark.parametrize(
    ("kind", "more", "lines"),
    [
        ("slurm", {"queue": "short", "account": "lab"}, ["#SBATCH -p short", "#SBATCH -A lab", "#SBATCH -t 02:00:00"]),
        ("pbs", {"queue": "short", "account": "lab"}, ["#PBS -q short", "#PBS -A lab", "#PBS -l walltime=02:00:00"]),
        ("lsf", {"queue": "short", "project": "lab", "mem": 8_000_000_000}, ["#BSUB -q short", '#BSUB -P "lab"']),
    ],
)
def test_the_job_script_holds_what_the_profile_says(kind: str, more: dict[str, Any], lines: list[str]) -> None:
    walltime = "02:00" if kind == "lsf" else "02:00:00"
    options = {"cores": 4, "processes": 2, "memory": "8GB", "walltime": walltime, "interface": "lo", **more}
    profile = Profile(kind, workers=2, offers={"GPU": 1, "memory": 16e9}, options=options)
    cluster = cluster_class(profile)(**cluster_options(profile))
    try:
        text = cluster.job_script()
    finally:
        cluster.close()
    assert not [line for line in lines if line not in text], text
    assert f"{sys.executable} -m distributed.cli.dask_worker tcp://" in text
    assert "--nthreads 2 " in text
    assert "--nworkers 2 " in text
    assert "--resources GPU=1,memory=1.6e+10" in text


def test_a_batch_system_from_submission_to_the_end_of_its_jobs(
    commands: Path, store: ToyStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", f"{HERE}:{ROOT}")
    recorder = Recorder()
    options = {"cores": 1, "processes": 1, "memory": "1GB", "interface": "lo"}
    profile = Profile("slurm", workers=2, offers={"GPU": 1}, resources={"train": {"GPU": 1}}, options=options)
    outcome = go([stage(f"s{i}", do="delay") for i in range(6)], store, profile, observer=recorder)
    assert len(outcome.finished) == 6
    assert all("SLURMCluster-" in event.worker for event in recorder.events if event.kind == "finished")
    cancelled = commands / "scancel.out"
    wait_until(lambda: cancelled.exists() and len(cancelled.read_text().split()) == 2, 20)


@pytest.mark.usefixtures("commands")
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Dask's half-made clusters
def test_options_that_dask_does_not_know() -> None:
    with pytest.raises(UserError, match=r"the SLURM cluster cannot be started with these options: .*'coers'"):
        start_cluster(Profile("slurm", workers=1, options={"coers": 1, "cores": 1, "memory": "1GB"}), None)
    none = Profile("slurm", workers=1, options={"processes": 0, "cores": 1, "memory": "1GB"})
    with pytest.raises(UserError, match=r"the SLURM cluster cannot be started with these options: .*zero"):
        start_cluster(none, None)


def test_threads_that_options_leave_to_dask_are_counted_as_one() -> None:
    assert Profile("local", workers=2, options={"threads_per_worker": None}).most_threads == 2
    assert Profile("slurm", workers=2, options={"cores": 8, "processes": 0}).most_threads == 16


@pytest.mark.parametrize(("kind", "command"), COMMANDS.items())
def test_a_machine_that_may_not_submit(
    kind: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=f"there is no command '{command}' here"):
        cluster_class(Profile(kind, workers=1))


@pytest.mark.parametrize(("kind", "package"), [("local", "distributed"), ("slurm", "dask_jobqueue")])
def test_a_missing_package_names_the_extra(kind: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    name = package.replace("_", "-")
    with pytest.raises(UserError, match=rf"needs the package {name}: pip install equad-bench\[cluster\]"):
        EngineOptions("dask", cluster=Profile(kind, workers=1)).make()


def test_ctrl_c_stays_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    """``dask_jobqueue.runner`` sets a handler when it is imported, which would end a run with exit code 0."""
    for name in [name for name in sys.modules if name.partition(".")[0] == "dask_jobqueue"]:
        monkeypatch.delitem(sys.modules, name)
    before = signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)
    need("dask_jobqueue")
    assert "dask_jobqueue.runner" in sys.modules
    assert (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)) == before
