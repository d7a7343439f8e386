"""Analyses with one known bug each."""

import numpy as np

from harness import Analysis, Findings, hparam


class SoundAnalysis(Analysis):
    """No bug: mean norm of the validation embeddings."""

    name = "sound"
    scale: float = hparam(1.0, low=0.0, help="factor")

    def measure(self, cell):
        rows = cell.embeddings(cell.monitor)
        return {"norms": np.linalg.norm(rows, axis=1), "split": cell.monitor}

    def present(self, study):
        rows = [
            (dataset, method, self.scale * float(np.mean([cell.arrays["norms"].mean() for cell in cells])))
            for (dataset, method), cells in study.groups().items()
        ]
        return Findings(("dataset", "method", "norm"), tuple(rows))


class DrawsGlobally(SoundAnalysis):
    """Takes a random sample with the global generator."""

    name = "draws-globally"

    def measure(self, cell):
        rows = cell.embeddings(cell.monitor)
        return {"norms": np.linalg.norm(rows[np.random.permutation(len(rows))[:10]], axis=1)}


class DrawsWhilePresenting(SoundAnalysis):
    name = "draws-while-presenting"

    def figure(self, study):
        np.random.rand()


class ReseedsItself(SoundAnalysis):
    """A generator without a seed."""

    name = "unseeded"

    def measure(self, cell):
        rows = cell.embeddings(cell.monitor)
        return {"norms": np.linalg.norm(np.random.default_rng().choice(rows, 5), axis=1)}


class SilentNaN(SoundAnalysis):
    """Divides by the spread of a group that is empty."""

    name = "silent-nan"

    def present(self, study):
        found = super().present(study)
        return Findings(found.columns, (*found.rows[:-1], (*found.rows[-1][:2], float("nan"))))


class SpreadOfOne(SoundAnalysis):
    """The standard deviation of one seed."""

    name = "spread-of-one"

    def present(self, study):
        rows = []
        for (dataset, method), cells in study.groups().items():
            values = [cell.arrays["norms"].mean() for cell in cells]
            rows.append((dataset, method, self.scale * float(np.std(values, ddof=1))))
        return Findings(("dataset", "method", "spread"), tuple(rows))


class NeedsBothSeeds(SoundAnalysis):
    """Pairs the two seeds of each method."""

    name = "needs-both-seeds"

    def present(self, study):
        for cells in study.groups().values():
            assert cells[1].seed > cells[0].seed
        return super().present(study)


class NeedsTwoClasses(SoundAnalysis):
    name = "needs-two-classes"
    tasks = frozenset({"binary", "multiclass"})

    def measure(self, cell):
        labels = cell.labels(cell.train_split)
        assert len(labels) == len(labels[labels != 1]) + len(labels[labels == 1]) != len(labels[labels == 0])
        return super().measure(cell)


class NeedsEnvironments(SoundAnalysis):
    name = "needs-environments"
    opens_test = True

    def present(self, study):
        for cell in study.cells:
            cell.environments("test").max()
        return super().present(study)


class NeedsEncoder(SoundAnalysis):
    """Every method has an encoder, it believes."""

    name = "needs-encoder"

    def measure(self, cell):
        return {"norms": np.linalg.norm(cell.encoders[0].embeddings(cell.monitor), axis=1)}


class PeeksWhileMeasuring(SoundAnalysis):
    name = "peeks"

    def measure(self, cell):
        cell.labels("test")
        return super().measure(cell)


class DeadHyperparameter(SoundAnalysis):
    name = "dead"
    idle: int = hparam(3, low=1, help="nothing")


class EmptyTable(SoundAnalysis):
    name = "empty"

    def present(self, study):
        return Findings(("dataset",), ())
