"""``bench validate``."""

from __future__ import annotations

from harness.cli import options
from harness.cli.main import app


@app.command()
def validate(
    suite: options.Suite,
    seeds: options.Seeds = None,
    epochs: options.Epochs = None,
    sets: options.Sets = None,
    datasets: options.Datasets = None,
    methods: options.Methods = None,
    data_dir: options.DataDir = None,
    plugin: options.Plugins = None,
    strict: options.Strict = False,
) -> None:
    """Check a suite and the data it needs; every fault is reported with its place. Runs nothing."""
    from harness.runs.session import open_session

    given = options.session_options(
        data_dir=data_dir,
        seeds=seeds,
        epochs=epochs,
        sets=sets,
        datasets=datasets,
        methods=methods,
        plugins=plugin,
        strict=strict,
    )
    session = open_session(suite, given)
    found = session.suite
    print(
        f"{found.path}: valid; {len(found.datasets)} datasets, {len(found.methods)} methods, "
        f"{len(found.seeds)} seeds, {len(session.plan.cells)} cells"
    )
