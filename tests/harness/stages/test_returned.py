"""What plugins return is checked where it enters: component, method, what came and what is allowed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from harness import (
    Analysis,
    Backbone,
    Baseline,
    Dataset,
    Declaration,
    Encoder,
    Environment,
    Features,
    Findings,
    Fitted,
    Quantifier,
    RawDataset,
    RawGraph,
    Study,
    Task,
)
from harness.data import check_built, check_declaration, check_files
from harness.engine.failures import failure_of
from harness.graphs import PackedGraphs
from harness.registry.returned import ReturnedError, expect_json, shown
from harness.run.analyses import presented
from harness.stages import annotate, quantify
from harness.stages.analyse import answered
from harness.stages.cell import TrainedCell
from harness.stages.encode import embedded, snapshots
from harness.suite.settings import TrainSettings
from harness.training.loop import TrainingData, fit
from harness.training.networks import LearnerInfo, ModelSpec

EDGES = np.array([[0, 1], [1, 0]])


def graphs(n: int = 6) -> PackedGraphs:
    raw = [RawGraph(np.full((2, 1), i, dtype=np.float32), EDGES, 0) for i in range(n)]
    return replace(PackedGraphs.pack(raw), y=torch.arange(n) % 2)


def refused(call: Callable[[], Any]) -> str:
    """The message; as a stage's failure it is the plugin's own text, on one line."""
    with pytest.raises(ReturnedError) as caught:
        call()
    assert failure_of(caught.value).status == "failed"
    return failure_of(caught.value).reason


class Own(Encoder):
    """Yields or returns what a test asks for."""

    name = "own"
    given: Any = ()

    def fit(self, graphs: PackedGraphs) -> Any:
        del graphs
        return self.given


def pairs(*items: Any) -> Any:
    yield from items


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ([(1, nn.Linear(1, 1))], "found list"),
        (None, "expected a generator (`yield epoch, module`), so that each module is taken as it is after its epoch"),
        (pairs(nn.Linear(1, 1)), "expected a pair of an epoch and a torch.nn.Module with each `yield`, found Linear"),
        (pairs((2, nn.Linear(1, 1))), "the epochs of 'snapshots' in ascending order, next 1, found int 2"),
        (pairs((1, nn.Linear(1, 1))), "expected a `yield` after epoch 3, one of 'snapshots', found None"),
    ],
)
def test_snapshots_of_an_encoder(given: Any, found: str) -> None:
    encoder = Own(snapshots=[3, 1])
    encoder.given = given
    message = refused(lambda: list(snapshots(encoder, graphs())))
    assert message.startswith("encoder 'own', fit: expected ")
    assert found in message


@pytest.mark.parametrize(
    ("rows", "found"),
    [
        ([1.0], "found list"),
        (torch.zeros(5, 2), "expected float numbers of shape (6, any), found Tensor of shape (5, 2), torch.float32"),
        (torch.zeros(6), "found Tensor of shape (6,), torch.float32"),
        (torch.zeros(6, 2, dtype=torch.int64), "found Tensor of shape (6, 2), torch.int64"),
    ],
)
def test_embeddings_of_an_encoder(rows: Any, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Own, "embed", lambda *_: rows)
    message = refused(lambda: embedded(Own(), nn.Linear(1, 1), graphs()))
    assert message.startswith("encoder 'own', embed: ")
    assert found in message


class Votes(Quantifier):
    """Gives what a test asks for."""

    name = "votes"
    given: Any = None

    def fit(self, embeddings: Any, labels: Any, num_classes: int, **setting: Any) -> Any:
        del embeddings, labels, num_classes, setting
        return self.given

    def settings(self) -> Any:
        return self.given


def test_a_quantifier() -> None:
    votes, uniform = Votes(), np.full((4, 2), 0.5)
    for given, found in (({}, "found dict"), ([], "list of dicts, at least one, found list")):
        votes.given = given
        assert found in refused(lambda: quantify.settings(votes))
    votes.given = [{"C": len}]
    assert refused(lambda: quantify.settings(votes)).startswith("quantifier 'votes', settings: expected ")
    for given, found in (
        (uniform, "fit: expected a Fitted, found ndarray of shape (4, 2), float64"),
        (Fitted(uniform), "fit, predict: expected a function, found ndarray"),
        (Fitted(len, flags="few"), "fit, flags: expected a list of texts, found str"),  # type: ignore[arg-type]
    ):
        votes.given = given
        assert found in refused(lambda: quantify.fit(votes, uniform, None, 2, {}))
    for table, found in (
        (uniform.tolist(), "expected float numbers of shape (4, 2), found list"),
        (uniform[:3], "found ndarray of shape (3, 2), float64"),
        (uniform * 2, "expected probabilities: finite, not negative, the sum of each row one"),
        (uniform * np.nan, "expected probabilities"),
    ):
        assert found in refused(lambda table=table: quantify.check(votes, table, 4, 2))
    quantify.check(votes, uniform, 4, 2)


class Split(Environment):
    """Of no consequence."""

    name = "split"
    provides = frozenset({"weight"})


def test_what_an_environment_gives_beside_ids() -> None:
    ids = torch.tensor([0, 1])
    for extra, found in (
        ([1, 2], "assign: expected beside the ids a dict of tensors, found list"),
        ({"weight": [1, 2]}, "found dict"),
        ({}, "must give one row per training graph of each of its 'provides' (weight)"),
    ):
        message = refused(lambda extra=extra: annotate._check(Split(), ids, extra, 2))
        assert message.startswith("environment 'split'")
        assert found in message
    assert refused(lambda: annotate._check(Split(), [0, 1], {}, 2)).startswith("environment 'split', assign: the ids")


class Line(Backbone):
    """One linear map; its output may be spoilt."""

    name = "line"
    spoil: Callable[[Tensor], Any] = staticmethod(lambda rows: rows)

    def build(self, node_features: Features, edge_features: Features) -> None:
        del edge_features
        self.map = nn.Linear(node_features.sizes[0], self.hidden)

    def forward(self, batch: Any, x: Tensor | None = None, edge_weight: Tensor | None = None) -> Tensor:
        del x, edge_weight
        return cast("Tensor", type(self).spoil(self.map(batch.x)))


class Method(Baseline):
    """ERM."""

    name = "method"


def train(cls: type[Baseline] = Method) -> None:
    info = LearnerInfo(
        Task("binary", 2), Features("numeric", (1,)), Features("none"), num_train=6, total_steps=2, epochs=1
    )
    learner = cls()
    learner.setup(info, ModelSpec(Line, {"hidden": 3}), seed=0)
    data = TrainingData(graphs(), {"val": graphs().without_labels()}, lambda *_: 0.5, "val")
    fit(learner, data, TrainSettings(1, 3, 6), seed=0)


def test_a_sound_learner_passes() -> None:
    train()


@pytest.mark.parametrize(
    ("method", "given", "found"),
    [
        ("optimizers", {}, "optimizers: expected a list of torch optimizers, at least one, found dict"),
        ("optimizers", [None], "found list"),
        ("selectable_from", "5", "selectable_from: expected a whole number from 0, found str"),
        ("training_step", None, "training_step: expected a dict of the loss terms by name, found None"),
        ("training_step", {"erm": len}, "training_step, 'erm': expected a number or a tensor of one, found builtin_"),
        ("training_order", [0, 1], "training_order: expected int64 numbers of shape (any), found list"),
        ("training_order", torch.tensor([0, 6]), "at least 2 positions of training graphs, from 0 to 5"),
        ("training_order", torch.tensor([0]), "at least 2 positions"),
        ("loss", {"erm": 1.0}, "loss, 'erm': expected a tensor of one number, found float 1.0"),
        ("loss", {"erm": torch.zeros(2)}, "found Tensor of shape (2,), torch.float32"),
        ("loss", [], "Method.loss returned list; it must return the loss terms by name"),
        ("weight", None, "weight('erm'): expected a number, found None"),
        ("forward", torch.zeros(6, 3), "forward: expected float numbers of shape (6, 2), found Tensor of shape (6, 3)"),
    ],
)
def test_a_learner(method: str, given: Any, found: str) -> None:
    def loss(self: Baseline, batch: Any) -> dict[str, Tensor]:
        return {"erm": self.embed(batch).mean()}

    own = {method: given if method == "selectable_from" else lambda *_: given}
    message = refused(lambda: train(type("Method", (Method,), {"loss": loss, "__module__": __name__, **own})))
    assert message.startswith("baseline 'method', ")
    assert found in message


@pytest.mark.parametrize("spoil", [list, lambda rows: rows[:, :2], lambda rows: rows[:1]])
def test_a_backbone(spoil: Callable[[Tensor], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Line, "spoil", staticmethod(spoil))
    assert refused(train).startswith("backbone 'line', forward: expected float numbers of shape (6, 3), found ")


class Data(Dataset):
    """Of no consequence."""

    name = "data"


DECLARED = Declaration(Task("binary", 2), Features("numeric", (1,)))


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"task": "binary"}, "declare: expected a Declaration, found dict"),
        (replace(DECLARED, task="binary"), "declare: task: Input should be an object"),  # type: ignore[arg-type]
        (
            replace(DECLARED, task=Task("binary", 1)),
            "declare, num_classes: expected a whole number from 2, found int",
        ),
        (replace(DECLARED, edge_features=None), "declare: edge_features: "),  # type: ignore[arg-type]
        (replace(DECLARED, splits={"a": "train", "val": "train"}), "declare, splits: expected name -> train, val or"),
        (replace(DECLARED, default_val="dev"), "declare, default_val: expected the name of a split with the role val"),
        (replace(DECLARED, environments=None), "declare: environments: "),  # type: ignore[arg-type]
        (replace(DECLARED, notes="one"), "declare: notes: "),  # type: ignore[arg-type]
        (replace(DECLARED, environments=np.int64(2)), "declare: expected plain Python values, found int64 2"),
    ],
)
def test_a_declaration(given: Any, found: str) -> None:
    message = refused(lambda: check_declaration(Data(), given))
    assert message.startswith("dataset 'data', ")
    assert found in message


def test_a_dataset() -> None:
    graph = RawGraph(np.zeros((2, 1), np.float32), EDGES, 0)
    sound = RawDataset({"train": [graph]})
    assert check_declaration(Data(), DECLARED) is DECLARED
    assert check_built(Data(), sound) is sound
    assert refused(lambda: check_files(Data(), cast("list[Path]", ["a.csv"]))) == (
        "dataset 'data', files: expected a list of pathlib.Path, found list of 1"
    )
    for given, found in (
        ({}, "build: expected a RawDataset, found dict"),
        (RawDataset({"train": {}}), "build, split 'train': expected a list of RawGraph, found dict"),  # type: ignore[dict-item]
        (RawDataset({"train": [graph, "g"]}), "expected a list of RawGraph, found str"),  # type: ignore[list-item]
        (RawDataset({"train": [replace(graph, x=[[1.0]])]}), "graph 0, x: expected a NumPy array, found list"),
        (RawDataset({"train": [replace(graph, edge_index=None)]}), "graph 0, edge_index: expected a NumPy array"),
        (RawDataset({"train": [replace(graph, y=None)]}), "labels y that are numbers or NumPy arrays, found None"),  # type: ignore[arg-type]
        (RawDataset({"train": [graph]}, facts={"a": {"b": len}}), "build, facts: expected texts, numbers"),
        (RawDataset({"train": [graph]}, skipped="row 3"), "skipped: expected a list of texts, found str"),  # type: ignore[arg-type]
    ):
        assert found in refused(lambda given=given: check_built(Data(), given))


class Look(Analysis):
    """Gives what a test asks for."""

    name = "look"
    given: Any = None

    def measure(self, cell: TrainedCell) -> Mapping[str, Any]:
        del cell
        return self.given  # type: ignore[no-any-return]

    def present(self, study: Study) -> Findings:
        del study
        return self.given  # type: ignore[no-any-return]


def test_an_analysis() -> None:
    look, nothing = Look(), cast("Any", None)
    for given, found in (
        ([1], "measure: expected a dict: name -> array, or JSON, found list"),
        (
            {"score": {"all": [1, print]}},
            "measure, 'score': expected texts, numbers, true, false",
        ),
        (
            {"rows": np.array([object()])},
            "measure, 'rows': expected an array of numbers or of true and false",
        ),
    ):
        look.given = given
        message = refused(lambda: answered(look, nothing))
        assert message.startswith("analysis 'look', ")
        assert found in message
    look.given = {"rows": np.ones(2), "score": None, "deep": {"a": [1.5, "x", True]}}
    assert answered(look, nothing) is look.given
    for given, found in (
        ([], "analysis 'look': 'present' returned list, not Findings"),
        (Findings(("a",), (([3],),)), "present, row 0, column 'a': a cell of a table is a text, a number or"),  # type: ignore[arg-type]
        (Findings(("a",), ((1,),), notes="all"), "present, notes: expected a list of texts, found str"),  # type: ignore[arg-type]
    ):
        look.given = given
        assert found in refused(lambda: presented(look, nothing))


def test_values_are_told_briefly() -> None:
    assert len(shown("x" * 99)) < 50
    assert shown(lambda: 0) == "function"
    expect_json(Data(), "build", {"a": [None, True, 1, 0.5, "x", (1,)], "b": {"c": float("nan")}})
