"""Runs for MLflow's tracking server."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from harness import Register, TrackedCell, TrackedRun, Tracker, UserError, hookimpl, hparam

_BATCH = 1000
"""Most metrics that MLflow takes at once."""


class MLflow(Tracker):
    """One MLflow run per cell, in an experiment named after the suite: parameters, metrics by epoch, final scores.

    MLflow (Zaharia et al., *Accelerating the Machine Learning Lifecycle with MLflow*, IEEE Data Engineering Bulletin
    2018). The server is MLflow's own choice (``MLFLOW_TRACKING_URI``) unless ``uri`` names one. Cells that were cached
    are left out unless ``cached`` is set, so that a repeated run does not log them again. Needs the extra ``mlflow``.
    """

    name = "mlflow"
    probes = {"*": {"uri": "sqlite:///mlflow.db"}}

    uri: str | None = hparam(None, help="server, or database such as sqlite:///mlflow.db; none: MLflow's default")
    experiment: str | None = hparam(None, help="name of the experiment; none: the suite's name")
    cached: bool = hparam(False, help="also log cells whose result was there before")

    def start(self, run: TrackedRun) -> None:
        try:
            from mlflow.tracking import MlflowClient
        except ImportError:
            raise UserError("it needs MLflow: pip install 'equad-bench[mlflow]'") from None
        self._client, self._run = MlflowClient(self.uri), run
        name = self.experiment or run.suite
        found = self._client.get_experiment_by_name(name)
        self._experiment = self._client.create_experiment(name) if found is None else found.experiment_id

    def cell(self, cell: TrackedCell) -> None:
        if cell.cached and not self.cached:
            return
        from mlflow.entities import Metric, Param

        tags = {"bench.run": self._run.id, "bench.cell": cell.id, "bench.status": cell.status}
        run_id = self._client.create_run(self._experiment, run_name=cell.name, tags=tags).info.run_id
        chosen = {"dataset": cell.dataset, "method": cell.method, "seed": cell.seed, "protocol": self._run.protocol}
        params = [Param(_key(name), str(value)[:500]) for name, value in {**chosen, **cell.hyperparameters}.items()]
        metrics = [
            Metric(_key(name), value, 0, epoch) for epoch, numbers in cell.numbers for name, value in numbers.items()
        ]
        metrics += [Metric(_key(f"score/{name}"), value, 0, 0) for name, value in cell.scores.items()]
        self._client.log_batch(run_id, params=params)
        for place in range(0, len(metrics), _BATCH):
            self._client.log_batch(run_id, metrics=metrics[place : place + _BATCH])
        self._client.set_terminated(run_id, "FINISHED" if cell.status == "ok" else "FAILED")

    def finish(self, table: Sequence[Mapping[str, Any]], status: str) -> None:
        del table, status
        store = getattr(getattr(self._client, "_tracking_client", None), "store", None)
        if store is not None and hasattr(store, "engine"):  # a database, which MLflow itself never closes
            store.engine.dispose()


def _key(name: str) -> str:
    """A name that MLflow takes."""
    return re.sub(r"[^\w\-. /]", "_", name)


@hookimpl
def bench_register(register: Register) -> None:
    register(MLflow)
